// Every change of the folder is a rename, a new run.json or a removal, in an order that leaves it usable after each
// (the head of checkpoint.hpp). Which checkpoint is damaged is decided by open_checkpoint().
// tests/train/test_run_files.cpp.
#include "train/checkpoints/checkpoint.hpp"

#include <algorithm>
#include <limits>

#include "core/io/file.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

constexpr const char* unfinished_prefix = ".unfinished-";
constexpr const char* old_prefix = ".old-";
constexpr const char* damaged_prefix = "damaged-";
constexpr const char* replaced_prefix = "replaced-";

/// Step of a folder called step-N behind a prefix; -1 for any other name, which is none of the program's.
int64_t step_after(const char* prefix, const std::string& name) {
  return starts_with(name, prefix) ? step_of(name.substr(std::string(prefix).size())) : -1;
}

int64_t best_of(const RunState& state) { return state.best.empty() ? -1 : state.best_step; }

/// The mark of a folder that has none.
RunMark new_mark(const fs::path& folder) {
  const std::vector<int64_t> steps = saved_steps(folder);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    if (const SavedCheckpoint found = open_checkpoint(folder_of_step(folder, *step), Reading::all); found.whole())
      return {found.state.run, *step};
  return {new_run_id(), -1};
}

}  // namespace

fs::path Checkpoints::hidden(const char* prefix, int64_t step) const {
  return folder_ / (prefix + of_step(step).filename().string());
}

std::optional<fs::path> Checkpoints::last() const {
  const int64_t step = last_step(folder_);
  if (step < 0) return std::nullopt;
  return of_step(step);
}

void Checkpoints::recover() {
  make_folders(folder_.string());
  remove_unfinished(folder_.string());
  const auto mark = read_mark(folder_);  // a damaged one must not make checkpoints look damaged
  for (const std::string& name : names_in_folder(folder_.string())) {
    const fs::path path = folder_ / name;
    const int64_t unfinished = step_after(unfinished_prefix, name), replaced = step_after(resaved_prefix, name);
    if (unfinished < 0 && replaced < 0 && step_after(old_prefix, name) < 0) continue;
    const SavedCheckpoint found = open_checkpoint(path, unfinished >= 0 ? Reading::all : Reading::state);
    if (unfinished >= 0 && found.whole())
      written_.push_back({unfinished, best_of(found.state), std::numeric_limits<int64_t>::max()});
    else if (replaced >= 0 && !fs::exists(of_step(replaced)))
      rename_path(path.string(), of_step(replaced).string());
    else
      remove_tree(path.string());
  }
  std::sort(written_.begin(), written_.end(), [](const Written& a, const Written& b) { return a.step < b.step; });
  mark_ = mark ? *mark : new_mark(folder_);
  if (!mark) set_last(mark_.last);
  publish();
}

void Checkpoints::write(const RunParts& parts, int64_t keep_last) {
  const fs::path unfinished = hidden(unfinished_prefix, parts.state.step);
  const bool first = parts.ranks == nullptr || parts.ranks->first();
  if (!written_.empty() && written_.back().step == parts.state.step) publish();  // its files would be written over
  parts.state.run = mark_.id;
  try {
    write_checkpoint(unfinished, parts);
  } catch (const Error&) {
    if (!first) throw;
    std::error_code ignored;  // the first failure is the one to report
    fs::remove_all(unfinished, ignored);
    throw;
  }
  if (first) written_.push_back({parts.state.step, best_of(parts.state), keep_last});
}

void Checkpoints::publish(size_t but) {
  while (written_.size() > but) publish_oldest();
}

void Checkpoints::publish_oldest() {
  const Written written = written_.front();
  written_.erase(written_.begin());
  const fs::path target = of_step(written.step);
  const fs::path unfinished = hidden(unfinished_prefix, written.step), replaced = hidden(resaved_prefix, written.step);
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
  set_last(written.step);
  remove_tree(replaced.string());
  prune(written);
}

int64_t Checkpoints::unpublished_bytes() const {
  return written_.empty() ? 0 : bytes_below(hidden(unfinished_prefix, written_.back().step).string());
}

