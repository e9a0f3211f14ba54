// Checks and reads the files of a checkpoint. tests/train/test_damaged_runs.cpp, test_resume.cpp.
#include "train/checkpoints/checkpoint_files.hpp"

#include <cerrno>
#include <set>

#include "core/io/file.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

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

void load_optimizer(const fs::path& checkpoint, const RunParts& parts) {
  const SafetensorsFile file((checkpoint / optimizer_name).string());
  std::vector<std::string> suffixes;
  for (OptimizerState& state : parts.optimizer.states()) {
    suffixes.push_back("." + state.name());
    read_tensors(
        file, parts.params, suffixes.back(), [&](const Param& param) { return state.holds(param); },
        [&](const Param& param) { return state.of(param); });
  }
  refuse_unknown(file, parts.params, suffixes);
}

/// Throws Error unless the file is whole, which its checksum says, and of this step, where it says of which.
void check_tensors(const std::string& path, int64_t step) {
  const SafetensorsFile file(path);
  if (!file.has_checksum())
    throw Error(
        fmt::format("{}: the file has no checksum, as every file of a checkpoint has: it was changed, or another "
                    "program wrote it",
                    path));
  const auto saved_step = file.metadata().find("step");
  if (saved_step != file.metadata().end() && saved_step->second != std::to_string(step))
    throw Error(
        fmt::format("{}: the file is of step {}, {} is of step {}", path, saved_step->second, state_name, step));
}

/// The message of what `check` throws because the content of a file is wrong or the file is absent; nothing if it
/// throws nothing. Other failures of the system (no permission, too many open files) are no damage and pass through.
template <class Check>
std::optional<std::string> damage(const Check& check) {
  try {
    check();
    return std::nullopt;
  } catch (const FileError& error) {
    const bool absent = error.error_number() == ENOENT || error.error_number() == ENOTDIR;
    if (!absent) throw;
    return error.what();
  } catch (const NewerFile&) {
    throw;
  } catch (const Error& error) {
    return error.what();
  }
}

/// The best checkpoint, if it has the weights of a run that has ended and whose last checkpoint has none; else empty.
fs::path best_with_model(const RunState& last, const fs::path& checkpoint) {
  const fs::path best = checkpoint.parent_path() / "best";
  if (last.has_model || last.best.empty() || last.best_step == last.step || !fs::exists(best / model_name)) return {};
  return best;
}

/// Throws Error unless a checkpoint has a model.
void require_model(const RunState& state, const fs::path& checkpoint) {
  if (const fs::path best = best_with_model(state, checkpoint); !best.empty())
    throw Error(fmt::format("{}: the weights of this step were removed when the run ended; those of the best are in {}",
                            checkpoint.string(), best.string()));
  if (!state.has_model)
    throw Error(fmt::format(
        "{}: this was a trial of capstan autotune, which has removed its weights: train its config.yaml under another "
        "name to have them",
        checkpoint.string()));
}

}  // namespace

RunState read_state(const fs::path& checkpoint) {
  const std::string path = (checkpoint / state_name).string();
  return run_state_from_json(read_file(path), path);
}

std::optional<std::string> damage_of(const fs::path& checkpoint) {
  return damage([&] {
    const RunState state = read_state(checkpoint);
    if (state.has_model) check_tensors((checkpoint / model_name).string(), state.step);
    if (state.has_optimizer) check_tensors((checkpoint / optimizer_name).string(), state.step);
  });
}

bool can_resume(const fs::path& checkpoint) { return !damage_of(checkpoint) && read_state(checkpoint).has_optimizer; }

std::optional<std::string> damage_of_model(const std::string& path, std::optional<SafetensorsFile>& model) {
  return damage([&] {
    const fs::path checkpoint = fs::path(path).parent_path();
    if (fs::exists(checkpoint / state_name)) require_model(read_state(checkpoint), checkpoint);
    model.emplace(path);
  });
}

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

void read_checkpoint(const fs::path& checkpoint, const RunParts& parts) {
  RunState state = read_state(checkpoint);
  if (best_with_model(state, checkpoint).empty()) {  // otherwise the run has ended: there is nothing to compute
    require_model(state, checkpoint);
    load_model(SafetensorsFile((checkpoint / model_name).string()), parts.params);
  }
  if (state.has_optimizer) load_optimizer(checkpoint, parts);
  parts.optimizer.set_steps(state.optimizer_step);
  parts.state = std::move(state);
}

}  // namespace capstan
