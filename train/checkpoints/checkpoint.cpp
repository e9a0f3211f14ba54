// Every change of the folder is a rename, a new link or a removal, in an order that leaves it usable after each (the
// head of checkpoint.hpp). Which checkpoint is damaged is decided by reading its files and checksums
// (checkpoint_files.hpp). tests/train/test_run_files.cpp.
#include "train/checkpoints/checkpoint.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>

#include "core/io/file.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

constexpr const char* step_prefix = "step-";
constexpr const char* unfinished_prefix = ".unfinished-";
constexpr const char* replaced_prefix = ".replaced-";
constexpr const char* old_prefix = ".old-";
constexpr const char* damaged_prefix = "damaged-";

/// Step of a folder called step-N; -1 for any other name.
int64_t step_of(const std::string& name) {
  const std::string digits = starts_with(name, step_prefix) ? name.substr(std::string(step_prefix).size()) : "";
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoll(digits);
}

/// Step of a folder called step-N behind a prefix; -1 for any other name, which is none of the program's.
int64_t step_after(const char* prefix, const std::string& name) {
  return starts_with(name, prefix) ? step_of(name.substr(std::string(prefix).size())) : -1;
}

/// What a link to a checkpoint names; empty if it is no link. Throws FileError for a link that cannot be read: its
/// checkpoint must not look like one that may be removed.
std::string target_of(const fs::path& link) {
  std::error_code error;
  const std::string target = fs::read_symlink(link, error).string();
  const int code = error.value();
  if (code != 0 && code != ENOENT && code != EINVAL && code != ENOTDIR) throw_file_error("read", link.string(), code);
  return target;
}
}  // namespace

bool Checkpoints::leads_elsewhere(const std::string& name) const {
  const std::string target = target_of(folder_ / name);
  return !target.empty() && step_of(target) < 0;
}

void Checkpoints::recover() {
  make_folders(folder_.string());
  for (const std::string& name : names_in_folder(folder_.string())) {
    const fs::path path = folder_ / name;
    const int64_t unfinished = step_after(unfinished_prefix, name), replaced = step_after(replaced_prefix, name);
    const bool link = (name == ".last.tmp" || name == ".best.tmp") && fs::is_symlink(path);
    if (unfinished >= 0 && !damage_of(path)) {
      const RunState state = read_state(path);
      const bool best = !state.best.empty() && state.best_step == unfinished;
      written_.push_back({unfinished, best, std::numeric_limits<int64_t>::max()});
    } else if (replaced >= 0 && !fs::exists(of_step(replaced))) {
      rename_path(path.string(), of_step(replaced).string());
    } else if (unfinished >= 0 || replaced >= 0 || link || step_after(old_prefix, name) >= 0) {
      remove_tree(path.string());
    }
  }
  std::sort(written_.begin(), written_.end(), [](const Written& a, const Written& b) { return a.step < b.step; });
  publish();
}

std::vector<int64_t> Checkpoints::steps() const {
  std::vector<int64_t> steps;
  for (const std::string& name : names_in_folder(folder_.string()))
    if (step_of(name) >= 0) steps.push_back(step_of(name));
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::string> Checkpoints::leftovers() const {
  std::vector<std::string> names;
  for (const std::string& name : names_in_folder(folder_.string()))
    if (step_of(name) < 0 && name != "last" && name != "best") names.push_back(name);
  return names;
}

bool Checkpoints::has_unfinished() const {
  const std::vector<std::string> names = leftovers();
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return step_after(unfinished_prefix, name) >= 0 || step_after(replaced_prefix, name) >= 0;
  });
}

std::optional<fs::path> Checkpoints::last() const {
  const fs::path link = folder_ / "last";
  if (const std::string target = target_of(link); step_of(target) >= 0) return folder_ / target;
  // No link: nothing was saved, or the first save was killed just before it made the link.
  const std::vector<int64_t> saved_steps = steps();
  if (saved_steps.empty()) return std::nullopt;
  return of_step(saved_steps.back());
}

std::string Checkpoints::link_problem(const std::string& name) const {
  const fs::path link = folder_ / name;
  std::error_code error;
  if (!fs::exists(fs::symlink_status(link, error))) return "is missing";
  if (leads_elsewhere(name)) return fmt::format("points to {}, which is no checkpoint of this folder", target_of(link));
  if (fs::is_directory(link, error)) return "";
  return fs::is_symlink(link, error) ? fmt::format("points to {}, which is not there", target_of(link))
                                     : std::string("is neither a link nor a folder");
}

std::string Checkpoints::complete_ones(const fs::path& but, Use use) const {
  std::vector<std::string> complete;
  for (const int64_t step : steps())
    if (const fs::path here = of_step(step);
        here != but && (use == Use::resuming ? can_resume(here) : !damage_of(here) && read_state(here).has_model))
      complete.push_back(here.string());
  return complete.empty() ? "" : fmt::format("complete checkpoints: {}", join(complete));
}

