#include "run/exports/export_origin.hpp"

#include <nlohmann/json.hpp>

#include "core/io/safetensors.hpp"
#include "core/strings/strings.hpp"
#include "run/exports/export_files.hpp"

namespace capstan {

namespace {

/// The identity of data without the path of a saved tokenizer, whose fingerprint is beside it.
std::string without_paths(const std::string& identity) {
  std::string lines;
  for (const std::string_view line : split(identity, "\n"))
    if (!line.empty() && !starts_with(line, "tokenizer.file: ")) lines += std::string(line) + '\n';
  return lines;
}

}  // namespace

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
  if (data != run.state->identity.end()) origin["data"] = without_paths(data->second);
  return origin;
}

}  // namespace capstan
