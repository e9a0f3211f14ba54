// Every key that may be left open is here, and in settle.cpp, where it is chosen. tests/run/test_settle.cpp.
#include "run/training/begun_run.hpp"

#include "core/base/error.hpp"
#include "data/labelled/table_reading.hpp"
#include "run/setup/run_config.hpp"
#include "run/training/plan.hpp"
#include "run/yaml/config_diff.hpp"
#include "run/yaml/config_writer.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/loop/run_length.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// The run in a folder that this process sees. Without its checkpoint, a configuration that cannot be read is none: the
/// run begins again.
std::optional<BegunRun> saved_run(const fs::path& folder) {
  const bool has_checkpoint = Checkpoints(folder / "checkpoints").last().has_value();
  std::error_code unknown;
  if (!has_checkpoint && !fs::exists(folder / "config.yaml", unknown)) return std::nullopt;
  try {
    return BegunRun{load_run_config(folder), has_checkpoint};
  } catch (const Error& error) {
    if (!has_checkpoint) return std::nullopt;
    throw Error(fmt::format("{}; the run has checkpoints, which go on with its config.yaml alone: put it back{}",
                            error.what(), begin_another));
  }
}

/// Sets a key that is left open: one that has the value of a new T.
template <class T>
void take(T& open, const T& chosen) {
  if (open == T()) open = chosen;
}

void take_columns(const LabelledSourceConfig& begun, LabelledSourceConfig& given) {
  take(given.header, begun.header);
  take(given.label_column, begun.label_column);
  take(given.label_columns, begun.label_columns);
  take(given.text_columns, begun.text_columns);
  if (given.multi_label || !begun.multi_label) return;
  LabelledSourceConfig found = given;  // it was given, or found in the values of the column
  find_columns(found);
  given.multi_label = found.multi_label;
}
void take_columns(const PairSourceConfig& begun, PairSourceConfig& given) {
  take(given.header, begun.header);
  take(given.source_column, begun.source_column);
  take(given.target_column, begun.target_column);
}

}  // namespace

std::optional<BegunRun> begun_run(const RunConfig& given, Communicator& ranks) {
  std::optional<BegunRun> begun;
  if (ranks.first()) begun = saved_run(folder_of(given));
  if (ranks.size() == 1) return begun;
  const std::string has_checkpoint = ranks.broadcast(begun && begun->has_checkpoint ? "yes" : ""),
                    text = ranks.broadcast(begun ? to_yaml(begun->config) : "");
  if (text.empty()) return std::nullopt;
  return BegunRun{load_config_text<RunConfig>(text, "config.yaml of rank 0"), !has_checkpoint.empty()};
}

RunConfig with_choices_of(const BegunRun& begun, RunConfig given) {
  const RunConfig& chosen = begun.config;
  if (has_plan_to_make(given)) given = with_plan_of(chosen, std::move(given));
  if (given.train.precision == Precision::automatic) given.train.precision = chosen.train.precision;
  if (!begun.has_checkpoint) return given;
  std::visit(
      [&](auto& ours) {
        using Source = std::decay_t<decltype(ours)>;
        if constexpr (std::is_same_v<Source, LabelledSourceConfig> || std::is_same_v<Source, PairSourceConfig>)
          if (const auto* const theirs = std::get_if<Source>(&chosen.data)) take_columns(*theirs, ours);
      },
      given.data);
  take_choices(chosen.model, given.model);
  take(given.train.valid_every, chosen.train.valid_every);
  return given;
}

bool is_finished(const RunConfig& given) {
  const fs::path folder = folder_of(given);
  try {
    const auto last = Checkpoints(folder / "checkpoints").last();
    const auto begun = saved_run(folder);
    if (!last || !begun) return false;
    const RunConfig settled = with_choices_of(*begun, given);
    return diff_configs(begun->config, settled).empty() && has_ended(settled.train, read_state(*last));
  } catch (const Error&) {
    return false;
  }
}

}  // namespace capstan
