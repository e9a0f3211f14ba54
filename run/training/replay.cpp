#include "run/training/replay.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/io/json.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/saved_config.hpp"
#include "run/training/online_run.hpp"
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
    if (first_) {
      std::string name =
          ((parent.empty() ? fs::temp_directory_path() : fs::path(parent)) / "capstan-replay-XXXXXX").string();
      if (mkdtemp(name.data()) == nullptr) throw_file_error("create", name, errno);
      made = name;
    }
    path_ = ranks.broadcast(made);
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

/// The steps of a replay that were not given.
ReplayOptions with_steps(ReplayOptions options, const Checkpoints& checkpoints) {
  const std::vector<int64_t> steps = checkpoints.steps();
  if (steps.empty())
    throw Error(fmt::format("{}: there is no checkpoint, so nothing to compare with", checkpoints.folder().string()));
  if (!options.to) {
    options.to = steps.back();  // where a run has ended, the weights of the best step alone may be left
    for (const int64_t step : steps)
      if (read_state(checkpoints.of_step(step)).has_model) options.to = step;
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
      throw ConfigError(fmt::format("--steps: {} has no checkpoint of step {}; it has those of {}",
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

/// The first elements that differ in bits.
std::optional<std::string> first_difference(const FileTensor& then, const FileTensor& now) {
  if (then.shape != now.shape || then.dtype != now.dtype) return "another shape or type";
  constexpr int64_t at_once = 1 << 20;
  std::vector<float> was, is;
  for (int64_t begin = 0; begin < then.size; begin += at_once) {
    const int64_t end = std::min(begin + at_once, then.size);
    was.resize(static_cast<size_t>(end - begin));
    is.resize(was.size());
    then.copy_part(begin, end, was.data());
    now.copy_part(begin, end, is.data());
    if (std::memcmp(was.data(), is.data(), was.size() * sizeof(float)) == 0) continue;
    for (size_t i = 0; i < was.size(); ++i)
      if (std::memcmp(&was[i], &is[i], sizeof(float)) != 0)
        return fmt::format("element {}: saved {}, computed {}", begin + static_cast<int64_t>(i), was[i], is[i]);
  }
  return std::nullopt;
}

void compare_tensors(const std::string& name, const fs::path& then, const fs::path& now, ReplayReport& report) {
  const SafetensorsFile saved((then / name).string()), computed((now / name).string());
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

/// What is of the session that computed it rather than of the run.
const std::vector<std::string> of_session{"seconds",  "metrics_bytes", "metrics_checksum", "working_folder",
                                          "checksum", "machine",       "has_optimizer",    "has_model"};

void compare_states(RunState then, RunState now, ReplayReport& report) {
  for (RunState* const state : {&then, &now}) state->settings.erase("max_minutes");  // which a replay does not keep to
  const nlohmann::json saved = parse_json(to_json(then)).at("state"), computed = parse_json(to_json(now)).at("state");
  size_t fields = 0, differ = 0;
  for (const auto& [name, value] : saved.items()) {
    if (std::find(of_session.begin(), of_session.end(), name) != of_session.end()) continue;
    ++fields;
    const nlohmann::json other = computed.contains(name) ? computed[name] : nlohmann::json();
    if (value == other) continue;
    ++differ;
    if (name == "settings")
      for (const std::string& change : changes(then.settings, now.settings))
        report.differences.push_back("config.yaml: train." + change);
    else if (name == "identity")
      for (const auto& [part, text] : then.identity)
        if (const auto found = now.identity.find(part); found == now.identity.end() || found->second != text)
          report.differences.push_back(fmt::format("{} of the run: another one", part));
    if (name != "settings" && name != "identity")
      report.differences.push_back(
          fmt::format("state.json: {}: saved {}, computed {}", name, json_text(value), json_text(other)));
  }
  if (differ == 0) report.same.push_back(fmt::format("{} fields of state.json", fields));
}

/// Lines of metrics.jsonl on steps in (from, to], without what depends on the machine, by event and step.
std::map<std::string, nlohmann::json> metrics_of(const fs::path& folder, int64_t from, int64_t to) {
  std::map<std::string, nlohmann::json> lines;
  std::ifstream file(folder / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) {
    nlohmann::json event = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!event.is_object() || !event.contains("step") || !event["step"].is_number_integer()) continue;
    const int64_t step = event["step"];
    if (step <= from || step > to) continue;
    for (const char* const own : {"seconds", "tokens_per_second", "rss_bytes", "peak_rss_bytes"}) event.erase(own);
    const std::string name = fmt::format("{} of step {}", event.value("event", "line"), step);
    lines[name] = std::move(event);
  }
  return lines;
}

void compare_metrics(const fs::path& then, const fs::path& now, ReplayReport& report) {
  const auto saved = metrics_of(then, report.from, report.to), computed = metrics_of(now, report.from, report.to);
  size_t differ = 0;
  for (const auto& [name, line] : saved) {
    const auto other = computed.find(name);
    if (other != computed.end() && other->second == line) continue;
    if (++differ > 1) continue;
    std::string what = "it was not computed";
    for (const auto& [field, value] : line.items())
      if (other != computed.end() && (!other->second.contains(field) || other->second[field] != value)) {
        what = fmt::format("{}: saved {}, computed {}", field, json_text(value),
                           other->second.contains(field) ? json_text(other->second[field]) : "nothing");
        break;
      }
    report.differences.push_back(fmt::format("metrics.jsonl: {}, {}", name, what));
  }
  // The last line of a run that ends is of an incomplete window, which a run that went on from there does not have.
  const std::string last = fmt::format("train of step {}", report.to);
  for (const auto& [name, line] : computed)
    if (saved.count(name) == 0 && name != last && ++differ == 1)
      report.differences.push_back(fmt::format("metrics.jsonl: {}, it was not saved", name));
  if (differ == 0)
    report.same.push_back(fmt::format("{} lines of metrics.jsonl", saved.size()));
  else if (differ > 1)
    report.differences.back() += fmt::format(" ({} lines differ)", differ);
}

void compare_checkpoints(const fs::path& then, const fs::path& now, ReplayReport& report) {
  if (const auto damage = damage_of(then)) {
    report.differences.push_back(fmt::format("{}: {}", then.string(), *damage));
    return;
  }
  const RunState saved = read_state(then), computed = read_state(now);
  for (const std::string& change : changes(saved.machine, computed.machine))
    report.notes.push_back("machine: " + change);
  if (saved.has_model)
    compare_tensors(model_name, then, now, report);
  else
    report.notes.push_back("the weights were removed from the checkpoint: they are not compared");
  if (saved.has_optimizer)
    compare_tensors(optimizer_name, then, now, report);
  else
    report.notes.push_back("the optimizer's state was removed from the checkpoint: it is not compared");
  compare_states(saved, computed, report);
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
  fs::path then;
  if (solved) {
    const auto last = saved.last();
    if (!last) throw Error(fmt::format("{}: there is no checkpoint to compare with", saved.folder().string()));
    then = *last;
    if (read_state(then).slim)
      throw Error(fmt::format("{}: a slim run has other weights than its training: replay that of which it was made",
                              folder.string()));
    if (fs::exists(then / online_name))
      throw Error(fmt::format("{}: partial_fit learnt from texts that the run does not know", folder.string()));
  } else {
    const ReplayOptions steps = with_steps(given, saved);
    report.from = *steps.from;
    report.to = *steps.to;
    then = saved.of_step(report.to);
    if (report.from > 0) options.resume_from = saved.of_step(report.from).string();
    options.end = PieceEnd{report.to, read_state(then).validated_step == report.to};
    config.train.max_minutes = 0;  // the time of another machine
  }
  if (train_run(config, options, ranks).interrupted) throw Stopped();
  if (!ranks.first()) return report;
  const fs::path now = folder_of(config);
  const auto computed = Checkpoints(now / "checkpoints").last();
  if (!computed) throw Error(fmt::format("{}: nothing was computed", folder.string()));
  compare_checkpoints(then, *computed, report);
  if (!solved) compare_metrics(folder, now, report);
  return report;
}

void print_replay(const ReplayReport& report, std::ostream& out) {
  if (report.to > 0) out << fmt::format("steps {} to {}: ", report.from, report.to);
  out << (report.differences.empty() ? "the same\n" : "DIFFERENT\n");
  for (const std::string& line : report.differences) out << "  different: " << line << '\n';
  for (const std::string& line : report.same) out << "  the same:  " << line << '\n';
  for (const std::string& line : report.notes) out << "  note:      " << line << '\n';
}

}  // namespace capstan
