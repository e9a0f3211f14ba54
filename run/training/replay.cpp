// The piece is trained by train_run() in a scratch folder, from the saved checkpoint, and then both checkpoints and
// both metrics.jsonl are compared field by field, without what belongs to a session. tests/cli/runs/test_replay.cpp.
#include "run/training/replay.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_config.hpp"
#include "run/setup/run_data.hpp"
#include "run/summaries/run_check.hpp"
#include "run/training/online_run.hpp"
#include "run/training/train_run.hpp"
#include "train/checkpoints/saved_checkpoint.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// A folder among the temporary files, during its lifetime.
class ScratchFolder : NoCopy {
 public:
  explicit ScratchFolder(Communicator& ranks) : first_(ranks.first()) {
    std::string name = (fs::path(temporary_folder()) / "capstan-replay-XXXXXX").string();
    if (first_ && mkdtemp(name.data()) == nullptr) throw_file_error("create", name, errno);
    path_ = ranks.broadcast(name);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (first_) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  bool first_;
  fs::path path_;
};

/// The options with the steps that were not given. Throws ConfigError for steps without a checkpoint.
ReplayOptions with_steps(ReplayOptions options, const fs::path& checkpoints) {
  const std::vector<int64_t> steps = saved_steps(checkpoints);
  const auto opened = [&](int64_t step) { return open_checkpoint(folder_of_step(checkpoints, step), Reading::all); };
  if (!options.to) {
    options.to = steps.back();  // where a run has ended, the weights of the best step alone may be left
    for (const int64_t step : steps)
      if (const SavedCheckpoint found = opened(step); found.whole() && found.model) options.to = step;
  }
  if (!options.from) {
    options.from = 0;
    for (const int64_t step : steps)
      if (step < *options.to && opened(step).can_resume()) options.from = step;
  }
  std::vector<std::string> known;
  for (const int64_t step : steps) known.push_back(std::to_string(step));
  for (const int64_t step : {*options.from, *options.to})
    if (step != 0 && std::find(steps.begin(), steps.end(), step) == steps.end())
      throw ConfigError(fmt::format(
          "--steps: {} has no checkpoint of step {}; it has those of {}, and 0 is the beginning (a run that is "
          "trained with train.keep_optimizer: true keeps its newest train.keep_last to begin at)",
          checkpoints.string(), step, join(known)));
  if (*options.from >= *options.to)
    throw ConfigError(fmt::format("--steps: {}..{} has no step in it", *options.from, *options.to));
  if (*options.from > 0 && !opened(*options.from).can_resume())
    throw ConfigError(
        fmt::format("--steps: {} is damaged, or its optimizer's state was removed: begin at another "
                    "step, or at 0",
                    folder_of_step(checkpoints, *options.from).string()));
  return options;
}

bool same_bits(const FileTensor& a, const FileTensor& b) {
  if (a.shape != b.shape || a.dtype != b.dtype) return false;
  constexpr int64_t at_once = 1 << 20;  // elements: tensors of any size are compared in little memory
  std::vector<float> of_a, of_b;
  for (int64_t begin = 0; begin < a.size; begin += at_once) {
    const int64_t end = std::min(begin + at_once, a.size);
    of_a.resize(static_cast<size_t>(end - begin));
    of_b.resize(of_a.size());
    a.copy_part(begin, end, of_a.data());
    b.copy_part(begin, end, of_b.data());
    if (std::memcmp(of_a.data(), of_b.data(), of_a.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

void compare_tensors(const std::string& name, const SafetensorsFile& saved, const SafetensorsFile& computed,
                     ReplayReport& report) {
  std::vector<std::string> differ;
  for (const FileTensor& tensor : saved.tensors())
    if (const FileTensor* const other = computed.find(tensor.name); other == nullptr || !same_bits(tensor, *other))
      differ.push_back(tensor.name);
  for (const FileTensor& tensor : computed.tensors())
    if (saved.find(tensor.name) == nullptr) differ.push_back(tensor.name + ", which was not saved");
  if (differ.empty())
    report.same.push_back(fmt::format("{} tensors of {}", saved.tensors().size(), name));
  else
    report.differences.push_back(
        fmt::format("{}: {} of {} tensors, first {}", name, differ.size(), saved.tensors().size(), differ.front()));
}

/// Fields of a state that belong to the session that computed it rather than to the run, or are compared by their
/// parts.
const std::vector<std::string> of_session{"seconds", "metrics_bytes", "metrics_checksum", "working_folder", "machine",
                                          "run",     "files",         "settings",         "identity"};

/// Compares all fields of two states. Other settings of training are no difference, since they may have no effect on
/// what is computed, but may explain one. `data_files`: where the data are from.
void compare_states(RunState saved, RunState computed, const std::string& data_files, ReplayReport& report) {
  const size_t before = report.differences.size();
  for (RunState* const state : {&saved, &computed}) state->settings.erase("max_minutes");  // a replay has no such limit
  for (const std::string& change : changes(saved.settings, computed.settings))
    report.notes.push_back("config.yaml: train." + change);
  for (const auto& [part, text] : saved.identity)
    if (computed.identity.count(part) == 0 || computed.identity[part] != text)
      report.differences.push_back(part == "data"
                                       ? fmt::format("data: not those that the run was trained with ({})", data_files)
                                       : fmt::format("{} of the run: another one", part));
  const nlohmann::json theirs = parse_json(to_json(saved)).at("state"),
                       ours = parse_json(to_json(computed)).at("state");
  size_t fields = 0;
  for (const auto& [name, value] : theirs.items()) {
    if (std::find(of_session.begin(), of_session.end(), name) != of_session.end()) continue;
    ++fields;
    if (const nlohmann::json other = ours.value(name, nlohmann::json()); value != other)
      report.differences.push_back(
          fmt::format("state.json: {}: saved {}, computed {}", name, json_text(value), json_text(other)));
  }
  if (report.differences.size() == before) report.same.push_back(fmt::format("{} fields of state.json", fields));
}

/// Compares weights, optimizer and state, as far as the saved checkpoint still has them.
void compare_checkpoints(const SavedCheckpoint& saved, const SavedCheckpoint& computed, const std::string& data_files,
                         ReplayReport& report) {
  if (!saved.whole()) return;  // check_run() names it
  report.machine = changes(saved.state.machine, computed.state.machine);
  if (saved.model)
    compare_tensors(model_name, *saved.model, *computed.model, report);
  else
    report.notes.push_back("the weights were removed from the checkpoint: they are not compared");
  if (saved.optimizer)
    compare_tensors(optimizer_name, *saved.optimizer, *computed.optimizer, report);
  else
    report.notes.push_back("the optimizer's state was removed from the checkpoint: it is not compared");
  compare_states(saved.state, computed.state, data_files, report);
}

struct MetricsLine {
  int64_t step;
  nlohmann::json event;  // without what belongs to the session or the machine
  bool is(const char* kind) const { return event.contains("event") && event["event"] == kind; }
};

/// The lines of a run's metrics.jsonl that are of the steps of the report. Those of its first one belong to the piece
/// before, unless it is where the run began.
std::vector<MetricsLine> lines_of(const fs::path& folder, const ReplayReport& report) {
  std::vector<MetricsLine> lines;
  std::ifstream file(folder / "metrics.jsonl");
  for (std::string text; std::getline(file, text);) {
    nlohmann::json event = try_parse_json(text);
    if (!event.is_object() || !event.contains("step")) continue;  // check_run() names it
    const int64_t step = whole_number(event["step"], 0).value_or(-1);
    const bool begins = step == 0 && report.from == 0, whole = report.to == 0;
    if (!whole && !begins && (step <= report.from || step > report.to)) continue;
    for (const char* const own : {"seconds", "tokens_per_second", "rss_bytes", "peak_rss_bytes"}) event.erase(own);
    lines.push_back({step, std::move(event)});
  }
  return lines;
}

/// Compares line by line. Where training ends, it writes a last line about fewer steps than usual; a run that went on
/// from there lacks it.
void compare_metrics(const std::vector<MetricsLine>& saved, std::vector<MetricsLine> computed, ReplayReport& report) {
  if (computed.size() == saved.size() + 1 && computed.back().is("train")) computed.pop_back();
  const auto text = [](const std::vector<MetricsLine>& lines, size_t at) {
    return at < lines.size() ? json_text(lines[at].event) : std::string("no line");
  };
  const size_t count = std::max(saved.size(), computed.size());
  size_t at = 0;
  while (at < count && text(saved, at) == text(computed, at)) ++at;
  if (at == count)
    report.same.push_back(fmt::format("{} lines of metrics.jsonl", count));
  else
    report.differences.push_back(fmt::format("metrics.jsonl: line {} of these steps: saved {}, computed {}", at + 1,
                                             text(saved, at), text(computed, at)));
}

/// Throws Error where there is nothing to compare with, or training would make something else.
void require_trained(const fs::path& folder) {
  const int64_t last = last_step(folder / "checkpoints");
  if (last < 0)
    throw Error(
        fmt::format("{}: there is no checkpoint, so nothing to compare with", (folder / "checkpoints").string()));
  const SavedCheckpoint found = open_checkpoint(folder_of_step(folder / "checkpoints", last), Reading::state);
  if (found.state.slim)
    throw Error(fmt::format("{}: a slim run has other weights than its training: replay that of which it was made",
                            folder.string()));
  if (found.state.files.count(online_name) > 0)
    throw Error(fmt::format("{}: partial_fit learnt from texts that the run does not know", folder.string()));
}

}  // namespace

void take_steps(const std::string& text, ReplayOptions& options) {
  const size_t dots = text.find("..");
  const auto number = [&](const std::string& digits) {
    if (digits.empty() || digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string::npos)
      throw ConfigError(fmt::format("--steps: expected FROM..TO, such as 1000..1500, got {}", text));
    return std::stoll(digits);
  };
  options.from = number(text.substr(0, dots));
  options.to = number(dots == std::string::npos ? "" : text.substr(dots + 2));
}

ReplayReport replay_run(const fs::path& folder, const ReplayOptions& given, Communicator& ranks) {
  RunConfig config = load_run_config(folder, given.overrides);
  const fs::path checkpoints = folder / "checkpoints";
  const bool solved = facts_of(config.model).is_solved;
  if (solved && (given.from || given.to)) throw ConfigError("--steps: a linear classifier is solved for as a whole");
  const ScratchFolder scratch(ranks);
  config.folder = scratch.path().string();
  ReplayReport report;
  TrainRunOptions options;
  options.settled = true;
  require_trained(folder);
  fs::path saved = folder_of_step(checkpoints, last_step(checkpoints));
  if (!solved) {
    const ReplayOptions steps = with_steps(given, checkpoints);
    report.from = *steps.from;
    report.to = *steps.to;
    saved = folder_of_step(checkpoints, report.to);
    if (report.from > 0) options.resume_from = folder_of_step(checkpoints, report.from).string();
    options.end = PieceEnd{report.to, read_state(saved).validated_step == report.to};
    for (const MetricsLine& line : lines_of(folder, report))
      if (line.is("valid")) options.end->validations.insert(line.step);
    config.train.max_minutes = 0;  // this machine may need more time for the same steps
  }
  if (train_run(config, options, ranks).interrupted) throw Stopped();
  if (!ranks.first()) return report;
  const fs::path computed_folder = folder_of(config);
  const int64_t reached = last_step(computed_folder / "checkpoints");
  if (reached < 0)
    throw ConfigError(
        fmt::format("{}: with this configuration, the run is at its end at step {}, so that no step up to {} can be "
                    "computed: leave the keys of its length (train.steps and the like) as they are",
                    folder.string(), report.from, report.to));
  for (const RunPart& part : check_run(folder))
    if (part.damaged) report.differences.push_back(fmt::format("{}: damaged: {}", part.name, part.what));
  compare_checkpoints(open_checkpoint(saved, Reading::all),
                      open_checkpoint(folder_of_step(computed_folder / "checkpoints", reached), Reading::all),
                      files_text(config.data), report);
  compare_metrics(lines_of(folder, report), lines_of(computed_folder, report), report);
  return report;
}

void print_replay(const ReplayReport& report, std::ostream& out) {
  if (report.to > 0) out << fmt::format("steps {} to {}: ", report.from, report.to);
  out << (report.differences.empty() ? "the same\n" : "DIFFERENT\n");
  for (const std::string& line : report.differences) out << "  different: " << line << '\n';
  for (const std::string& line : report.same) out << "  the same:  " << line << '\n';
  for (const std::string& line : report.notes) out << "  note:      " << line << '\n';
  for (const std::string& line : report.machine) out << "  note:      machine: " << line << '\n';
  if (!report.machine.empty() && !report.differences.empty())
    out << "  note:      other kernels round differently, which may be all of the difference; a run that was trained\n"
           "             with train.kernels: portable has the same bits on other machines\n";
}

}  // namespace capstan
