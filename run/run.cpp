// The methods of Run that are more than one call of run/: opening a run, rounding its weights, evaluating, and train().
// Threads and kernels are those of the run's configuration. tests/run/test_run.cpp.
#include "run/run.hpp"

#include "core/io/log.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "run/predictions/predictions.hpp"
#include "run/predictions/text_vectors.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {
namespace fs = std::filesystem;

Run Run::open(const fs::path& folder, const std::vector<std::string>& overrides) {
  SavedRun saved = with_overrides(open_run(folder), overrides);
  set_threads(static_cast<int>(saved.config.threads));
  use_kernels(saved.config.train);
  if (!facts_of(saved.config.model).reads_texts) reserve_blas_memory();  // one that does has no products
  return Run(std::move(saved));
}

std::vector<std::vector<float>> Run::embed(const std::vector<InputText>& texts) const {
  return vectors_of(*this, texts);
}

int64_t Run::embedding_size() const { return model->stack().config().width; }

Run Run::rounded(DecodeWeights format) const {
  model->stack();  // throws for a model without blocks, which has no matrices to round
  Run copy = *this;
  copy.model = open_run(fs::path(weights).parent_path(), ParamMemory::allocated).model;
  for (const Param& param : copy.model->params().params()) {
    if (param.var.shape().rank() != 2 || param.options.by_rows || param.options.constant) continue;
    Array values = param.var.value().clone();
    round_matrix(values.mutable_data(), values.dim(0), values.dim(1), format);
    param.var.assign(values);
  }
  return copy;
}

EvalReport Run::evaluate(std::optional<Split> split, const PredictOptions& completions,
                         const AdaptOptions& adapting) const {
  refuse_options_without_pairs(*this, completions);
  if (adapting.any()) model->that_predicts(Predicts::next_token);
  const Split evaluated = split_to_evaluate(split, config);
  const std::unique_ptr<DataSource> source = data(evaluated);
  for (const std::string& line : source->left_out()) log_info(line);
  return evaluate_split(*this, *source, evaluated, completions, adapting);
}

namespace {

ConfigCheck single_run(const TrainRunOptions& options) {
  return [&](const RunConfig& checked, Problems& problems) {
    check_single_run(checked, options.force, Communicator(), problems);
  };
}

Run trained(const RunConfig& config, const TrainRunOptions& options) {
  const fs::path folder = folder_of(config);
  Communicator one_process;
  if (train_run(config, options, one_process).interrupted)
    throw Interrupted(fmt::format("{}: a signal ended the training; the same call continues it", folder.string()));
  return Run::open(folder);
}

}  // namespace

Run train(const RunConfig& config, const TrainRunOptions& options) {
  ProblemList problems;
  const ConfigNode tree = load_tree_from_text(to_node(RunConfig{}), to_yaml(config), "the configuration", problems);
  return trained(read_run(tree, problems, single_run(options)), options);
}

Run train(const ConfigOptions& config, const TrainRunOptions& options) {
  return trained(load_run(config, single_run(options)), options);
}

}  // namespace capstan
