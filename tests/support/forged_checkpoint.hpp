// Checkpoints that were changed on purpose, for tests of what a checkpoint that is whole may still do.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "core/io/json.hpp"
#include "core/io/safetensors.hpp"

namespace capstan {

/// Writes the state of a checkpoint so that it names the files as they are now, with right checksums; `changes`
/// replace fields of it.
inline void forge_state(const std::filesystem::path& checkpoint, const nlohmann::json& changes = {}) {
  const std::string path = (checkpoint / "state.json").string();
  nlohmann::json file = parse_json(read_file(path));
  nlohmann::json& state = file["state"];
  for (auto& [name, checksum] : state["files"].items())
    checksum = SafetensorsFile((checkpoint / name).string()).checksum();
  const std::filesystem::path best = checkpoint.parent_path() / ("step-" + state["best_step"].dump());
  if (std::filesystem::exists(best / "model.safetensors"))
    state["best_weights"] = SafetensorsFile((best / "model.safetensors").string()).checksum();
  for (const auto& [name, value] : changes.items()) state[name] = value;
  file["xxh3_128"] = hash_hex(json_text(state));
  std::ofstream(path, std::ios::binary) << file.dump();
}

/// Changes tensors of a file of a checkpoint, whose state then names it.
inline void change_tensors(const std::filesystem::path& path,
                           const std::function<void(const std::string& name, std::vector<float>& values)>& change) {
  std::vector<TensorToWrite> tensors;
  std::vector<std::vector<float>> values;
  std::map<std::string, std::string> metadata;
  {
    const SafetensorsFile file(path.string());
    metadata = file.metadata();
    for (const FileTensor& tensor : file.tensors()) {
      values.push_back(tensor.to_floats());
      change(tensor.name, values.back());
      tensors.push_back({tensor.name, DType::f32, tensor.shape, values.back().data()});
    }
  }
  for (const char* const key : {"xxh3_128", "sparse", "factors"}) metadata.erase(key);
  std::filesystem::remove(path);
  write_safetensors(path.string(), tensors, metadata);
  forge_state(path.parent_path());
}

}  // namespace capstan