void Checkpoints::write(const RunParts& parts, bool best, int64_t keep_last) {
  const fs::path unfinished = folder_ / (unfinished_prefix + of_step(parts.state.step).filename().string());
  const bool first = parts.ranks == nullptr || parts.ranks->first();
  if (!written_.empty() && written_.back().step == parts.state.step) publish();  // its files would be written over
  try {
    write_checkpoint(unfinished, parts);
  } catch (const Error&) {
    if (!first) throw;
    std::error_code ignored;  // the first failure is the one to report
    fs::remove_all(unfinished, ignored);
    throw;
  }
  if (first) written_.push_back({parts.state.step, best, keep_last});
}

void Checkpoints::publish(size_t but) {
  while (written_.size() > but) publish_oldest();
}

void Checkpoints::publish_oldest() {
  const Written written = written_.front();
  written_.erase(written_.begin());
  const fs::path target = of_step(written.step);
  const std::string name = target.filename().string();
  const fs::path unfinished = folder_ / (unfinished_prefix + name), replaced = folder_ / (replaced_prefix + name);
  try {
    sync_checkpoint(unfinished);
  } catch (const Error&) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    throw;
  }
  if (fs::exists(target)) rename_path(target.string(), replaced.string());
  rename_path(unfinished.string(), target.string());
  sync_folder(folder_.string());
  // `best` first: after a kill in between, `last` is at an earlier state, which reaches this step again.
  if (written.best) replace_link((folder_ / "best").string(), name);
  replace_link((folder_ / "last").string(), name);
  sync_folder(folder_.string());
  remove_tree(replaced.string());
  prune(written.step, written.keep_last);
}

int64_t Checkpoints::unpublished_bytes() const {
  if (written_.empty()) return 0;
  return bytes_below((folder_ / (unfinished_prefix + of_step(written_.back().step).filename().string())).string());
}

void Checkpoints::prune(int64_t current, int64_t keep_last) {
  const int64_t best = step_of(fs::path(target_of(folder_ / "best")).filename().string());
  std::vector<int64_t> old = steps();
  // Later steps are those of a run that was resumed from an earlier checkpoint; they are kept.
  old.erase(std::upper_bound(old.begin(), old.end(), current), old.end());
  for (size_t i = 0; i + static_cast<size_t>(keep_last) < old.size(); ++i) {
    if (old[i] != best && old[i] != current) remove_step(old[i]);
  }
  // What resuming needs stays with the best as long as it is one of the newest, or one of the only two that have it.
  const size_t kept = std::min(static_cast<size_t>(keep_last), old.size());
  if (best < 0 || best >= old[old.size() - kept] || !fs::exists(of_step(best) / optimizer_name)) return;
  try {
    const auto another = std::find_if(old.rbegin() + 1, old.rend(),
                                      [&](int64_t step) { return step <= best || can_resume(of_step(step)); });
    if (another == old.rend() || *another <= best || damage_of(of_step(best))) return;
  } catch (const FileError&) {  // what cannot be read now is looked at again after the next save
    return;
  }
  remove_files(best, /*model=*/false);
}

/// Removes the optimizer's state, and with `model` the model too. The run's state says so first, or a kill in between
/// would look like damage.
void Checkpoints::remove_files(int64_t step, bool model) {
  const fs::path checkpoint = of_step(step);
  RunState state = read_state(checkpoint);
  state.has_optimizer = false;
  state.has_model = state.has_model && !model;
  replace_file((checkpoint / state_name).string(), to_json(state));
  remove_tree((checkpoint / optimizer_name).string());
  if (!state.has_model) remove_tree((checkpoint / model_name).string());
}

/// Renames it to a hidden name first, so that a kill never leaves half a checkpoint under its own name. A checkpoint
/// with files that training did not write stays.
void Checkpoints::remove_step(int64_t step) {
  for (const std::string& name : names_in_folder(of_step(step).string()))
    if (name != model_name && name != optimizer_name && name != state_name) return;
  const fs::path hidden = folder_ / (old_prefix + of_step(step).filename().string());
  rename_path(of_step(step).string(), hidden.string());
  remove_tree(hidden.string());
}

/// The steps that the links `best`, if there is one, and `last` name.
std::vector<int64_t> Checkpoints::linked_steps() const {
  std::vector<int64_t> steps;
  if (const int64_t best = step_of(target_of(folder_ / "best")); best >= 0) steps.push_back(best);
  if (const auto newest = last(); newest && (steps.empty() || of_step(steps[0]) != *newest))
    steps.push_back(step_of(newest->filename().string()));
  return steps;
}

std::vector<fs::path> Checkpoints::for_resuming() const {
  std::vector<fs::path> paths;
  const std::vector<int64_t> linked = linked_steps();
  for (const int64_t step : steps())
    if (std::find(linked.begin(), linked.end(), step) == linked.end()) paths.push_back(of_step(step));
  for (const int64_t step : linked)
    for (const char* const name : {optimizer_name, model_name})
      if ((name == optimizer_name || step != linked.front()) && fs::exists(of_step(step) / name))
        paths.push_back(of_step(step) / name);
  return paths;
}

