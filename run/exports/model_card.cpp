// Writes the model card of an export. It is published, so that it names no folders of its maker.
// tests/cli/runs/test_export.cpp.
#include "run/exports/model_card.hpp"

#include <filesystem>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/io/hash.hpp"
#include "core/io/safetensors.hpp"
#include "core/strings/strings.hpp"
#include "run/exports/export_files.hpp"
#include "run/yaml/config.hpp"

namespace capstan {
namespace {

/// The number of the form in which models are exported. It grows when what reads an earlier export cannot read this.
constexpr int64_t export_format = 1;

const char* task_of(const ModelFacts& facts) {
  switch (facts.predicts) {
    case Predicts::next_token:
      return "text-generation";
    case Predicts::hidden_tokens:
      return "fill-mask";
    case Predicts::classes:
      return "text-classification";
  }
  return "";
}

/// The best validation's metrics as a table; empty: the run was not validated.
std::string metrics_table(const SavedRun& run) {
  if (!run.state || run.state->best.empty()) return "The run was not validated.\n";
  std::string table =
      fmt::format("On the validation data, at step {}:\n\n| metric | value |\n|---|---|\n", run.state->best_step);
  for (const auto& [name, value] : run.state->best) table += fmt::format("| {} | {:.4f} |\n", name, value);
  return table;
}

/// Shortens a path to its last part: an export is published, and folders may have the names of people.
void keep_name(ConfigNode& path) {
  const std::filesystem::path whole(path.text);
  path.text = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

/// The configuration, without the folders in the paths that it names.
std::string recipe(const RunConfig& config) {
  ConfigNode tree = to_node(config);
  for (const char* const key : {"folder", "data.train", "data.valid", "data.test", "data.cache", "data.tokenizer.model",
                                "data.tokenizer.file", "train.init_from"}) {
    ConfigNode* node = &tree;
    for (const std::string_view part : split(key, "."))
      if (node != nullptr) node = node->find(part);
    if (node == nullptr) continue;
    if (node->kind == NodeKind::scalar) keep_name(*node);
    for (ConfigNode& path : node->children) keep_name(path);
  }
  return write_yaml(tree);
}

/// The lines of the model card that say what the model cannot do, and where its answers differ from bare probabilities.
std::string limits_of(const SavedRun& run) {
  std::string text;
  if (const auto limit = run.model->position_limit()) text += fmt::format("- Texts have at most {} tokens.\n", *limit);
  if (facts_of(run.config.model).reads_sources)
    text += "- A prompt is read in both directions; generate with the decode state (`use_cache=True`, the default).\n";
  if (facts_of(run.config.data).multi_label())
    text += "- A text has the labels whose probability (sigmoid) reaches `config.capstan[\"thresholds\"]`.\n";
  if (!run.rule.empty())
    text +=
        run.rule.size() == run.classes.size()
            ? "- `capstan predict` gives a text the class with the largest product of its probability and its factor "
              "in `config.capstan[\"rule\"]`, and so does the pipeline; probabilities are without it.\n"
            : "- `capstan predict` gives a text the class with the lowest expected cost, of which "
              "`config.capstan[\"rule\"]` has rows of true and columns of given classes, and so does the pipeline.\n";
  text +=
      "- It was trained on the data named below and knows nothing else. Nobody has examined what it writes or decides "
      "for bias or harm.\n";
  return text;
}

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

std::string model_card(const SavedRun& run, const char* opened_by) {
  const nlohmann::json origin = export_origin(run);
  const std::string data = origin.value("data", std::string("not recorded\n"));
  std::string card = fmt::format("---\npipeline_tag: {}\ntags:\n- capstan\n- {}\n", task_of(facts_of(run.config.model)),
                                 type_of(run.config.model));
  card += "library_name: transformers\n";
  card += fmt::format("---\n\n# {}\n\nA {} that Capstan {} has trained.\n", run.config.name, type_of(run.config.model),
                      origin.value("version", std::string()));
  card += fmt::format(
      "\n```python\nfrom transformers import AutoTokenizer, {0}\n\ntokenizer = "
      "AutoTokenizer.from_pretrained(FOLDER)\n"
      "model = {0}.from_pretrained(FOLDER, trust_remote_code=True)\n```\n",
      opened_by);
  card += "\n## Metrics\n\n" + metrics_table(run) + "\n## Limits\n\n" + limits_of(run);
  card += fmt::format(
      "\n## Origin\n\n| | |\n|---|---|\n| run | {} |\n| step | {} |\n| weights (XXH3-128) | {} |\n"
      "| tokenizer (XXH3-128) | {} |\n| data (XXH3-128 of the lines below) | {} |\n\n```\n{}```\n",
      run.config.name, run.state ? run.state->step : -1, origin.value("weights", std::string("unknown")),
      run.tokenizer->fingerprint(), hash_hex(data), data);
  return card + "\n## Recipe\n\n```yaml\n" + recipe(run.config) + "```\n";
}

}  // namespace capstan
