// Opens the data of a run. Columns of tables that go on must be those that the run has read: take_columns().
// tests/cli/runs/test_tables.cpp.
#include "run/setup/run_data.hpp"

#include <filesystem>

#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "data/labelled/found_columns.hpp"
#include "run/setup/saved_config.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// Takes the columns from the run in the folder, where it has one on the same files: training that goes on must read
/// what it has read. Keys that the saved run leaves unset stay unset, since the version that wrote it did not look for
/// them. Returns whether there is such a run.
template <class Source>
bool take_columns(const RunConfig& config, Source& data) {
  const fs::path folder = folder_of(config);
  std::error_code unknown;
  if (!fs::exists(folder / "config.yaml", unknown) || !Checkpoints(folder / "checkpoints").last()) return false;
  try {
    const RunConfig saved = load_run_config(folder);
    const auto* const saved_data = std::get_if<Source>(&saved.data);
    if (saved_data == nullptr || saved_data->train != data.train) return false;
    const auto take = [](auto& ours, const auto& before) {
      if (ours == std::decay_t<decltype(ours)>()) ours = before;
    };
    take(data.header, saved_data->header);
    if constexpr (std::is_same_v<Source, LabelledSourceConfig>) {
      take(data.label_column, saved_data->label_column);
      take(data.label_columns, saved_data->label_columns);
      take(data.text_columns, saved_data->text_columns);
      // The saved run has found that texts have several labels, from lists of them in its column.
      if (LabelledSourceConfig with_columns = data; saved_data->multi_label && !data.multi_label) {
        find_columns(with_columns, facts_of(config.model).classifies());
        data.multi_label = with_columns.multi_label;
      }
    } else {
      take(data.source_column, saved_data->source_column);
      take(data.target_column, saved_data->target_column);
    }
    return true;
  } catch (const Error&) {  // training reads the same files and reports it
    return false;
  }
}

}  // namespace

std::string find_data_columns(RunConfig& config, const std::string& already_logged) {
  std::string line;
  if (auto* const labelled = std::get_if<LabelledSourceConfig>(&config.data))
    line = take_columns(config, *labelled) ? "" : find_columns(*labelled, facts_of(config.model).classifies());
  if (auto* const pairs = std::get_if<PairSourceConfig>(&config.data))
    line = take_columns(config, *pairs) ? "" : find_columns(*pairs);
  if (!line.empty() && line != already_logged) log_info(line);
  return line;
}

std::string files_text(const SourceConfig& config) {
  std::vector<std::string> keys;
  for (const SourceFiles& files : facts_of(config).files)
    if (files.key != std::string("test") && !files.paths.empty())
      keys.push_back(fmt::format("data.{}: {}", files.key, join_first(files.paths)));
  return join(keys, "; ");
}

SourceInputs source_inputs(const RunConfig& config) {
  SourceInputs inputs;
  inputs.batches = {config.train.batch_size, config.train.batch_tokens};
  const ModelFacts facts = facts_of(config.model);
  inputs.classifies = facts.classifies();
  inputs.seed = static_cast<uint64_t>(config.seed);
  if (config.train.progress != ProgressMode::none) inputs.log = [](const std::string& line) { log_info(line); };
  return inputs;
}

std::unique_ptr<DataSource> open_data(const RunConfig& config) {
  SourceInputs inputs = source_inputs(config);
  inputs.cache = CacheUse::write;
  inputs.scratch = config.folder;
  const MemoryFor purpose("reading the data");
  const Stopwatch watch;
  std::unique_ptr<DataSource> data = open_source(config.data, inputs);
  log_debug(fmt::format("the data were read in {:.3f} s", watch.seconds()));
  return data;
}

}  // namespace capstan
