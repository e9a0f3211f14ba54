// Reads every file of a run folder and compares it with the newest whole checkpoint: its checksums, and what it was
// trained with. Nothing is written. tests/cli/runs/test_verify.cpp.
#include "run/summaries/run_check.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "core/io/file.hpp"
#include "core/strings/strings.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "run/setup/run_config.hpp"
#include "run/setup/saved_run.hpp"
#include "train/checkpoints/saved_checkpoint.hpp"
#include "train/records/metrics.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

std::string size_text(const fs::path& file) { return fmt::format("{} bytes", bytes_below(file.string())); }

/// What a whole checkpoint contains, in words.
std::string content_of(const RunState& state, const RunState& last) {
  std::string content = "checksums agree";
  if (!state.has_model())
    content = "the state alone, of the end of the run";
  else if (state.slim)
    content += "; for prediction alone (capstan slim)";
  else if (!state.has_optimizer())
    content += "; without what resuming needs";
  return content + (!last.best.empty() && last.best_step == state.step ? "; the best" : "");
}

/// One pass over a run folder. Checkpoints are read first, since the newest whole one says what the other files must
/// be.
class RunCheck {
 public:
  explicit RunCheck(fs::path folder) : folder_(std::move(folder)), checkpoints_(folder_ / "checkpoints") {}

  std::vector<RunPart> parts() {
    if (!fs::exists(folder_ / "config.yaml") && !fs::is_directory(checkpoints_)) throw Error(no_run(folder_));
    check(std::string("checkpoints/") + mark_name, [&] { return check_mark(); });
    read_checkpoints();
    check("config.yaml", [&] { return check_config(); });
    check("tokenizer.json", [&] { return check_tokenizer(); });
    if ((config_ && facts_of(config_->model).classifies()) || fs::exists(folder_ / "classes.txt"))
      check("classes.txt", [&] { return check_classes(); });
    if (fs::exists(folder_ / "metrics.jsonl") || (state_ && state_->metrics_bytes > 0))
      check("metrics.jsonl", [&] { return check_metrics(); });
    report_checkpoints();
    return std::move(parts_);
  }

  /// Has a process that trains here saved another step since run.json was read?
  bool went_on() const {
    const auto mark = last_ >= 0 ? read_mark(checkpoints_) : std::nullopt;
    return mark && mark->last != last_;
  }

 private:
  /// Adds a part whose content `read` returns, or as damaged where it throws Error.
  template <class Read>
  void check(const std::string& name, const Read& read) {
    try {
      parts_.push_back({name, false, read()});
    } catch (const NewerFile&) {
      throw;
    } catch (const Error& error) {
      parts_.push_back({name, true, error.what()});
    }
  }

  /// Reads all checkpoints but those that a process that trains here removes meanwhile.
  void read_checkpoints() {
    for (const int64_t step : saved_steps(checkpoints_)) {
      const fs::path folder = folder_of_step(checkpoints_, step);
      SavedCheckpoint found = open_checkpoint(folder, Reading::all);
      if (!found.whole()) found = open_checkpoint(folder, Reading::all);  // a part may have been removed on purpose
      if (fs::exists(folder)) found_[step] = {folder, found.damage, found.state, {}, {}};
    }
    if (last_ >= 0 && found_.count(last_) == 0 && !went_on())
      found_[last_] = open_checkpoint(folder_of_step(checkpoints_, last_), Reading::state);
    for (const auto& [step, found] : found_)
      if (found.whole()) state_ = found.state;
  }

  /// Throws Error unless the newest whole checkpoint was trained with this.
  void refuse_other(const char* what, const std::string& ours) const {
    if (!state_ || state_->identity.count(what) == 0) return;
    std::string saved = state_->identity.at(what);
    if (what == std::string("model")) saved = to_yaml(load_config_text<TaskConfig>(saved, "config.yaml", "model"));
    if (saved != ours) throw Error(fmt::format("not what step {} was trained with", state_->step));
  }

