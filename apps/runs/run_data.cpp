#include "apps/runs/run_data.hpp"

#include "apps/runs/log.hpp"
#include "core/base/error.hpp"

namespace capstan {

Split split_named(const std::string& name) {
  for (const Split split : all_splits)
    if (name == to_string(split)) return split;
  throw ConfigError(fmt::format("--split: {} is not one of train, valid, test", name));
}

std::unique_ptr<DataSource> open_data(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer,
                                      const std::vector<std::string>& classes) {
  SourceInputs inputs;
  inputs.tokenizer = std::move(tokenizer);
  inputs.classes = classes;
  inputs.batches = {config.train.batch_size, config.train.batch_tokens};
  inputs.seed = static_cast<uint64_t>(config.seed);
  if (config.train.progress != ProgressMode::none) inputs.log = [](const std::string& line) { log_info(line); };
  return open_source(config.data, inputs);
}

}  // namespace capstan
