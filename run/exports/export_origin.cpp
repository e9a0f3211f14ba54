#include "run/exports/export_origin.hpp"

#include <nlohmann/json.hpp>

#include "core/io/safetensors.hpp"
#include "run/exports/export_files.hpp"

namespace capstan {

nlohmann::json export_origin(const SavedRun& run) {
  const SafetensorsFile weights(run.weights);
  nlohmann::json origin = {{"format", export_format},
                           {"version", program_version},
                           {"run", run.config.name},
                           {"tokenizer", run.tokenizer->fingerprint()}};
  const auto checksum = weights.metadata().find("xxh3_128");
  if (checksum != weights.metadata().end()) origin["weights"] = checksum->second;
  if (!run.state) return origin;
  origin["step"] = run.state->step;
  const auto data = run.state->identity.find("data");
  if (data != run.state->identity.end()) origin["data"] = data->second;
  return origin;
}

}  // namespace capstan
