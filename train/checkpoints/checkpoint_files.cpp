// Files are written in the order model, optimizer, state: a folder with a state has all that it names. Every rank
// writes what it owns at its place in the file that rank 0 has made. Large tensors are written without their rows of
// zeros where these are at least an eighth of all. tests/train/test_disk_use.cpp.
#include "train/checkpoints/checkpoint_files.hpp"

#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// For read_tensors(): a function that gives all of a parameter in a block with the layout of the store.
template <class T>
auto within(T* block) {
  return [block](const Param& param) { return ParamPart<T>{block + param.offset, 0, param.var.size()}; };
}

/// One tensor per parameter of which `holds` is true, with the memory that `part` returns.
template <class Holds, class Part>
void add_tensors(std::vector<TensorToWrite>& tensors, const ParamStore& params, const std::string& suffix,
                 const Holds& holds, const Part& part) {
  for (const Param& param : params.params())
    if (holds(param))
      tensors.push_back(
          {param.name + suffix, dtype_of(part(param).values), param.var.shape().to_vector(), part(param).values});
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

bool every(const Param&) { return true; }

/// Throws Error for a tensor that is of no parameter with one of the suffixes.
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

namespace {

/// Reads a table that is kept without its rows of zeros, as its file has it.
void read_table(const FileTensor& tensor, const Var& table) {
  const FileTensor stored = tensor.without_zeros();
  Array rows(Shape(stored.shape));
  stored.copy_to(rows.mutable_data());
  if (!tensor.stored) return table.assign(std::move(rows));
  table.set_packed(
      {RowIndex(tensor.shape[0], [&](const auto& keep) { tensor.stored->for_each(keep); }), std::move(rows)});
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

namespace {

/// Sets the bits of the rows in which the part is not all zeros (+0: what was never touched).
void mark_rows(const SafetensorsParts::Part& part, int64_t width, char* bits) {
  const auto* values = static_cast<const real*>(part.bytes);
  for (int64_t at = part.begin; at < part.end;) {
    const int64_t row = at / width, next = std::min(part.end, (row + 1) * width);
    const auto* const bytes = reinterpret_cast<const char*>(values);
    // All bytes are zero if the first one is, and each is equal to the one before it.
    if (*bytes != 0 || std::memcmp(bytes, bytes + 1, static_cast<size_t>(next - at) * sizeof(real) - 1) != 0)
      bits[row / 8] = static_cast<char>(bits[row / 8] | 1 << (row % 8));
    values += next - at;
    at = next;
  }
}

/// One file of tensors: what they are, and the parts of them that this rank has.
class TensorFile {
 public:
  TensorFile(std::string path, const ParamStore& params, std::map<std::string, std::string> metadata)
      : path_(std::move(path)), params_(params), metadata_(std::move(metadata)) {}

  template <class Holds, class Part>
  void add(const std::string& suffix, const Holds& holds, const Part& part) {
    add_tensors(tensors_, params_, suffix, holds, part);
    for (const Param& param : params_.params())
      if (holds(param))
        if (const auto here = part(param); here.size() > 0)
          parts_.push_back({param.name + suffix, here.begin, here.end, here.values});
  }

  void write(Communicator* ranks) {
    leave_out_zeros(ranks);
    if (ranks == nullptr || ranks->size() == 1)
      return write_safetensors(path_, std::move(tensors_), metadata_, Sync::later);
    const SafetensorsParts file(path_, std::move(tensors_), metadata_);
    const Communicator::Patience disk(*ranks);
    if (ranks->first()) file.create();
    ranks->barrier();
    file.write(parts_);
    ranks->barrier();
    if (ranks->first()) file.finish();
  }

 private:
  /// Tables with many rows of zeros are written without them. It is the values of all ranks that decide, so the file
  /// is the same for any number of them; small tensors stay as everybody reads them.
  void leave_out_zeros(Communicator* ranks) {
    constexpr int64_t small = 1 << 14;
    struct Table {
      TensorToWrite* tensor;
      int64_t rows, width;
      size_t at;  // in `bits`
    };
    std::map<std::string, Table> tables;
    std::string bits;
    for (TensorToWrite& tensor : tensors_) {
      const int64_t size = Shape(tensor.shape).size();
      if (tensor.shape.empty() || size <= small) continue;
      tables[tensor.name] = {&tensor, tensor.shape[0], size / tensor.shape[0], bits.size()};
      bits.resize(bits.size() + static_cast<size_t>(StoredRows::bytes_of(tensor.shape[0])));
    }
    for (const SafetensorsParts::Part& part : parts_)
      if (const auto table = tables.find(part.name); table != tables.end())
        mark_rows(part, table->second.width, bits.data() + table->second.at);
    if (ranks != nullptr && ranks->size() > 1)
      for (const std::string& others : ranks->gather(bits))
        for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<char>(bits[i] | others[i]);
    for (const auto& [name, table] : tables) {
      const char* const begin = bits.data() + table.at;
      auto stored = std::make_shared<const StoredRows>(
          table.rows, std::vector<unsigned char>(begin, begin + StoredRows::bytes_of(table.rows)));
      if (stored->count() <= table.rows - table.rows / 8) table.tensor->stored = std::move(stored);
    }
  }

  std::string path_;
  const ParamStore& params_;
  std::map<std::string, std::string> metadata_;
  std::vector<TensorToWrite> tensors_;
  std::vector<SafetensorsParts::Part> parts_;
};

/// For TensorFile::add(): a function that gives the part of a parameter that this rank owns, in a block with the layout
/// of the store. Frozen parameters have no owner, so the first rank writes them.
auto owned_within(const real* block, const RunParts& parts) {
  return [block, &parts](const Param& param) {
    if (param.frozen && parts.ranks != nullptr && !parts.ranks->first()) return ParamPart<const real>{};
    if (parts.owned.empty() || param.frozen) return ParamPart<const real>{block + param.offset, 0, param.var.size()};
    for (const Elements& part : parts.owned)
      if (const Elements here = common(part, {param.offset, param.offset + param.var.size()}); here.size() > 0)
        return ParamPart<const real>{block + here.begin, here.begin - param.offset, here.end - param.offset};
    return ParamPart<const real>{};
  };
}

}  // namespace

double seconds_to_save(const RunParts& parts) {
  int64_t elements = parts.params.flat_size();
  for (const OptimizerState& state : std::as_const(parts.optimizer).states()) elements += state.size();
  return static_cast<double>(elements) * sizeof(real) / 2.5e8;
}

void write_checkpoint(const fs::path& folder, const RunParts& parts) {
  const bool first = parts.ranks == nullptr || parts.ranks->first();
  if (first) make_folders(folder.string());
  nlohmann::json aliases = nlohmann::json::object();
  for (const auto& [name, target] : parts.params.aliases()) aliases[name] = target;
  const std::string step = std::to_string(parts.state.step);
  TensorFile model((folder / model_name).string(), parts.params,
                   {{"format", "capstan"}, {"step", step}, {"aliases", json_text(aliases)}});
  TensorFile optimizer((folder / optimizer_name).string(), parts.params, {{"step", step}});
  model.add("", every, owned_within(parts.params.values(), parts));
  for (const OptimizerState& state : std::as_const(parts.optimizer).states())
    optimizer.add(
        "." + state.name(), [&](const Param& param) { return state.holds(param); },
        [&](const Param& param) { return state.of(param); });
  model.write(parts.ranks);
  optimizer.write(parts.ranks);
  if (!first) return;
  write_file((folder / state_name).string(), to_json(parts.state), Sync::later);
}

void sync_checkpoint(const fs::path& folder) {
  for (const std::string& name : names_in_folder(folder.string())) sync_file((folder / name).string());
  sync_folder(folder.string());
}

}  // namespace capstan
