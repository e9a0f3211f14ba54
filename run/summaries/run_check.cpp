// Reads every file of a run folder and compares it with the newest whole checkpoint: its checksums, and what it was
// trained with. Each damaged part says what is lost with it. Nothing is written. tests/cli/runs/test_verify.cpp.
#include "run/summaries/run_check.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>

#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "core/strings/printable.hpp"
#include "core/strings/strings.hpp"
#include "data/text/token_cache.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "run/setup/run_model.hpp"
#include "run/setup/saved_config.hpp"
#include "run/summaries/lost_checkpoints.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/records/metrics.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;
using State = RunPart::State;

std::string size_text(const fs::path& file) {
  std::error_code error;
  const auto bytes = fs::file_size(file, error);
  return error ? "" : fmt::format("{} bytes", bytes);
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
    check_config();
    check_tokenizer();
    check_classes();
    check_metrics();
    report_checkpoints();
    report_links();
    report_leftovers();
    check_cache();
    return std::move(parts_);
  }

 private:
  void add(const std::string& name, State state, const std::string& what, const std::string& consequence = "") {
    parts_.push_back({name, state, what, consequence});
  }
  /// What is lost with a file that training writes when it begins: nothing, since the same command writes it again, but
  /// all of a slim run, which nothing trains.
  std::string written_again() const {
    if (state_ && state_->slim) return "the slim run: make it again from the one that it was made from (capstan slim)";
    std::error_code unknown;
    const bool here = config_ && fs::equivalent(fs::path(config_->folder) / config_->name, folder_, unknown);
    const fs::path path = fs::absolute(folder_, unknown).lexically_normal();
    const fs::path own = path.has_filename() ? path : path.parent_path();
    return fmt::format("nothing: capstan train --config {}{} writes it again",
                       config_ ? shell_word((folder_ / "config.yaml").string()) : "FILE, as the run was trained,",
                       here ? ""
                            : fmt::format(" --set folder={} name={}", shell_word(own.parent_path().string()),
                                          shell_word(own.filename().string())));
  }
  /// Adds a part whose content `read` returns, or as damaged where it throws Error. Returns whether it is whole.
  template <class Read>
  bool add_read(const std::string& name, const std::string& consequence, const Read& read) {
    try {
      add(name, State::whole, read());
      return true;
    } catch (const NewerFile&) {
      throw;
    } catch (const Error& error) {
      add(name, State::damaged, error.what(), consequence);
      return false;
    }
  }

  /// Reads all checkpoints. A process that trains here may save and remove some meanwhile: they are then listed again.
  void read_checkpoints() {
    constexpr int max_readings = 5;
    for (int i = 0; i < max_readings && !read_present_checkpoints(); ++i) {
    }
    const auto last = link_step("last");
    if (last && states_.count(*last) > 0)
      state_ = states_[*last];
    else if (!states_.empty())
      state_ = states_.rbegin()->second;
  }

  /// Checks the checkpoints that have not been checked. Returns false when one went away meanwhile.
  bool read_present_checkpoints() {
    if (!fs::is_directory(checkpoints_.folder())) return true;
    bool stayed = true;
    for (const int64_t step : checkpoints_.steps()) {
      if (damage_.count(step) > 0) continue;
      std::optional<std::string> damage;
      try {
        damage = damage_of(checkpoints_.of_step(step));
        if (damage) damage = damage_of(checkpoints_.of_step(step));  // training may have removed a part on purpose
        if (!damage) states_[step] = read_state(checkpoints_.of_step(step));
      } catch (const NewerFile&) {
        throw;  // what this version does not know is no damage
      } catch (const Error& error) {
        damage = error.what();
      }
      if (damage && !fs::exists(checkpoints_.of_step(step)))
        stayed = false;
      else
        damage_[step] = damage;
    }
    return stayed;
  }

  /// The step that a link names; nothing when there is no such link.
  std::optional<int64_t> link_step(const char* name) const {
    std::error_code error;
    const std::string target = fs::read_symlink(checkpoints_.folder() / name, error).filename().string();
    if (error) return std::nullopt;
    for (const auto& [step, damage] : damage_)
      if (checkpoints_.of_step(step).filename() == target) return step;
    return std::nullopt;
  }

  void check_config() {
    add_read("config.yaml", written_again(), [&] {
      config_ = load_run_config(folder_);
      refuse_other("model", to_yaml(config_->model), [](const std::string& saved) {
        return to_yaml(saved_part<TaskConfig>(saved, "model", "config.yaml"));
      });
      const std::vector<std::string> changed =
          state_ ? changes(state_->settings, settings_of(config_->train)) : std::vector<std::string>{};
      std::string what = size_text(folder_ / "config.yaml");
      if (!changed.empty())  // a run may go on with them
        what += fmt::format("; since step {} was saved, train.{}", state_->step, join(changed, ", train."));
      return what;
    });
  }

  void check_tokenizer() {
    const std::string path = (folder_ / "tokenizer.json").string();
    add_read("tokenizer.json", written_again(), [&] {
      tokenizer_ = tokenizer_from_json(read_file(path), path);
      refuse_other("tokenizer", identity_of(*tokenizer_));
      return fmt::format("{}, {} tokens", tokenizer_->kind(), tokenizer_->vocabulary_size());
    });
  }

  void check_classes() {
    const bool wanted = config_ && facts_of(config_->model).classifies();
    if (!wanted && !fs::exists(folder_ / "classes.txt")) return;
    add_read("classes.txt", written_again(), [&] {
      refuse_other("classes", read_file((folder_ / "classes.txt").string()));
      return size_text(folder_ / "classes.txt");
    });
  }

  /// Throws Error unless the newest whole checkpoint was trained with this. `renewed`: what an earlier version recorded
  /// as this one does.
  void refuse_other(const char* what, const std::string& ours,
                    const std::function<std::string(const std::string&)>& renewed = {}) const {
    if (!state_) return;
    const auto trained = state_->identity.find(what);
    if (trained != state_->identity.end() && (renewed ? renewed(trained->second) : trained->second) != ours)
      throw Error(fmt::format("not what step {} was trained with", state_->step));
  }

  /// metrics.jsonl must begin with the bytes that the last checkpoint recorded; what follows them is of steps after it.
  void check_metrics() {
    const fs::path path = folder_ / "metrics.jsonl";
    if (!fs::exists(path) && (!state_ || state_->metrics_bytes <= 0)) return;
    add_read("metrics.jsonl", "a part of the learning curve; the model and the run are not affected", [&] {
      const std::string text = read_file(path.string());
      const MetricsText readable = readable_metrics(text, std::numeric_limits<int64_t>::max());
      if (readable.bad > 0) throw Error(fmt::format("{} lines cannot be read", readable.bad));
      std::string unchecked;
      if (state_ && state_->metrics_bytes >= 0) {
        const auto marked = static_cast<size_t>(state_->metrics_bytes);
        if (text.size() < marked) throw Error(fmt::format("lines up to step {} are missing", state_->step));
        if (hash_hex(std::string_view(text).substr(0, marked)) != state_->metrics_checksum)
          throw Error(fmt::format("not what the checkpoint of step {} recorded", state_->step));
        if (const auto after = std::count(text.begin() + state_->metrics_bytes, text.end(), '\n'); after > 0)
          unchecked = fmt::format(", {} of them since step {} was saved, without a checksum", after, state_->step);
      }
      return fmt::format("{} lines{}", readable.lines, unchecked);
    });
  }

  void report_checkpoints() {
    const auto last = link_step("last"), best = link_step("best");
    const auto resumable =
        std::count_if(states_.begin(), states_.end(), [](const auto& found) { return found.second.has_optimizer; });
    const bool solved = config_ && facts_of(config_->model).is_solved;  // a solved run has only one checkpoint
    const bool keeps_one = damage_.size() == 1 && resumable == 1 && !solved;
    const std::string only = fmt::format("the only complete checkpoint: damage to it loses the run{}",
                                         keeps_one ? " (train.keep_last: 2 keeps another)" : "");
    for (const auto& [step, damage] : damage_) {
      const std::string name = "checkpoints/" + checkpoints_.of_step(step).filename().string();
      if (damage)
        add(name, State::damaged, *damage, loss_of(step, last, best));
      else
        add(name, State::whole, content_of(states_[step]),
            states_.size() == 1                             ? only
            : resumable == 1 && states_[step].has_optimizer ? "the only one that training can go on from"
                                                            : "");
    }
    if (!damage_.empty()) return;
    const std::string sign = sign_of_saves(folder_, config_);
    if (sign.empty())
      add("checkpoints", State::note, "no step has been saved");
    else
      add("checkpoints", State::damaged, fmt::format("none is left, though {}", sign),
          "all training, unless a copy of the folder is put back: without one, training begins anew");
  }

  /// What a complete checkpoint contains, in words.
  std::string content_of(const RunState& state) const {
    const auto best = states_.find(state.best_step);
    if (!state.has_model)
      return best != states_.end() && best->second.has_model ? "the state alone, of the end of the run"
                                                             : "without tensors: a trial of capstan autotune";
    if (state.slim) return "checksums agree; for prediction alone (capstan slim)";
    return state.has_optimizer ? "checksums agree" : "checksums agree; without what resuming needs";
  }

  std::string loss_of(int64_t step, std::optional<int64_t> last, std::optional<int64_t> best) const {
    std::optional<int64_t> before;  // where training would go on from
    for (const auto& [other, damage] : damage_)
      if (!damage && other < step && states_.at(other).has_optimizer) before = other;
    std::string loss = step == best ? fmt::format("the best model, of step {}", step) : "";
    if (step != last) return loss.empty() ? "nothing: another checkpoint is used" : loss;
    loss += loss.empty() ? "" : "; ";
    return loss +
           (before ? fmt::format("steps {} to {}, which training computes again, to the same bits", *before + 1, step)
                   : std::string("all training: there is no earlier checkpoint to go on from"));
  }

  void report_links() {
    const bool saved = !damage_.empty();
    const std::string goes_on = "nothing: training goes on from the newest complete checkpoint before it";
    if (const auto problem = checkpoints_.link_problem("last"); !problem.empty() && saved)
      add("checkpoints/last", State::damaged, problem, goes_on);
    const bool has_best = state_ && !state_->best.empty();
    if (const auto problem = checkpoints_.link_problem("best"); !problem.empty() && has_best)
      add("checkpoints/best", State::damaged, problem,
          fmt::format("the best model, of step {}; name another checkpoint to eval, predict and generate",
                      state_->best_step));
  }

  void report_leftovers() {
    for (const std::string& name : names_in_folder(folder_.string()))
      if (ends_with(name, ".tmp") || name.find(".damaged") != std::string::npos)
        add(name, State::note, "left over: not part of the run");
    if (!fs::is_directory(checkpoints_.folder())) return;
    for (const std::string& name : checkpoints_.leftovers())
      add("checkpoints/" + name, State::note,
          starts_with(name, "damaged-") ? "left over from damage: not part of the run"
                                        : "unfinished: being written, or completed or removed when training starts");
  }

  /// The tokens of the run's text: found by tokenizer and content, so that the text need not be read.
  void check_cache() {
    const auto* const text = config_ ? std::get_if<TextSourceConfig>(&config_->data) : nullptr;
    if (text == nullptr || text->cache.empty() || !tokenizer_ || !state_) return;
    for (const std::string& name : names_in_folder(text->cache)) {
      const TokenCache cache((fs::path(text->cache) / name).string());
      const std::string tokens = cache.tokens_folder(*tokenizer_);
      std::error_code error;
      if (!fs::is_directory(tokens, error) || !are_of_run(cache, tokens)) continue;
      add_read(tokens, "nothing: the text is tokenised again when training starts", [&] {
        const TokenIndex index = cache.open(*tokenizer_, vocabulary_size(*text, *tokenizer_), any_files);
        return fmt::format("{} tokens to train on", index.splits[0].size);
      });
    }
  }

  /// Whether tokens are those of this run. Other runs may have theirs in the same folder, with the same tokenizer, of
  /// other texts or cut into other documents.
  bool are_of_run(const TokenCache& cache, const std::string& tokens) {
    const auto data = state_->identity.find("data");
    try {
      return data != state_->identity.end() &&
             data->second.find(cache.index_fingerprint(*tokenizer_)) != std::string::npos;
    } catch (const Error& error) {
      add(tokens, State::note, fmt::format("{}: nothing says of which run; made again when needed", error.what()));
      return false;
    }
  }

  fs::path folder_;
  Checkpoints checkpoints_;
  std::map<int64_t, std::optional<std::string>> damage_;  // of each step that has a folder
  std::map<int64_t, RunState> states_;                    // by step, of the checkpoints that are whole
  std::optional<RunState> state_;                         // of the last whole checkpoint
  std::optional<RunConfig> config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<RunPart> parts_;
};

const char* state_text(State state) {
  switch (state) {
    case State::whole:
      return "whole";
    case State::damaged:
      return "DAMAGED";
    case State::note:
      return "note";
  }
  return "?";
}

}  // namespace

std::vector<RunPart> check_run(const fs::path& folder) { return RunCheck(folder).parts(); }

bool any_damaged(const std::vector<RunPart>& parts) {
  return std::any_of(parts.begin(), parts.end(), [](const RunPart& part) { return part.state == State::damaged; });
}

void print_parts(const std::vector<RunPart>& parts, std::ostream& out) {
  size_t width = 0;
  for (const RunPart& part : parts) width = std::max(width, part.name.size());
  for (const RunPart& part : parts) {
    out << fmt::format("  {:<{}}  {:<7}  {}\n", part.name, width, state_text(part.state), part.what);
    if (!part.consequence.empty())
      out << fmt::format("  {:<{}}  {:<7}  {}{}\n", "", width, "", part.state == State::damaged ? "lost: " : "",
                         part.consequence);
  }
}

}  // namespace capstan
