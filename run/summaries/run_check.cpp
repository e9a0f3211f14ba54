// Reads every file of a run folder and compares it with the newest whole checkpoint: its checksums, and what it was
// trained with. Nothing is written. tests/cli/runs/test_verify.cpp.
#include "run/summaries/run_check.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "core/io/json.hpp"
#include "core/strings/strings.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "run/setup/saved_config.hpp"
#include "run/setup/saved_run.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/records/metrics.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

std::string size_text(const fs::path& file) {
  std::error_code error;
  const auto bytes = fs::file_size(file, error);
  return error ? "" : fmt::format("{} bytes", bytes);
}

/// What a complete checkpoint contains, in words.
std::string content_of(const RunState& state) {
  if (!state.has_model) return "the state alone, of the end of the run";
  if (state.slim) return "checksums agree; for prediction alone (capstan slim)";
  return state.has_optimizer ? "checksums agree" : "checksums agree; without what resuming needs";
}

/// One pass over a run folder. Checkpoints are read first, since the newest whole one says what the other files must
/// be.
class RunCheck {
 public:
  explicit RunCheck(fs::path folder) : folder_(std::move(folder)), checkpoints_(folder_ / "checkpoints") {}

  std::vector<RunPart> parts() {
    if (!fs::exists(folder_ / "config.yaml") && !fs::is_directory(folder_ / "checkpoints"))
      throw Error(no_run(folder_));
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

  /// Reads all checkpoints. A process that trains here may save and remove some meanwhile: they are then listed again.
  void read_checkpoints() {
    constexpr int max_readings = 5;
    for (int i = 0; i < max_readings && !read_present_checkpoints(); ++i) {
    }
    const auto last = checkpoints_.last();
    for (const auto& [step, state] : states_)
      if (!state_ || !last || checkpoints_.of_step(state_->step) != *last) state_ = state;
  }

  /// Checks the checkpoints that have not been checked. Returns false when one went away meanwhile.
  bool read_present_checkpoints() {
    bool stayed = true;
    for (const int64_t step : checkpoints_.steps()) {
      if (states_.count(step) + damage_.count(step) > 0) continue;
      const fs::path checkpoint = checkpoints_.of_step(step);
      std::optional<std::string> damage;
      try {
        damage = damage_of(checkpoint);
        if (damage) damage = damage_of(checkpoint);  // training may have removed a part on purpose
        if (!damage) states_[step] = read_state(checkpoint);
      } catch (const NewerFile&) {
        throw;  // what this version does not know is no damage
      } catch (const Error& error) {
        damage = error.what();
      }
      if (damage && fs::exists(checkpoint))
        damage_[step] = *damage;
      else if (damage)
        stayed = false;
    }
    return stayed;
  }

  /// Throws Error unless the newest whole checkpoint was trained with this.
  void refuse_other(const char* what, const std::string& ours) const {
    if (!state_ || state_->identity.count(what) == 0) return;
    std::string saved = state_->identity.at(what);
    if (what == std::string("model")) saved = to_yaml(saved_part<TaskConfig>(saved, "model", "config.yaml"));
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

  /// metrics.jsonl must begin with the bytes that the last checkpoint recorded; what follows them is of steps after it.
  std::string check_metrics() const {
    const std::string text = read_file((folder_ / "metrics.jsonl").string());
    const MetricsText readable = readable_metrics(text, std::numeric_limits<int64_t>::max());
    if (readable.bad > 0) throw Error(fmt::format("{} lines cannot be read", readable.bad));
    const std::string lines = fmt::format("{} lines", readable.lines);
    if (!state_ || state_->metrics_bytes < 0) return lines;
    const auto marked = static_cast<size_t>(state_->metrics_bytes);
    if (text.size() < marked) throw Error(fmt::format("lines up to step {} are missing", state_->step));
    if (hash_hex(std::string_view(text).substr(0, marked)) != state_->metrics_checksum)
      throw Error(fmt::format("not what the checkpoint of step {} recorded", state_->step));
    const auto after = std::count(text.begin() + state_->metrics_bytes, text.end(), '\n');
    if (after == 0) return lines;
    return lines + fmt::format(", {} of them since step {} was saved, without a checksum", after, state_->step);
  }

  void report_checkpoints() {
    std::map<int64_t, RunPart> by_step;
    const auto add = [&](int64_t step, bool damaged, const std::string& what) {
      by_step[step] = {"checkpoints/" + checkpoints_.of_step(step).filename().string(), damaged, what};
    };
    for (const auto& [step, state] : states_) add(step, false, content_of(state));
    for (const auto& [step, damage] : damage_) add(step, true, damage);
    for (const auto& [step, part] : by_step) parts_.push_back(part);
    if (by_step.empty()) {
      const std::string sign = sign_of_saves();
      parts_.push_back({"checkpoints", !sign.empty(),
                        sign.empty() ? "no step has been saved" : fmt::format("none is left, though {}", sign)});
      return;
    }
    for (const char* const name : {"last", "best"})
      if (const auto problem = checkpoints_.link_problem(name);
          !problem.empty() && (name == std::string("last") || (state_ && !state_->best.empty())))
        parts_.push_back({std::string("checkpoints/") + name, true, problem});
  }

  /// What shows that checkpoints were saved, of a run that has none; empty where nothing does. Each sign is one that no
  /// kill can leave before the first save: links are made after what they name, and a step begins only after the save
  /// that the one before it asked for.
  std::string sign_of_saves() const {
    const bool has_folder = fs::is_directory(checkpoints_.folder());
    if (has_folder && checkpoints_.has_unfinished()) return "";  // training completes or undoes it
    std::error_code unknown;
    for (const char* const name : {"last", "best"})
      if (fs::is_symlink(checkpoints_.folder() / name, unknown))
        return fmt::format("checkpoints/{} {}", name, checkpoints_.link_problem(name));
    const auto [last, best] = recorded_steps();
    const std::string goes_on = fmt::format("metrics.jsonl goes on to step {}", last);
    if (best >= 0 && last > best)
      return fmt::format("{} after the new best of step {}, which was saved", goes_on, best);
    const int64_t save_every = config_ && !facts_of(config_->model).is_solved ? config_->train.save_every : 0;
    if (save_every > 0 && last > save_every) return fmt::format("{}, and train.save_every is {}", goes_on, save_every);
    // A run makes this folder before the first line of its metrics.jsonl.
    return last >= 0 && !has_folder ? goes_on : "";
  }

  /// The last step in metrics.jsonl, and the first one that was the best so far; -1 where there is none.
  std::pair<int64_t, int64_t> recorded_steps() const {
    int64_t last = -1, best = -1;
    std::ifstream file(folder_ / "metrics.jsonl");
    for (std::string text; std::getline(file, text);) {
      const nlohmann::json line = try_parse_json(text);
      if (!line.is_object() || !line.contains("step")) continue;
      const int64_t step = whole_number(line["step"], 0).value_or(-1);
      last = std::max(last, step);
      if (best < 0 && line.contains("best") && line["best"] == true) best = step;
    }
    return {last, best};
  }

  fs::path folder_;
  Checkpoints checkpoints_;
  std::map<int64_t, RunState> states_;     // by step, of the checkpoints that are whole
  std::map<int64_t, std::string> damage_;  // of the others
  std::optional<RunState> state_;          // of the last whole checkpoint
  std::optional<RunConfig> config_;
  std::vector<RunPart> parts_;
};

}  // namespace

std::vector<RunPart> check_run(const fs::path& folder) { return RunCheck(folder).parts(); }

bool any_damaged(const std::vector<RunPart>& parts) {
  return std::any_of(parts.begin(), parts.end(), [](const RunPart& part) { return part.damaged; });
}

void print_parts(const std::vector<RunPart>& parts, std::ostream& out) {
  size_t width = 0;
  for (const RunPart& part : parts) width = std::max(width, part.name.size());
  for (const RunPart& part : parts)
    out << fmt::format("  {:<{}}  {:<7}  {}\n", part.name, width, part.damaged ? "DAMAGED" : "whole", part.what);
}

}  // namespace capstan