  std::string check_config() {
    config_ = load_run_config(folder_);
    refuse_other("model", to_yaml(config_->model));
    std::string what = size_text(folder_ / "config.yaml");
    if (!state_) return what;
    const std::vector<std::string> changed = changes(state_->settings, settings_of(config_->train));
    if (changed.empty()) return what;  // a run may go on with others
    return what + fmt::format("; since step {} was saved, train.{}", state_->step, join(changed, ", train."));
  }

  std::string check_tokenizer() const {
    const std::string path = (folder_ / "tokenizer.json").string();
    const std::shared_ptr<const Tokenizer> tokenizer = tokenizer_from_json(read_file(path), path);
    refuse_other("tokenizer", identity_of(*tokenizer));
    return fmt::format("{}, {} tokens", tokenizer->kind(), tokenizer->vocabulary_size());
  }

  std::string check_classes() const {
    refuse_other("classes", read_file((folder_ / "classes.txt").string()));
    return size_text(folder_ / "classes.txt");
  }

  std::string check_metrics() const {
    const std::string text = read_metrics(folder_, state_ ? &*state_ : nullptr);
    const std::string lines = fmt::format("{} lines", std::count(text.begin(), text.end(), '\n'));
    const auto marked = static_cast<std::ptrdiff_t>(state_ ? std::max<int64_t>(state_->metrics_bytes, 0) : 0);
    const auto after = std::count(text.begin() + marked, text.end(), '\n');
    if (!state_ || after == 0) return lines;
    return lines + fmt::format(", {} of them since step {} was saved, without a checksum", after, state_->step);
  }

  /// Training makes run.json before all else.
  std::string check_mark() {
    const auto mark = read_mark(checkpoints_);
    if (!mark && (!saved_steps(checkpoints_).empty() || fs::exists(folder_ / "metrics.jsonl")))
      throw Error("is missing");
    if (mark) last_ = mark->last;
    return last_ >= 0 ? fmt::format("step {} was saved last", last_) : "no step has been saved";
  }

  void report_checkpoints() {
    if (state_)
      if (const SavedCheckpoint best = *open_best(checkpoints_, Reading::state); !best.whole() && !went_on()) {
        SavedCheckpoint& found = found_[step_of(best.folder.filename().string())];
        if (found.whole()) found = best;
      }
    for (const auto& [step, found] : found_)
      parts_.push_back({"checkpoints/" + folder_of_step("", step).string(), !found.whole(),
                        found.whole() ? content_of(found.state, *state_) : found.damage});
  }

  fs::path folder_;
  const fs::path checkpoints_;
  std::map<int64_t, SavedCheckpoint> found_;  // by step
  int64_t last_ = -1;                         // the step that run.json says was saved last
  std::optional<RunState> state_;             // of the last whole checkpoint
  std::optional<RunConfig> config_;
  std::vector<RunPart> parts_;
};

}  // namespace

std::vector<RunPart> check_run(const fs::path& folder) {
  constexpr int attempts = 5;  // while a process trains here
  for (int attempt = 1;; ++attempt) {
    RunCheck check(folder);
    std::vector<RunPart> parts = check.parts();
    if (attempt == attempts || !check.went_on()) return parts;
  }
}

bool print_parts(const std::string& run, const std::vector<RunPart>& parts, std::ostream& out) {
  size_t width = 0;
  bool whole = true;
  for (const RunPart& part : parts) {
    width = std::max(width, part.name.size());
    whole = whole && !part.damaged;
  }
  out << fmt::format("{}: {}\n", run, whole ? "whole" : "DAMAGED");
  for (const RunPart& part : parts)
    out << fmt::format("  {:<{}}  {:<7}  {}\n", part.name, width, part.damaged ? "DAMAGED" : "whole", part.what);
  return whole;
}

}  // namespace capstan
