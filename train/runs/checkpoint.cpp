#include "train/runs/checkpoint.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "core/io/safetensors.hpp"
#include "core/text/affixes.hpp"
#include "core/text/join.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

constexpr const char* model_name = "model.safetensors";
constexpr const char* optimizer_name = "optimizer.safetensors";
constexpr const char* state_name = "state.json";
constexpr const char* step_prefix = "step-";
constexpr const char* unfinished_prefix = ".unfinished-";
constexpr const char* replaced_prefix = ".replaced-";
constexpr const char* trained_suffix = ".trained";

/// Step of a folder called step-N; -1 for any other name.
int64_t step_of(const std::string& name) {
  const std::string digits = starts_with(name, step_prefix) ? name.substr(std::string(step_prefix).size()) : "";
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos) return -1;
  return std::stoll(digits);
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && error.value() != ENOENT) throw_file_error("list", folder.string(), error.value());
  std::sort(names.begin(), names.end());
  return names;
}

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

/// Are all files of a checkpoint there and undamaged?
bool is_complete(const fs::path& checkpoint) {
  try {
    const SafetensorsFile model((checkpoint / model_name).string());
    const SafetensorsFile optimizer((checkpoint / optimizer_name).string());
    read_state(checkpoint);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

RunState read_state(const fs::path& checkpoint) {
  const std::string path = (checkpoint / state_name).string();
  return run_state_from_json(read_file(path), path);
}

void load_model(const std::string& path, ParamStore& params) {
  const SafetensorsFile file(path);
  read_tensors(file, params, "", within(params.values()));
  refuse_unknown(file, params, {""});
}

std::string find_model_file(const fs::path& where) {
  std::error_code error;
  if (fs::is_regular_file(where, error)) return where.string();
  for (const fs::path& candidate :
       {where / model_name, where / "checkpoints" / "best" / model_name, where / "checkpoints" / "last" / model_name})
    if (fs::is_regular_file(candidate, error)) return candidate.string();
  throw Error(fmt::format("{}: there is no model here: give a run folder, a checkpoint's folder or a .safetensors file",
                          where.string()));
}

void Checkpoints::recover() {
  make_folders(folder_.string());
  for (const std::string& name : names_in(folder_)) {
    if (starts_with(name, unfinished_prefix) || name == ".last.tmp" || name == ".best.tmp")
      remove_tree((folder_ / name).string());
    if (!starts_with(name, replaced_prefix)) continue;
    const fs::path original = folder_ / name.substr(std::string(replaced_prefix).size());
    if (fs::exists(original)) {
      remove_tree((folder_ / name).string());
    } else {
      rename_path((folder_ / name).string(), original.string());
    }
  }
}

std::vector<int64_t> Checkpoints::steps() const {
  std::vector<int64_t> steps;
  for (const std::string& name : names_in(folder_))
    if (step_of(name) >= 0) steps.push_back(step_of(name));
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<fs::path> Checkpoints::last() const {
  const fs::path link = folder_ / "last";
  std::error_code error;
  if (fs::is_symlink(link, error)) {
    const fs::path target = folder_ / fs::read_symlink(link);
    if (fs::is_directory(target, error)) return target;
    throw Error(fmt::format("{} points to {}, which does not exist; {}", link.string(), target.string(),
                            complete_ones(target)));
  }
  // No link: nothing was saved, or the first save was killed just before it made the link.
  const std::vector<int64_t> all = steps();
  if (all.empty()) return std::nullopt;
  return of_step(all.back());
}

std::string Checkpoints::complete_ones(const fs::path& but) const {
  std::vector<std::string> found;
  for (const int64_t step : steps())
    if (of_step(step) != but && is_complete(of_step(step))) found.push_back(of_step(step).string());
  return found.empty()
             ? fmt::format("no other checkpoint is complete: remove {} to start over", folder_.string())
             : fmt::format(
                   "complete checkpoints: {}; continue from one of them with --resume-from, or remove {} to start over",
                   join(found), folder_.string());
}

void Checkpoints::write_files(const fs::path& folder, const RunParts& parts) const {
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

void Checkpoints::save(const RunParts& parts, bool best, int64_t keep_last) {
  const std::string name = step_prefix + std::to_string(parts.state.step);
  const fs::path unfinished = folder_ / (unfinished_prefix + name), replaced = folder_ / (replaced_prefix + name);
  const fs::path target = folder_ / name;
  try {
    write_files(unfinished, parts);
  } catch (const Error&) {
    std::error_code ignored;  // the first failure is the one to report
    fs::remove_all(unfinished, ignored);
    throw;
  }
  if (fs::exists(target)) rename_path(target.string(), replaced.string());
  rename_path(unfinished.string(), target.string());
  sync_folder(folder_.string());
  // `best` first: after a kill in between, `last` is at an earlier state, which reaches this step again.
  if (best) replace_link((folder_ / "best").string(), name);
  replace_link((folder_ / "last").string(), name);
  sync_folder(folder_.string());
  remove_tree(replaced.string());
  prune(parts.state.step, keep_last);
}

void Checkpoints::prune(int64_t current, int64_t keep_last) {
  std::error_code error;
  const int64_t best = step_of(fs::read_symlink(folder_ / "best", error).filename().string());
  std::vector<int64_t> old = steps();
  // Later steps are those of a run that was resumed from an earlier checkpoint; they are kept.
  old.erase(std::upper_bound(old.begin(), old.end(), current), old.end());
  for (size_t i = 0; i + static_cast<size_t>(keep_last) < old.size(); ++i) {
    if (old[i] == best || old[i] == current) continue;
    // Renamed to a hidden name first, so that a kill never leaves half a checkpoint under its own name.
    const fs::path hidden = folder_ / (unfinished_prefix + std::string("old-") + std::to_string(old[i]));
    rename_path(of_step(old[i]).string(), hidden.string());
    remove_tree(hidden.string());
  }
}

void Checkpoints::load(const fs::path& checkpoint, const RunParts& parts,
                       const std::function<void(const RunState&)>& accept) const {
  RunState state;
  try {
    state = read_state(checkpoint);
    const SafetensorsFile model((checkpoint / model_name).string());
    const SafetensorsFile optimizer((checkpoint / optimizer_name).string());
  } catch (const Error& error) {
    throw Error(fmt::format("{}; {}", error.what(), complete_ones(checkpoint)));
  }
  // The files are undamaged: from here on only the configuration can differ.
  if (accept) accept(state);
  load_model((checkpoint / model_name).string(), parts.params);
  load_optimizer(checkpoint, parts);
  parts.optimizer.set_steps(state.optimizer_step);
  parts.state = std::move(state);
}

void Checkpoints::repair_best(const RunState& state) {
  const fs::path link = folder_ / "best";
  std::error_code error;
  const bool dangling = fs::is_symlink(link, error) && !fs::exists(link, error);
  if (!state.best_loss || !fs::is_directory(of_step(state.best_step), error)) {
    if (dangling) remove_tree(link.string());
    return;
  }
  if (dangling || !fs::is_symlink(link, error))
    replace_link(link.string(), of_step(state.best_step).filename().string());
}

}  // namespace capstan
