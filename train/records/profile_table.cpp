// Writes a profile as a table per step: the longest operation first, time outside of operations last, then the sum.
// tests/train/test_profile.cpp.
#include "train/records/profile_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace capstan {
namespace {

constexpr const char* pass_names[] = {"", "forward", "backward"};  // by Pass

constexpr const char* layout = "{:<24}{:<9}{:>7}{:>9}{:>8}{:>9}{:>9}{:>7}{:>9}{:>8}  {}\n";

/// The nearer of the two limits, and the share of it that is reached.
std::string limit_text(const ProfileRow& row, const MachineRates& machine) {
  const double seconds = static_cast<double>(row.nanoseconds) * 1e-9;
  const double of_triad = static_cast<double>(row.bytes) / machine.bytes / seconds;
  const double of_sgemm = static_cast<double>(row.flops) / machine.flops / seconds;
  if (seconds == 0 || (row.bytes == 0 && row.flops == 0)) return "";
  return of_triad > of_sgemm ? fmt::format("{:.0f} % triad", 100 * of_triad)
                             : fmt::format("{:.0f} % sgemm", 100 * of_sgemm);
}

/// A row of the table, per step; columns of which nothing was counted stay empty.
std::string line(const ProfileRow& row, const Profile& profile, const MachineRates& machine) {
  const auto steps = static_cast<double>(profile.steps()), nanoseconds = static_cast<double>(row.nanoseconds);
  const auto per_step = [steps](int64_t count, double unit, const char* format) {
    return count == 0 ? std::string() : fmt::format(fmt::runtime(format), static_cast<double>(count) / unit / steps);
  };
  const auto rate = [nanoseconds](int64_t count) {
    return count == 0 || nanoseconds == 0 ? std::string()
                                          : fmt::format("{:.1f}", static_cast<double>(count) / nanoseconds);
  };
  return fmt::format(fmt::runtime(layout), row.name, pass_names[static_cast<size_t>(row.pass)],
                     per_step(row.calls, 1, "{:.4g}"), fmt::format("{:.3f}", nanoseconds * 1e-6 / steps),
                     fmt::format("{:.1f} %", 100 * nanoseconds / static_cast<double>(profile.nanoseconds())),
                     per_step(row.products, 1e6, "{:.3f}"), per_step(row.bytes, 1e6, "{:.1f}"), rate(row.bytes),
                     per_step(row.flops, 1e9, "{:.3f}"), rate(row.flops), limit_text(row, machine));
}

}  // namespace

std::string to_text(const Profile& profile, const MachineRates& machine) {
  if (profile.steps() == 0) return "profile: the run ended before a step could be profiled\n";
  std::vector<ProfileRow> rows = profile.rows();
  const auto is_outside = [](const ProfileRow& row) { return std::string_view(row.name) == Profile::outside; };
  std::stable_sort(rows.begin(), rows.end(), [&](const ProfileRow& a, const ProfileRow& b) {
    return is_outside(a) != is_outside(b) ? is_outside(b) : a.nanoseconds > b.nanoseconds;
  });
  ProfileRow step{"step", Pass::none};
  for (const ProfileRow& row : rows) step.add(row);
  std::string text = fmt::format("profile of {} steps; this machine: triad {:.1f} GB/s, sgemm {:.0f} GFLOP/s\n",
                                 profile.steps(), machine.bytes * 1e-9, machine.flops * 1e-9);
  text += fmt::format(fmt::runtime(layout), "op", "pass", "calls", "ms", "share", "products", "MB", "GB/s", "GFLOP",
                      "GFLOP/s", "of limit");
  for (const ProfileRow& row : rows) text += line(row, profile, machine);
  text += line(step, profile, machine);
  return text +
         "Per step. ms: wall time of the training thread, counted in one row only. products: the part of it in\n"
         "matrix products outside tiles. GFLOP: of matrix products, 2 m n k, tiles included. MB: operands,\n"
         "results and gradients, once each (operands again in a backward pass); caches make the true traffic\n"
         "smaller, repeated reads larger. of limit: share of the nearer of this machine's two limits.\n"
         "With lanes, times are those of all threads together, and rates those of one thread.\n";
}

}  // namespace capstan
