// Checkpoints that were changed on purpose, for tests of what a checkpoint that is whole may still do.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <string>

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

}  // namespace capstan
