// The piece is trained by train_run() in a scratch folder, from the saved checkpoint, and then both checkpoints and
// both metrics.jsonl are compared field by field, without what belongs to a session. tests/cli/runs/test_replay.cpp.
#include "run/training/replay.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/saved_config.hpp"
#include "run/summaries/run_check.hpp"
#include "run/training/online_run.hpp"
#include "run/training/replay_metrics.hpp"
#include "run/training/train_run.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// A folder that exists during its lifetime.
class ScratchFolder : NoCopy {
 public:
  ScratchFolder(const std::string& parent, Communicator& ranks) : first_(ranks.first()) {
    std::string made;
    if (first_) made = make_in(parent);
    path_ = ranks.broadcast(made);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (first_) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  static std::string make_in(const std::string& parent) {
    try {
      std::string name = (fs::path(parent.empty() ? temporary_folder() : parent) / "capstan-replay-XXXXXX").string();
      if (mkdtemp(name.data()) == nullptr) throw_file_error("create", name, errno);
      return name;
    } catch (const Error& error) {
      throw Error(fmt::format("{}; --scratch FOLDER names {} folder for the replay", error.what(),
                              parent.empty() ? "a" : "the"));
    }
  }

  bool first_;
  fs::path path_;
};

/// The options with the steps that were not given. Throws ConfigError for steps without a checkpoint.
ReplayOptions with_steps(ReplayOptions options, const Checkpoints& checkpoints) {
  const std::vector<int64_t> steps = checkpoints.steps();
  if (steps.empty())
    throw Error(fmt::format("{}: there is no checkpoint, so nothing to compare with", checkpoints.folder().string()));
  if (!options.to) {
    options.to = steps.back();  // where a run has ended, the weights of the best step alone may be left
    for (const int64_t step : steps)
      if (!damage_of(checkpoints.of_step(step)) && read_state(checkpoints.of_step(step)).has_model) options.to = step;
  }
  if (!options.from) {
    options.from = 0;
    for (const int64_t step : steps)
      if (step < *options.to && can_resume(checkpoints.of_step(step))) options.from = step;
  }
  std::vector<std::string> known;
  for (const int64_t step : steps) known.push_back(std::to_string(step));
  for (const int64_t step : {*options.from, *options.to})
    if (step != 0 && std::find(steps.begin(), steps.end(), step) == steps.end())
      throw ConfigError(fmt::format(
          "--steps: {} has no checkpoint of step {}; it has those of {}, and 0 is the beginning (a run that is "
          "trained with train.keep_optimizer: true keeps its newest train.keep_last to begin at)",
          checkpoints.folder().string(), step, join(known)));
  if (*options.from >= *options.to)
    throw ConfigError(fmt::format("--steps: {}..{} has no step in it", *options.from, *options.to));
  if (*options.from > 0 && !can_resume(checkpoints.of_step(*options.from)))
    throw ConfigError(
        fmt::format("--steps: {} is damaged, or its optimizer's state was removed: begin at another "
                    "step, or at 0",
                    checkpoints.of_step(*options.from).string()));
  return options;
}

/// The first element that differs in bits, in words; none where all are equal.
std::optional<std::string> first_difference(const FileTensor& saved_tensor, const FileTensor& computed_tensor) {
  if (saved_tensor.shape != computed_tensor.shape || saved_tensor.dtype != computed_tensor.dtype)
    return "another shape or type";
  constexpr int64_t at_once = 1 << 20;  // elements: tensors of any size are compared in little memory
  std::vector<float> saved_part, computed_part;
  for (int64_t begin = 0; begin < saved_tensor.size; begin += at_once) {
    const int64_t end = std::min(begin + at_once, saved_tensor.size);
    saved_part.resize(static_cast<size_t>(end - begin));
    computed_part.resize(saved_part.size());
    saved_tensor.copy_part(begin, end, saved_part.data());
    computed_tensor.copy_part(begin, end, computed_part.data());
    if (std::memcmp(saved_part.data(), computed_part.data(), saved_part.size() * sizeof(float)) == 0) continue;
    for (size_t i = 0; i < saved_part.size(); ++i)
      if (std::memcmp(&saved_part[i], &computed_part[i], sizeof(float)) != 0)
        return fmt::format("element {}: saved {}, computed {}", begin + static_cast<int64_t>(i), saved_part[i],
                           computed_part[i]);
  }
  return std::nullopt;
}

void compare_tensors(const std::string& name, const fs::path& saved_folder, const fs::path& computed_folder,
                     ReplayReport& report) {
  const SafetensorsFile saved((saved_folder / name).string()), computed((computed_folder / name).string());
  std::vector<std::string> differ;
  for (const FileTensor& tensor : saved.tensors()) {
    const FileTensor* const other = computed.find(tensor.name);
    const std::optional<std::string> what =
        other != nullptr ? first_difference(tensor, *other) : std::string("it was not computed");
    if (what) differ.push_back(fmt::format("{}, {}", tensor.name, *what));
  }
  for (const FileTensor& tensor : computed.tensors())
    if (saved.find(tensor.name) == nullptr) differ.push_back(tensor.name + ", it was not saved");
  if (differ.empty())
    report.same.push_back(fmt::format("{} tensors of {}", saved.tensors().size(), name));
  else
    report.differences.push_back(
        fmt::format("{}: {} of {} tensors, first {}", name, differ.size(), saved.tensors().size(), differ.front()));
}

/// Fields of a state that belong to the session that computed it rather than to the run.
const std::vector<std::string> of_session{"seconds",  "metrics_bytes", "metrics_checksum", "working_folder",
                                          "checksum", "machine",       "has_optimizer",    "has_model"};

/// Compares all fields of two states. Differences of configuration and data are named by key and part. `data_files`:
/// where the data are from.
void compare_states(RunState saved_state, RunState computed_state, const std::string& data_files,
                    ReplayReport& report) {
  for (RunState* const state : {&saved_state, &computed_state})
    state->settings.erase("max_minutes");  // a replay has no such limit
  const nlohmann::json saved = parse_json(to_json(saved_state)).at("state"),
                       computed = parse_json(to_json(computed_state)).at("state");
  size_t fields = 0, differ = 0;
  for (const auto& [name, value] : saved.items()) {
    if (std::find(of_session.begin(), of_session.end(), name) != of_session.end()) continue;
    ++fields;
    const nlohmann::json other = computed.contains(name) ? computed[name] : nlohmann::json();
    if (value == other) continue;
    ++differ;
    if (name == "settings")
      for (const std::string& change : changes(saved_state.settings, computed_state.settings))
        report.differences.push_back("config.yaml: train." + change);
    else if (name == "identity")
      for (const auto& [part, text] : saved_state.identity)
        if (const auto found = computed_state.identity.find(part);
            found == computed_state.identity.end() || found->second != text)
          report.differences.push_back(
              part == "data" ? fmt::format("data: not those that the run was trained with ({})", data_files)
                             : fmt::format("{} of the run: another one", part));
    if (name != "settings" && name != "identity")
      report.differences.push_back(
          fmt::format("state.json: {}: saved {}, computed {}", name, json_text(value), json_text(other)));
  }
  if (differ == 0) report.same.push_back(fmt::format("{} fields of state.json", fields));
}

/// Compares a file whose bytes follow from the configuration and the data; nothing where neither run has it.
void compare_files(const char* name, const fs::path& saved_folder, const fs::path& computed_folder,
                   ReplayReport& report) {
  const auto content = [&](const fs::path& folder) {
    return fs::exists(folder / name) ? std::optional<std::string>(read_file((folder / name).string())) : std::nullopt;
  };
  const std::optional<std::string> saved = content(saved_folder), computed = content(computed_folder);
  if (!saved && !computed) return;
  if (saved == computed)
    report.same.emplace_back(name);
  else
    report.differences.push_back(fmt::format("{}: {}", name,
                                             !saved      ? "it was not saved"
                                             : !computed ? "it was not computed"
                                                         : "another content"));
}

/// Adds what `capstan verify` finds damaged of the run's own files, but for those that are compared line by line.
void check_files(const fs::path& folder, ReplayReport& report) {
  for (const RunPart& part : check_run(folder)) {
    const bool own =
        part.name == "config.yaml" || part.name == "tokenizer.json" || starts_with(part.name, "checkpoints");
    if (own && part.state == RunPart::State::damaged)
      report.differences.push_back(fmt::format("{}: {}", part.name, part.what));
  }
}

/// Compares weights, optimizer and state, as far as the saved checkpoint still has them.
void compare_checkpoints(const fs::path& saved_folder, const fs::path& computed_folder, const std::string& data_files,
                         ReplayReport& report) {
  if (damage_of(saved_folder)) return;  // check_files() has named it
  const RunState saved = read_state(saved_folder), computed = read_state(computed_folder);
  report.machine = changes(saved.machine, computed.machine);
  if (saved.has_model)
    compare_tensors(model_name, saved_folder, computed_folder, report);
  else
    report.notes.push_back("the weights were removed from the checkpoint: they are not compared");
  if (saved.has_optimizer)
    compare_tensors(optimizer_name, saved_folder, computed_folder, report);
  else
    report.notes.push_back("the optimizer's state was removed from the checkpoint: it is not compared");
  compare_states(saved, computed, data_files, report);
}

}  // namespace

