#include "train/runs/checkpoint_files.hpp"

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>

#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "core/io/safetensors.hpp"
#include "core/text/join.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

constexpr const char* optimizer_name = "optimizer.safetensors";
constexpr const char* trained_suffix = ".trained";

/// One tensor per parameter, from the address that `place` returns; none where it returns null.
template <class Place>
void add_tensors(std::vector<TensorToWrite>& tensors, const ParamStore& params, const std::string& suffix,
                 const Place& place) {
  for (const Param& param : params.params())
    if (const real* const values = place(param))
      tensors.push_back({param.name + suffix, dtype_of(values), param.var.shape().to_vector(), values});
}

/// The address of a parameter in a block with the layout of the store.
template <class T>
auto within(T* block) {
  return [block](const Param& param) { return block + param.offset; };
}

std::string shape_text(const std::vector<int64_t>& extents) { return "(" + join(extents) + ")"; }

template <class Place>
void read_tensors(const SafetensorsFile& file, const ParamStore& params, const std::string& suffix,
                  const Place& place) {
  for (const Param& param : params.params()) {
    real* const values = place(param);
    if (values == nullptr) continue;
    const FileTensor* const tensor = file.find(param.name + suffix);
    if (tensor == nullptr)
      throw Error(fmt::format("{}: there is no tensor {}: the file belongs to another configuration", file.path(),
                              param.name + suffix));
    if (tensor->shape != param.var.shape().to_vector())
      throw Error(fmt::format("{}: tensor {} is {}, this configuration needs {}", file.path(), tensor->name,
                              shape_text(tensor->shape), param.var.shape()));
    tensor->copy_to(values);
  }
}

void refuse_unknown(const SafetensorsFile& file, const ParamStore& params, const std::vector<std::string>& suffixes) {
  std::set<std::string> known;
  for (const Param& param : params.params())
    for (const std::string& suffix : suffixes) known.insert(param.name + suffix);
  for (const FileTensor& tensor : file.tensors())
    if (known.count(tensor.name) == 0)
      throw Error(fmt::format("{}: tensor {} does not belong to this configuration", file.path(), tensor.name));
}

void load_optimizer(const fs::path& checkpoint, const RunParts& parts) {
  const SafetensorsFile file((checkpoint / optimizer_name).string());
  std::vector<std::string> suffixes;
  for (OptimizerState& state : parts.optimizer.states()) {
    suffixes.push_back("." + state.name());
    read_tensors(file, parts.params, suffixes.back(), [&](const Param& param) { return state.of(param); });
  }
  if (parts.average != nullptr) {
    // At this point the store holds the averaged weights, from model.safetensors.
    std::copy_n(parts.params.values(), parts.params.flat_size(), parts.average->block());
    suffixes.push_back(trained_suffix);
    read_tensors(file, parts.params, trained_suffix, within(parts.params.values()));
  }
  refuse_unknown(file, parts.params, suffixes);
}

/// Throws Error unless the file is whole and of this step, where it says of which.
void check_tensors(const std::string& path, int64_t step) {
  const SafetensorsFile file(path);
  const auto of = file.metadata().find("step");
  if (of != file.metadata().end() && of->second != std::to_string(step))
    throw Error(fmt::format("{}: the file is of step {}, {} is of step {}", path, of->second, state_name, step));
}

/// What `check` throws because the content of a file is wrong or the file is absent. Other failures of the system
/// (no permission, too many open files) are no damage and pass through.
template <class Check>
std::optional<std::string> damage(const Check& check) {
  try {
    check();
    return std::nullopt;
  } catch (const FileError& error) {
    const bool absent = error.error_number() == ENOENT || error.error_number() == ENOTDIR;
    if (!absent) throw;
    return error.what();
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

RunState read_state(const fs::path& checkpoint) {
  const std::string path = (checkpoint / state_name).string();
  return run_state_from_json(read_file(path), path);
}

std::optional<std::string> damage_of(const fs::path& checkpoint) {
  return damage([&] {
    const int64_t step = read_state(checkpoint).step;
    check_tensors((checkpoint / model_name).string(), step);
    check_tensors((checkpoint / optimizer_name).string(), step);
  });
}

std::optional<std::string> damage_of_model(const std::string& path) {
  return damage([&] {
    const SafetensorsFile model(path);
    const fs::path checkpoint = fs::path(path).parent_path();
    if (fs::exists(checkpoint / state_name)) read_state(checkpoint);
  });
}

void load_model(const std::string& path, ParamStore& params) {
  const SafetensorsFile file(path);
  read_tensors(file, params, "", within(params.values()));
  refuse_unknown(file, params, {""});
}

void read_checkpoint(const fs::path& checkpoint, const RunParts& parts) {
  RunState state = read_state(checkpoint);
  load_model((checkpoint / model_name).string(), parts.params);
  load_optimizer(checkpoint, parts);
  parts.optimizer.set_steps(state.optimizer_step);
  parts.state = std::move(state);
}

void write_checkpoint(const fs::path& folder, const RunParts& parts) {
  make_folders(folder.string());
  nlohmann::json aliases = nlohmann::json::object();
  for (const auto& [name, target] : parts.params.aliases()) aliases[name] = target;
  std::vector<TensorToWrite> model, optimizer;
  add_tensors(model, parts.params, "",
              within(parts.average != nullptr ? parts.average->block() : parts.params.values()));
  for (const OptimizerState& state : parts.optimizer.states())
    add_tensors(optimizer, parts.params, "." + state.name(), [&](const Param& param) { return state.of(param); });
  if (parts.average != nullptr) add_tensors(optimizer, parts.params, trained_suffix, within(parts.params.values()));
  write_safetensors(
      (folder / model_name).string(), model,
      {{"format", "capstan"}, {"step", std::to_string(parts.state.step)}, {"aliases", json_text(aliases)}});
  write_safetensors((folder / optimizer_name).string(), optimizer, {{"step", std::to_string(parts.state.step)}});
  write_file((folder / state_name).string(), to_json(parts.state));
  sync_folder(folder.string());
}

}  // namespace capstan