void Checkpoints::prune(const Written& saved) {
  const int64_t current = saved.step, best = saved.best, keep_last = saved.keep_last;
  const std::vector<int64_t> old = steps();
  for (size_t i = 0; i + static_cast<size_t>(keep_last) < old.size(); ++i)
    if (old[i] != best && old[i] != current) remove_step(old[i]);
  // What resuming needs stays with the best as long as it is one of the newest, or one of the only two that have it.
  const size_t kept = std::min(static_cast<size_t>(keep_last), old.size());
  if (best < 0 || best >= old[old.size() - kept] || !fs::exists(of_step(best) / optimizer_name)) return;
  try {
    const auto another = std::find_if(old.rbegin() + 1, old.rend(), [&](int64_t step) {
      return step <= best || open_checkpoint(of_step(step), Reading::all).can_resume();
    });
    if (another == old.rend() || *another <= best || !open_checkpoint(of_step(best), Reading::all).whole()) return;
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
  state.files.erase(optimizer_name);
  if (model) state.files.erase(model_name);
  replace_file((checkpoint / state_name).string(), to_json(state));
  for (const char* const name : {optimizer_name, model_name})
    if (state.files.count(name) == 0) remove_tree((checkpoint / name).string());
}

/// Renames it to a hidden name first, so that a kill never leaves half a checkpoint under its own name. A checkpoint
/// with files that training did not write stays.
void Checkpoints::remove_step(int64_t step) {
  for (const std::string& name : names_in_folder(of_step(step).string()))
    if (name != model_name && name != optimizer_name && name != state_name) return;
  const fs::path old = hidden(old_prefix, step);
  rename_path(of_step(step).string(), old.string());
  remove_tree(old.string());
}

void Checkpoints::set_last(int64_t step) {
  mark_.last = step;
  replace_file((folder_ / mark_name).string(), to_json(mark_));
}

std::vector<fs::path> Checkpoints::for_resuming() const {
  if (!last()) return {};
  const fs::path best = open_best(folder_, Reading::state)->folder;
  std::vector<fs::path> paths;
  for (const int64_t step : steps())
    for (const fs::path& file : {of_step(step) / optimizer_name, of_step(step) / model_name})
      if (file != best / model_name && fs::exists(file)) paths.push_back(file);
  return paths;
}

void Checkpoints::remove_for_resuming(bool tensors) {
  const auto newest = last();
  if (!newest || (!tensors && for_resuming().empty())) return;
  const SavedCheckpoint last = open_checkpoint(*newest, Reading::all), best = *open_best(folder_, Reading::all);
  for (const SavedCheckpoint* const kept : {&best, &last})
    if (!kept->whole())
      throw Error(fmt::format("{}: nothing is removed; capstan verify says what is lost", kept->damage));
  for (const int64_t step : steps())
    if (step != best.state.step && step != last.state.step) remove_step(step);
  remove_files(best.state.step, tensors);  // the best first: as long as the last one is whole, the run can go on
  if (last.state.step != best.state.step) remove_files(last.state.step, /*model=*/true);
}

void Checkpoints::load(const fs::path& checkpoint, const RunParts& parts, const AcceptState& accept) const {
  const SavedCheckpoint found = open_checkpoint(checkpoint, Reading::all);
  if (!found.whole()) {
    const std::string others = complete_checkpoints(folder_, Reading::all);
    throw Error(others.empty()
                    ? fmt::format("{}; no other checkpoint is complete", found.damage)
                    : fmt::format("{}; {}; continue from one of them with --resume-from", found.damage, others));
  }
  // The files are undamaged: from here on only the configuration can differ.
  if (accept) accept(found.state, checkpoint);
  read_checkpoint(found, parts);
}

void Checkpoints::set_later_aside(int64_t than) {
  for (const int64_t step : steps())
    if (step > than) set_aside(of_step(step), replaced_prefix);
  if (mark_.last > than) set_last(steps().empty() ? -1 : steps().back());
}

std::optional<Checkpoints::Resumed> Checkpoints::load_newest(const RunParts& parts, const AcceptState& accept) {
  const int64_t newest = last_step(folder_);
  if (newest < 0) return std::nullopt;
  std::vector<int64_t> candidates = steps();
  if (candidates.empty() || candidates.back() < newest) candidates.push_back(newest);
  std::vector<SavedCheckpoint> damaged;
  for (auto step = candidates.rbegin(); step != candidates.rend(); ++step) {
    const fs::path candidate = of_step(*step);
    SavedCheckpoint found = open_checkpoint(candidate, Reading::all);
    if (!found.whole()) {
      damaged.push_back(std::move(found));
      continue;
    }
    if (!found.state.has_optimizer() && *step != newest) continue;
    if (accept) accept(found.state, candidate);
    read_checkpoint(found, parts);
    Resumed resumed{candidate, {}};
    for (const SavedCheckpoint& other : damaged)
      resumed.warnings.push_back(fmt::format("{}{}; the run goes back to step {}", other.damage,
                                             set_aside(other.folder, damaged_prefix), found.state.step));
    if (mark_.last != *step) set_last(*step);
    return resumed;
  }
  const std::string models = complete_checkpoints(folder_, Reading::weights);
  throw Error(damaged.front().damage + "; " +
              (models.empty()
                   ? fmt::format("no other checkpoint is complete: to train anew from the first step, remove "
                                 "{} or give it another name",
                                 folder_.string())
                   : models + ", without the optimizer's state: begin another run from there with another "
                              "name and train.init_from"));
}

/// Renames a checkpoint, if it is there; returns where it is now, for a warning.
std::string Checkpoints::set_aside(const fs::path& checkpoint, const char* prefix) {
  if (!fs::exists(fs::symlink_status(checkpoint))) return "";
  const std::string name = prefix + checkpoint.filename().string();
  fs::path target = folder_ / name;
  for (int count = 2; fs::exists(fs::symlink_status(target)); ++count)
    target = folder_ / fmt::format("{}-{}", name, count);
  rename_path(checkpoint.string(), target.string());
  return fmt::format("; what is left of this checkpoint is now {}", target.string());
}

}  // namespace capstan
