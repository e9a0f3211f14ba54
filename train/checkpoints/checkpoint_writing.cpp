// Files are written in the order model, optimizer, state: a folder with a state has all that it names. Every rank
// writes what it owns at its place in the file that rank 0 has made. Large tensors are written without their rows of
// zeros where these are at least an eighth of all. tests/train/test_disk_use.cpp.
#include "train/checkpoints/checkpoint_files.hpp"

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/io/file.hpp"
#include "core/io/json.hpp"

namespace capstan {
namespace fs = std::filesystem;
namespace {

bool every(const Param&) { return true; }

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

  /// One tensor per parameter of which `holds` is true, and what `part` returns of it.
  template <class Holds, class Part>
  void add(const std::string& suffix, const Holds& holds, const Part& part) {
    for (const Param& param : params_.params()) {
      if (!holds(param)) continue;
      const auto here = part(param);
      tensors_.push_back({param.name + suffix, dtype_of(here.values), param.var.shape().to_vector(), here.values});
      if (here.size() > 0) parts_.push_back({param.name + suffix, here.begin, here.end, here.values});
    }
  }

  /// Returns the checksum; empty on other ranks than the first.
  std::string write(Communicator* ranks) {
    leave_out_zeros(ranks);
    if (ranks == nullptr || ranks->size() == 1)
      return write_safetensors(path_, std::move(tensors_), metadata_, Sync::later);
    const SafetensorsParts file(path_, std::move(tensors_), metadata_);
    const Communicator::LongTimeout disk(*ranks);
    if (ranks->first()) file.create();
    ranks->barrier();
    file.write(parts_);
    ranks->barrier();
    return ranks->first() ? file.finish() : "";
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

std::map<std::string, std::string> write_tensor_files(const fs::path& folder, const RunParts& parts) {
  if (parts.ranks == nullptr || parts.ranks->first()) make_folders(folder.string());
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
  std::map<std::string, std::string> files;
  files[model_name] = model.write(parts.ranks);
  files[optimizer_name] = optimizer.write(parts.ranks);
  return files;
}

void write_checkpoint(const fs::path& folder, const RunParts& parts) {
  parts.state.files = write_tensor_files(folder, parts);
  if (parts.state.best_step == parts.state.step) parts.state.best_weights = parts.state.files[model_name];
  if (parts.ranks != nullptr && !parts.ranks->first()) return;
  write_file((folder / state_name).string(), to_json(parts.state), Sync::later);
}

void write_only_checkpoint(const fs::path& checkpoints, RunState state, const WriteFiles& write) {
  const fs::path folder = folder_of_step(checkpoints, state.step);
  make_folders(folder.string());
  state.run = new_run_id();
  state.files = write(folder);
  state.best_step = state.step;
  state.best_weights = state.files[model_name];
  write_file((folder / state_name).string(), to_json(state));
  write_file((checkpoints / mark_name).string(), to_json(RunMark{state.run, state.step}));
  sync_checkpoint(folder);
  sync_folder(checkpoints.string());
}

void sync_checkpoint(const fs::path& folder) {
  for (const std::string& name : names_in_folder(folder.string())) sync_file((folder / name).string());
  sync_folder(folder.string());
}

}  // namespace capstan