void Checkpoints::remove_for_resuming(bool tensors) {
  if (!tensors && for_resuming().empty()) return;
  const std::vector<int64_t> linked = linked_steps();
  for (const int64_t step : linked)
    if (const auto damage = damage_of(of_step(step)))
      throw Error(fmt::format("{}: nothing is removed; capstan verify says what is lost", *damage));
  if (linked.empty()) return;
  for (const char* const name : {"best", "last"})  // a checkpoint without its link looks like one that may be removed
    if (const std::string problem = link_problem(name);
        !problem.empty() && (name == std::string("last") || !read_state(of_step(linked.back())).best.empty()))
      throw Error(
          fmt::format("{} {}: nothing is removed; capstan train with the run's configuration makes the link anew",
                      (folder_ / name).string(), problem));
  for (const int64_t step : steps())
    if (std::find(linked.begin(), linked.end(), step) == linked.end()) remove_step(step);
  for (const int64_t step : linked)  // the best first: as long as the last one is whole, the run can go on
    remove_files(step, tensors || step != linked.front());
}

void Checkpoints::load(const fs::path& checkpoint, const RunParts& parts, const AcceptState& accept) const {
  if (const auto damage = damage_of(checkpoint)) {
    const std::string others = complete_ones(checkpoint, Use::resuming);
    throw Error(others.empty() ? fmt::format("{}; no other checkpoint is complete", *damage)
                               : fmt::format("{}; {}; continue from one of them with --resume-from", *damage, others));
  }
  // The files are undamaged: from here on only the configuration can differ.
  if (accept) accept(read_state(checkpoint), checkpoint);
  read_checkpoint(checkpoint, parts);
}

std::optional<Checkpoints::Resumed> Checkpoints::load_newest(const RunParts& parts, const AcceptState& accept) {
  const auto newest = last();
  if (!newest) return std::nullopt;
  // Later steps than that of `last` are left of a run that was resumed from an earlier checkpoint: another history.
  const int64_t newest_step = step_of(newest->filename().string());
  std::vector<fs::path> candidates{*newest};
  const std::vector<int64_t> saved_steps = steps();
  for (auto step = saved_steps.rbegin(); step != saved_steps.rend(); ++step)
    if (of_step(*step) != *newest && (newest_step < 0 || *step < newest_step)) candidates.push_back(of_step(*step));
  std::vector<std::pair<fs::path, std::string>> damaged;
  for (const fs::path& candidate : candidates) {
    if (const auto damage = damage_of(candidate)) {
      damaged.emplace_back(candidate, *damage);
      continue;
    }
    const RunState saved = read_state(candidate);
    if (!saved.has_optimizer && candidate != *newest) continue;
    if (accept) accept(saved, candidate);
    read_checkpoint(candidate, parts);
    Resumed resumed{candidate, {}};
    const bool strange = leads_elsewhere("last");
    if (strange)
      resumed.warnings.push_back(fmt::format("{} {}; the run goes on from step {}", (folder_ / "last").string(),
                                             link_problem("last"), parts.state.step));
    for (const auto& [checkpoint, damage] : damaged)
      resumed.warnings.push_back(
          fmt::format("{}{}; the run goes back to step {}", damage, set_aside(checkpoint), parts.state.step));
    std::error_code error;
    if (damaged.empty() && !strange && fs::is_symlink(folder_ / "last", error)) return resumed;
    // Nothing may be left to train, and so no later save that would make the link.
    replace_link((folder_ / "last").string(), candidate.filename().string());
    sync_folder(folder_.string());
    return resumed;
  }
  if (const std::string models = complete_ones(*newest, Use::predicting); !models.empty())
    throw Error(fmt::format(
        "{}; {}, without the optimizer's state: begin another run from there with another name and train.init_from",
        damaged.front().second, models));
  throw Error(fmt::format(
      "{}; no other checkpoint is complete: to train anew from the first step, remove {} or give it another "
      "name",
      damaged.front().second, folder_.string()));
}

/// Renames a damaged checkpoint, if it is there; returns where it is now, for a warning.
std::string Checkpoints::set_aside(const fs::path& checkpoint) {
  if (checkpoint.parent_path() != folder_ || !fs::exists(fs::symlink_status(checkpoint))) return "";
  const std::string name = damaged_prefix + checkpoint.filename().string();
  fs::path target = folder_ / name;
  for (int count = 2; fs::exists(fs::symlink_status(target)); ++count)
    target = folder_ / fmt::format("{}-{}", name, count);
  rename_path(checkpoint.string(), target.string());
  return fmt::format("; what is left of this checkpoint is now {}", target.string());
}

void Checkpoints::repair_best(const RunState& state) {
  const fs::path link = folder_ / "best";
  std::error_code error;
  const bool dangling = fs::is_symlink(link, error) && (leads_elsewhere("best") || !fs::exists(link, error));
  if (state.best.empty() || !fs::is_directory(of_step(state.best_step), error)) {
    if (dangling) remove_tree(link.string());
    return;
  }
  if (dangling || !fs::is_symlink(link, error))
    replace_link(link.string(), of_step(state.best_step).filename().string());
}

}  // namespace capstan
