#include "run/setup/weights_origin.hpp"

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "core/io/json.hpp"
#include "core/strings/printable.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "run/setup/saved_config.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// Tokenizer, classes and configuration of the run that the weights belong to.
void read_run(const fs::path& folder, WeightsOrigin& origin) {
  const fs::path tokenizer = folder / "tokenizer.json", classes = folder / "classes.txt";
  origin.config = load_run_config(folder);
  if (fs::exists(tokenizer)) origin.tokenizer = tokenizer_from_json(read_file(tokenizer.string()), tokenizer.string());
  if (fs::exists(classes)) origin.classes = read_classes(folder);
}

}  // namespace

WeightsOrigin open_weights(const fs::path& where) {
  WeightsOrigin origin;
  origin.file = find_model_file(where);
  origin.tensors = std::make_unique<SafetensorsFile>(origin.file);
  if (fs::exists(origin.folder() / state_name)) origin.state = read_state(origin.folder());
  // A run's weights are in <run>/checkpoints/<step>/.
  const fs::path run = fs::absolute(origin.file).parent_path().parent_path().parent_path();
  if (origin.state && fs::exists(run / "config.yaml") && fs::is_directory(run / "checkpoints")) read_run(run, origin);
  return origin;
}

Ancestor WeightsOrigin::ancestor() const {
  std::error_code unknown;
  const fs::path whole = fs::canonical(file, unknown);
  const auto checksum = tensors->metadata().find("xxh3_128");
  return {printable_line((unknown ? fs::path(file) : whole).string()),
          checksum != tensors->metadata().end() ? checksum->second : hash_hex(read_file(file)),
          state ? state->step : -1};
}

std::map<std::string, std::string> WeightsOrigin::aliases() const {
  const auto text = tensors->metadata().find("aliases");
  std::map<std::string, std::string> found;
  if (text == tensors->metadata().end()) return found;
  const nlohmann::json aliases = try_parse_json(text->second);
  if (!aliases.is_object()) return found;
  for (const auto& [name, target] : aliases.items())
    if (target.is_string()) found[name] = target.get<std::string>();
  return found;
}

}  // namespace capstan
