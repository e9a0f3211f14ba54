// `last` is read before `best`: a process that trains beside moves `best` first, so that what is read later is never
// the older one. tests/cli/test_bad_runs.cpp.
#include "train/checkpoints/wrong_links.hpp"

#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "train/evaluation/evaluate.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// The state of a checkpoint; nothing where it cannot be read, which others report.
std::optional<RunState> state_at(const fs::path& checkpoint) {
  try {
    return read_state(checkpoint);
  } catch (const NewerFile&) {
    throw;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Whether the best validation that one state knows is worse than that of another, by the measure that decides.
bool knows_worse(const RunState& one, const RunState& other) {
  const auto monitor = other.settings.find("monitor");
  for (const Metric& metric : metrics()) {
    if (metric.monitor != (monitor == other.settings.end() ? std::string("loss") : monitor->second)) continue;
    const auto its = one.best.find(metric.name), others = other.best.find(metric.name);
    return its != one.best.end() && others != other.best.end() &&
           metric.cost(its->second) > metric.cost(others->second);
  }
  return false;
}

}  // namespace

std::string wrong_best(const Checkpoints& checkpoints) {
  const auto last = checkpoints.last();
  const auto newest = last ? state_at(*last) : std::nullopt;
  const int64_t step = checkpoints.linked_step("best");
  if (!newest || newest->best.empty() || step < 0 || step == newest->best_step) return "";
  const auto linked = state_at(checkpoints.of_step(step));
  if (!linked) return "";
  // A later one that is better is of a save which was killed before `last` was moved, or of another continuation.
  const fs::path meant = checkpoints.of_step(newest->best_step);
  if (!knows_worse(*linked, *newest) && (linked->best_step == step || !fs::is_directory(meant))) return "";
  return fmt::format("{} points to step-{}, though {} is the best by the state of {}",
                     (checkpoints.folder() / "best").string(), step, meant.filename().string(),
                     last->filename().string());
}

std::string passed_over(const Checkpoints& checkpoints) {
  const int64_t step = checkpoints.linked_step("last");
  const std::vector<int64_t> steps = checkpoints.steps();
  if (step < 0 || steps.empty() || steps.back() <= step) return "";
  const fs::path later = checkpoints.of_step(steps.back()),
                 metrics = checkpoints.folder().parent_path() / "metrics.jsonl";
  const auto state = state_at(later);
  std::error_code error;
  if (!state || state->metrics_bytes <= 0 || !fs::is_regular_file(metrics, error)) return "";
  const std::string lines = read_file(metrics.string());
  const auto marked = static_cast<size_t>(state->metrics_bytes);
  // A run that goes on from an earlier checkpoint replaces the lines that were recorded after it.
  if (lines.size() < marked || hash_hex(std::string_view(lines).substr(0, marked)) != state->metrics_checksum)
    return "";
  if (!can_resume(later)) return "";
  return fmt::format("{} points to step-{}, though {} is whole and goes on from it (--resume-from {} uses that one)",
                     (checkpoints.folder() / "last").string(), step, later.filename().string(), later.string());
}

}  // namespace capstan
