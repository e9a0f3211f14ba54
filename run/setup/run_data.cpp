// Opens the data of a run.
// tests/cli/runs/test_tables.cpp.
#include "run/setup/run_data.hpp"

#include "core/base/out_of_memory.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "data/labelled/table_reading.hpp"

namespace capstan {

std::string find_data_columns(RunConfig& config) {
  if (auto* const labelled = std::get_if<LabelledSourceConfig>(&config.data))
    return find_columns(*labelled, facts_of(config.model).classifies());
  if (auto* const pairs = std::get_if<PairSourceConfig>(&config.data)) return find_columns(*pairs);
  return "";
}

RunConfig with_data_columns(RunConfig config) {
  if (const std::string line = find_data_columns(config); !line.empty()) log_info(line);
  return config;
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
