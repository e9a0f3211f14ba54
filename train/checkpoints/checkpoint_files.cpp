// Reads the tensors of a checkpoint. tests/train/test_damaged_runs.cpp, test_resume.cpp.
#include "train/checkpoints/checkpoint_files.hpp"

#include <set>

#include "core/strings/strings.hpp"

namespace capstan {
namespace {

/// For read_tensors(): a function that gives all of a parameter in a block with the layout of the store.
template <class T>
auto within(T* block) {
  return [block](const Param& param) { return ParamPart<T>{block + param.offset, 0, param.var.size()}; };
}

std::string shape_text(const std::vector<int64_t>& extents) { return "(" + join(extents) + ")"; }

/// A parameter's tensor. Throws Error if the file has none, or one of another shape.
const FileTensor& tensor_for(const SafetensorsFile& file, const Param& param, const std::string& suffix) {
  const FileTensor* const tensor = file.find(param.name + suffix);
  if (tensor == nullptr)
    throw Error(fmt::format("{}: there is no tensor {}: the file belongs to another configuration", file.path(),
                            param.name + suffix));
  if (tensor->shape != param.var.shape().to_vector())
    throw Error(fmt::format("{}: tensor {} is {}, this configuration needs {}", file.path(), tensor->name,
                            shape_text(tensor->shape), param.var.shape()));
  return *tensor;
}

/// Reads the tensor of every parameter of which `holds` is true into the memory that `part` returns.
template <class Holds, class Part>
void read_tensors(const SafetensorsFile& file, const ParamStore& params, const std::string& suffix, const Holds& holds,
                  const Part& part) {
  for (const Param& param : params.params()) {
    if (!holds(param)) continue;
    const auto here = part(param);
    tensor_for(file, param, suffix).copy_part(here.begin, here.end, here.values);
  }
}

/// Throws Error for a tensor that is of no parameter with one of the suffixes.
void refuse_unknown(const SafetensorsFile& file, const ParamStore& params, const std::vector<std::string>& suffixes) {
  std::set<std::string> known;
  for (const Param& param : params.params())
    for (const std::string& suffix : suffixes) known.insert(param.name + suffix);
  for (const FileTensor& tensor : file.tensors())
    if (known.count(tensor.name) == 0)
      throw Error(fmt::format("{}: tensor {} does not belong to this configuration", file.path(), tensor.name));
}

/// Reads a table that is kept without its rows of zeros, as its file has it.
void read_table(const FileTensor& tensor, const Var& table) {
  const FileTensor stored = tensor.without_zeros();
  Array rows(Shape(stored.shape));
  stored.copy_to(rows.mutable_data());
  if (!tensor.stored) return table.assign(std::move(rows));
  table.set_packed(
      {RowIndex(tensor.shape[0], [&](const auto& keep) { tensor.stored->for_each(keep); }), std::move(rows)});
}

void load_optimizer(const SafetensorsFile& file, const RunParts& parts) {
  std::vector<std::string> suffixes;
  for (OptimizerState& state : parts.optimizer.states()) {
    suffixes.push_back("." + state.name());
    read_tensors(
        file, parts.params, suffixes.back(), [&](const Param& param) { return state.holds(param); },
        [&](const Param& param) { return state.of(param); });
  }
  refuse_unknown(file, parts.params, suffixes);
}

}  // namespace

void check_model_fits(const SafetensorsFile& file, const ParamStore& params) {
  for (const Param& param : params.params()) tensor_for(file, param, "");
  refuse_unknown(file, params, {""});
}

void load_model(const SafetensorsFile& file, ParamStore& params) {
  check_model_fits(file, params);
  const auto packs = [](const Param& param) { return param.offset < 0; };
  read_tensors(
      file, params, "", [&](const Param& param) { return !packs(param); }, within(params.values()));
  for (const Param& param : params.params())
    if (packs(param)) read_table(file.at(param.name), param.var);
}

void read_checkpoint(const SavedCheckpoint& checkpoint, const RunParts& parts) {
  const RunState& state = checkpoint.state;
  if (checkpoint.model)
    load_model(*checkpoint.model, parts.params);
  else if (state.best.empty() || state.best_step == state.step)  // otherwise the run has ended: nothing is computed
    throw Error(why_no_model(checkpoint));
  if (checkpoint.optimizer) load_optimizer(*checkpoint.optimizer, parts);
  parts.optimizer.set_steps(state.optimizer_step);
  parts.state = state;
}

}  // namespace capstan
