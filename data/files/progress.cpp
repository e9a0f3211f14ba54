#include "data/files/progress.hpp"

#include <fmt/core.h>

#include <algorithm>

namespace capstan {
namespace {

constexpr double megabyte = 1e6;

double rate(size_t bytes, double seconds) { return static_cast<double>(bytes) / megabyte / std::max(seconds, 1e-3); }

}  // namespace

void Progress::add(size_t bytes) {
  done_ += bytes;
  const double now = seconds();
  if (!log_ || now - logged_ < between_) return;
  logged_ = now;
  const std::string all = bytes_ > 0 ? fmt::format(" of {:.0f}", static_cast<double>(bytes_) / megabyte) : "";
  log_(
      fmt::format("{}: {:.0f}{} MB, {:.3g} MB/s", work_, static_cast<double>(done_) / megabyte, all, rate(done_, now)));
}

void Progress::finish() const {
  if (!log_ || logged_ == 0) return;
  const double now = seconds();
  log_(fmt::format("{}: {:.0f} MB in {:.0f} s, {:.3g} MB/s", work_, static_cast<double>(done_) / megabyte, now,
                   rate(done_, now)));
}

}  // namespace capstan