ReplayReport replay_run(const fs::path& folder, const ReplayOptions& given, Communicator& ranks) {
  RunConfig config = load_run_config(folder, given.overrides);
  const Checkpoints saved(folder / "checkpoints");
  const bool solved = facts_of(config.model).is_solved;
  if (solved && (given.from || given.to)) throw ConfigError("--steps: a linear classifier is solved for as a whole");
  const ScratchFolder scratch(given.scratch, ranks);
  config.folder = scratch.path().string();
  ReplayReport report;
  TrainRunOptions options;
  fs::path saved_checkpoint;
  if (solved) {
    const auto last = saved.last();
    if (!last) throw Error(fmt::format("{}: there is no checkpoint to compare with", saved.folder().string()));
    saved_checkpoint = *last;
    if (read_state(saved_checkpoint).slim)
      throw Error(fmt::format("{}: a slim run has other weights than its training: replay that of which it was made",
                              folder.string()));
    if (fs::exists(saved_checkpoint / online_name))
      throw Error(fmt::format("{}: partial_fit learnt from texts that the run does not know", folder.string()));
  } else {
    const ReplayOptions steps = with_steps(given, saved);
    report.from = *steps.from;
    report.to = *steps.to;
    saved_checkpoint = saved.of_step(report.to);
    if (report.from > 0) options.resume_from = saved.of_step(report.from).string();
    options.end = PieceEnd{report.to, read_state(saved_checkpoint).validated_step == report.to};
    options.end->validations = validated_steps(metrics_of(folder, {report.from, report.to}));
    config.train.max_minutes = 0;  // this machine may need more time for the same steps
  }
  if (train_run(config, options, ranks).interrupted) throw Stopped();
  if (!ranks.first()) return report;
  const fs::path computed_folder = folder_of(config);
  const auto computed = Checkpoints(computed_folder / "checkpoints").last();
  if (!computed)
    throw ConfigError(
        fmt::format("{}: with this configuration, the run is at its end at step {}, so that no step up to {} can be "
                    "computed: leave the keys of its length (train.steps and the like) as they are",
                    folder.string(), report.from, report.to));
  check_files(folder, report);
  compare_checkpoints(saved_checkpoint, *computed, files_text(config.data), report);
  StepRange steps = solved ? StepRange{} : StepRange{report.from, report.to};
  steps.ends_with_line = !solved && report.to % config.train.log_every == 0;
  const MetricsPiece lines = metrics_of(folder, steps);
  if (std::string difference = metrics_difference(lines, metrics_of(computed_folder, steps), steps);
      !difference.empty())
    report.differences.push_back(std::move(difference));
  else
    report.same.push_back(fmt::format("{} lines of metrics.jsonl", lines.lines.size()));
  compare_files("classes.txt", folder, computed_folder, report);
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
