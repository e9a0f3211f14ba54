// Opens what train.init_from names and checks it.
// tests/cli/training/test_warm_start.cpp and test_warm_refusals.cpp.
#include "run/setup/weights_origin.hpp"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "core/io/json.hpp"
#include "core/strings/printable.hpp"
#include "run/setup/saved_run.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/checkpoints/open_model.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

std::optional<ExportedModel> exported_model(const fs::path& file) {
  if (!fs::exists(file)) return std::nullopt;
  const nlohmann::json config = try_parse_json(read_file(file.string()));
  if (!config.is_object() || !config.contains("capstan") || !config.contains("model")) return std::nullopt;
  ExportedModel exported{load_config_text<TaskConfig>(json_text(config.at("model")), file.string(), "model"), ""};
  if (const nlohmann::json& origin = config.at("capstan"); origin.contains("tokenizer"))
    if (const nlohmann::json& tokenizer = origin.at("tokenizer"); tokenizer.is_string()) exported.tokenizer = tokenizer;
  return exported;
}

}  // namespace

WeightsOrigin open_weights(const fs::path& where) {
  WeightsOrigin origin;
  origin.tensors = std::make_unique<SafetensorsFile>(open_model(where));
  origin.file = origin.tensors->path();
  if (fs::exists(origin.folder() / state_name)) origin.state = read_state(origin.folder());
  // A run's weights are in <run>/checkpoints/<step>/.
  const fs::path run = fs::absolute(origin.file).parent_path().parent_path().parent_path();
  if (origin.state && fs::exists(run / "config.yaml") && fs::is_directory(run / "checkpoints"))
    origin.run = read_run_files(run, *origin.tensors);
  else
    origin.exported = exported_model(origin.folder() / "config.json");
  return origin;
}

ParentCheckpoint WeightsOrigin::ancestor() const {
  std::error_code unknown;
  const fs::path whole = fs::canonical(file, unknown);
  const auto checksum = tensors->metadata().find("xxh3_128");
  return {printable_line((unknown ? fs::path(file) : whole).string()),
          checksum != tensors->metadata().end() ? checksum->second : hash_hex(read_file(file)),
          state ? state->step : -1};
}

std::map<std::string, std::string> WeightsOrigin::aliases() const {
  const auto text = tensors->metadata().find("aliases");
  std::map<std::string, std::string> targets;
  if (text == tensors->metadata().end()) return targets;
  const nlohmann::json aliases = try_parse_json(text->second);
  if (!aliases.is_object()) return targets;
  for (const auto& [name, target] : aliases.items())
    if (target.is_string()) targets[name] = target.get<std::string>();
  return targets;
}

}  // namespace capstan
