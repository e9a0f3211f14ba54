// A folder for transformers is always written; formats of other programs are that folder and a script that makes their
// files. Weights keep the run's types, and large tables the run's rows (Weights). What config.json says is read by the
// exported Python code (run/exports/huggingface), so that keys change in both. tests/cli/runs/test_export.cpp.
#include "run/exports/export_run.hpp"

#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "core/io/json.hpp"
#include "core/io/safetensors.hpp"
#include "core/io/safetensors_format.hpp"
#include "core/strings/strings.hpp"
#include "run/exports/export_files.hpp"
#include "run/exports/tokenizer_json.hpp"
#include "run/setup/file_safety.hpp"
#include "run/setup/run_model.hpp"
#include "run/yaml/config.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// README.md, which describes the model to people, with the YAML header of model hubs. `opened_by`: the class of
/// transformers that opens the export; `tables`: as write_pytorch_weights() returns them.
std::string model_card(const SavedRun& run, const char* opened_by, const nlohmann::json& tables);

/// The number of the form in which models are exported. It grows when what reads an earlier export cannot read this.
constexpr int64_t export_format = 1;

/// Format, version, run, step, and fingerprints of weights, tokenizer and data.
nlohmann::json export_origin(const SavedRun& run);

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
  for (const char* const key :
       {"folder", "data.train", "data.valid", "data.test", "data.classes_file", "data.cache",
        "data.tokenizer.vocabulary", "data.tokenizer.model", "data.tokenizer.file", "train.init_from"}) {
    ConfigNode* node = &tree;
    for (const std::string_view part : split(key, "."))
      if (node != nullptr) node = node->find(part);
    if (node == nullptr) continue;
    if (node->kind == NodeKind::scalar) keep_name(*node);
    for (ConfigNode& path : node->children) keep_name(path);
  }
  return write_yaml(tree, Comments::none);
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

/// What a folder for transformers has in it. `tables`: as write_pytorch_weights() returns them.
std::string files_in(const SavedRun& run, const nlohmann::json& tables) {
  const ModelFacts facts = facts_of(run.config.model);
  std::string text = "- `model.safetensors`: the weights, in the types in which the run has them.";
  for (const auto& [name, stored] : tables.items())
    text += fmt::format(" Of `{}` it has {} of {} rows; the others are zero.", name, stored.at("stored").dump(),
                        stored.at("rows").dump());
  if (!tables.empty()) text += " `from_pretrained` makes these tables whole, and `save_pretrained` writes them whole.";
  text += fmt::format("\n- `modeling_capstan{}.py` and the files that it imports: the model in PyTorch.{}\n",
                      facts.reads_texts ? "_linear" : "", facts.reads_texts ? " It needs the package xxhash." : "");
  if (facts.predicts != Predicts::next_token)
    text += fmt::format(
        "- `pipeline_capstan.py`: `pipeline(\"{}\", model=FOLDER, trust_remote_code=True)` answers as "
        "`capstan predict` does, also for texts that are too long.\n",
        task_of(facts));
  return text + "- `tokenizer.json` and `tokenizer_config.json`: the run's tokenizer.\n";
}

std::string model_card(const SavedRun& run, const char* opened_by, const nlohmann::json& tables) {
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
  card += "\n## Files\n\n" + files_in(run, tables);
  card += "\n## Metrics\n\n" + metrics_table(run) + "\n## Limits\n\n" + limits_of(run);
  card += fmt::format(
      "\n## Origin\n\n| | |\n|---|---|\n| run | {} |\n| step | {} |\n| weights (XXH3-128) | {} |\n"
      "| tokenizer (XXH3-128) | {} |\n| data (XXH3-128 of the lines below) | {} |\n\n```\n{}```\n",
      run.config.name, run.state ? run.state->step : -1, origin.value("weights", std::string("unknown")),
      run.tokenizer->fingerprint(), hash_hex(data), data);
  return card + "\n## Recipe\n\n```yaml\n" + recipe(run.config) + "```\n";
}

/// The identity of data without the path of a saved tokenizer, whose fingerprint is beside it.
std::string without_paths(const std::string& identity) {
  std::string lines;
  for (const std::string_view line : split(identity, "\n"))
    if (!line.empty() && !starts_with(line, "tokenizer.file: ")) lines += std::string(line) + '\n';
  return lines;
}

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

/// Writes a folder for the Python library transformers: config.json, generation_config.json, model.safetensors, the
/// Python files that compute the model, the tokenizer and a model card.
void write_huggingface(const SavedRun& run, const std::filesystem::path& folder);

namespace fs = std::filesystem;
using nlohmann::json;

/// Writes the weights as a safetensors file for PyTorch, in the types that the run has them in. Of a table of n-grams
/// the run has the rows that are not zero: so has the file, with a tensor NAME_rows that says which rows these are.
/// Returns, by name, what a reader needs to make whole tables of them: rows, stored (how many of them), bytes and form
/// (of NAME_rows) and factor.
nlohmann::json write_pytorch_weights(const SavedRun& run, const std::filesystem::path& file);

using nlohmann::json;

/// A run stores any large tensor without its rows of zeros. Only the modules of these tensors can read them so (they
/// have a place for the rows' numbers); all others are written whole.
bool is_ngram_table(const std::string& name) {
  for (const char* const table : {"ngrams.table", "ngram_embedding.table", "linear.weight", "linear.scale"})
    if (name == table) return true;
  return false;
}

class Weights {
 public:
  void add(const FileTensor& tensor) {
    if (tensor.stored != nullptr && is_ngram_table(tensor.name)) return add_table(tensor);
    if (tensor.stored == nullptr && tensor.factor == 1) {
      tensors_.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
      return;
    }
    values_.push_back(tensor.to_floats());
    tensors_.push_back({tensor.name, DType::f32, tensor.shape, values_.back().data()});
  }

  void write(const std::filesystem::path& file) {
    std::map<std::string, std::string> metadata = {{"format", "pt"}};
    if (!rows_.empty())
      metadata[safetensors::sparse_key] = json{
          {"format", gaps_ ? safetensors::pytorch_gaps_format : safetensors::pytorch_bits_format},
          {"rows", rows_}}.dump();
    write_safetensors(file.string(), std::move(tensors_), metadata);
  }

  const json& tables() const { return tables_; }

 private:
  void add_table(const FileTensor& tensor) {
    const StoredRows& stored = *tensor.stored;
    const FileTensor part = tensor.without_zeros();
    const auto bytes = static_cast<int64_t>(stored.bytes().size());
    gaps_ = stored.form() == StoredRows::Form::gaps;  // all tables of a file have the same form
    tensors_.push_back({tensor.name, tensor.dtype, part.shape, part.bytes, nullptr, tensor.factor});
    tensors_.push_back({tensor.name + safetensors::pytorch_rows_suffix, DType::u8, {bytes}, stored.bytes().data()});
    rows_[tensor.name] = stored.rows();
    tables_[tensor.name] = {{"rows", stored.rows()},
                            {"stored", stored.count()},
                            {"bytes", bytes},
                            {"form", gaps_ ? "gaps" : "bits"},
                            {"factor", tensor.factor}};
  }

  std::vector<TensorToWrite> tensors_;
  std::vector<std::vector<float>> values_;  // of tensors that are written otherwise than the run has them
  json rows_, tables_ = json::object();
  bool gaps_ = false;
};

json write_pytorch_weights(const SavedRun& run, const std::filesystem::path& file) {
  const SafetensorsFile read(run.weights);
  Weights weights;
  for (const FileTensor& tensor : read.tensors()) weights.add(tensor);
  weights.write(file);
  return weights.tables();
}

/// The tree of a configuration, with numbers as numbers.
json to_json(const ConfigNode& node) {
  switch (node.kind) {
    case NodeKind::null:
      return nullptr;
    case NodeKind::scalar:
      return node.quoted ? json(node.text) : parse_json(node.text);
    case NodeKind::list: {
      json list = json::array();
      for (const ConfigNode& child : node.children) list.push_back(to_json(child));
      return list;
    }
    case NodeKind::map: {
      json map = json::object();
      for (const ConfigNode& child : node.children) map[child.key] = to_json(child);
      return map;
    }
  }
  throw std::logic_error("export: unknown kind of node");
}

/// The class of a model, the class of transformers by which it is opened, and the module that it is in.
struct ModelClass {
  const char *name, *opened_by, *module = "modeling_capstan";
};
ModelClass class_of(const RunConfig& config) {
  const ModelFacts facts = facts_of(config.model);
  if (facts.is_solved)
    return {"CapstanLinearForSequenceClassification", "AutoModelForSequenceClassification", "modeling_capstan_linear"};
  switch (facts.predicts) {
    case Predicts::next_token:
      return {"CapstanForCausalLM", "AutoModelForCausalLM"};
    case Predicts::hidden_tokens:
      return {"CapstanForMaskedLM", "AutoModelForMaskedLM"};
    case Predicts::classes:
      return {"CapstanForSequenceClassification", "AutoModelForSequenceClassification"};
  }
  throw std::logic_error("export: unknown task");
}

/// Adds how `capstan predict` reads a text and what it leaves out of its answer; transformers' pipelines do the same
/// then.
void add_pipeline(const SavedRun& run, const ModelClass& model, json& config) {
  const ModelFacts facts = facts_of(run.config.model);
  if (facts.predicts == Predicts::next_token) return;
  const bool fills = facts.predicts == Predicts::hidden_tokens;
  config["reading"] = {{"longest", longest_text(run)}};
  if (fills) {
    config["reading"]["tokens"] = run.tokenizer->vocabulary_size();
    if (const auto unknown = run.tokenizer->unknown_token()) config["reading"]["unknown"] = *unknown;
  } else {
    config["reading"]["truncate"] = enum_name(facts_of(run.config.data).text.truncate);
  }
  const char* const task = fills ? "fill-mask" : "text-classification";
  const char* const pipeline = fills ? "CapstanFillMaskPipeline" : "CapstanTextClassificationPipeline";
  config["custom_pipelines"][task] = {{"impl", std::string("pipeline_capstan.") + pipeline}, {"pt", {model.opened_by}}};
}

/// `tables`: as write_pytorch_weights() returns them.
json config_json(const SavedRun& run, const json& tables) {
  const RunConfig& config = run.config;
  const ModelClass model = class_of(config);
  const std::string module = std::string(model.module) + ".";
  json result = {
      {"model_type", "capstan"},
      {"architectures", {model.name}},
      {"auto_map", {{"AutoConfig", "configuration_capstan.CapstanConfig"}, {model.opened_by, module + model.name}}},
      {"model", to_json(to_node(config.model))},
      {"vocab_size", model_vocabulary(config, *run.tokenizer)},
      {"dtype", "float32"},
      {"capstan", export_origin(run)}};
  if (find_model(config.model) != nullptr) result["auto_map"]["AutoModel"] = module + "CapstanModel";
  if (!tables.empty()) result["tables"] = tables;
  result["tie_word_embeddings"] = result["model"].value("tied_output", false);
  if (const auto start = start_token(run)) result["bos_token_id"] = *start;
  if (const auto end = end_of_document(run)) result["eos_token_id"] = *end;
  add_pipeline(run, model, result);
  if (!run.classes.empty()) {
    for (size_t i = 0; i < run.classes.size(); ++i) {
      result["id2label"][std::to_string(i)] = run.classes[i];
      result["label2id"][run.classes[i]] = i;
    }
    const bool many = facts_of(config.data).multi_label();
    result["problem_type"] = many ? "multi_label_classification" : "single_label_classification";
    if (many) result["capstan"]["thresholds"] = run.thresholds;
    if (!run.rule.empty()) result["capstan"]["rule"] = run.rule;
  }
  return result;
}

/// The settings of generation by which transformers writes as capstan generate does: never unknown words or separators.
json generation_json(const SavedRun& run) {
  json result = {{"_from_model_config", false}, {"pad_token_id", 0}};
  std::vector<int32_t> never;
  if (const auto unknown = run.tokenizer->unknown_token()) never.push_back(*unknown);
  if (const auto start = start_token(run)) result["bos_token_id"] = *start;
  if (const auto end = end_of_document(run)) {
    result["eos_token_id"] = result["pad_token_id"] = *end;
    if (facts_of(run.config.data).has_pairs) never.push_back(*end + 1);
  }
  if (!never.empty()) result["suppress_tokens"] = never;
  return result;
}

void write_huggingface(const SavedRun& run, const fs::path& folder) {
  const auto write = [&](const std::string& name, const std::string& text) {
    write_file((folder / name).string(), text);
  };
  const TokenizerFiles tokenizer = tokenizer_files(run);  // may refuse, so it comes before anything is written
  const json tables = write_pytorch_weights(run, folder / "model.safetensors");
  write("config.json", json_text(config_json(run, tables), 2) + "\n");
  if (facts_of(run.config.model).predicts == Predicts::next_token)
    write("generation_config.json", json_text(generation_json(run), 2) + "\n");
  write("tokenizer.json", tokenizer.tokenizer);
  write("tokenizer_config.json", tokenizer.config);
  for (const auto& [name, text] : facts_of(run.config.model).reads_texts ? text_model_files() : token_model_files())
    write(name, text);
  write("README.md", model_card(run, class_of(run.config).opened_by, tables));
}

void write_export(const SavedRun& run, ExportFormat format, const fs::path& folder) {
  const ModelFacts facts = facts_of(run.config.model);
  if (format == ExportFormat::onnx && facts.reads_texts)
    throw Error(fmt::format("export: a {} reads texts, which ONNX cannot hash to n-grams; use --format huggingface",
                            type_of(run.config.model)));
  if (facts.reads_characters())
    throw Error(
        "export: model.ngrams.characters: exported models read tokens, which do not have the characters of "
        "unknown words; use capstan serve or the Python package, or train a run with characters=[]");
  if (format == ExportFormat::gguf && facts.predicts != Predicts::next_token)
    throw Error(fmt::format("export: GGUF has language models of Llama's shape (configs/lm-llama.yaml), not a {}",
                            type_of(run.config.model)));
  write_huggingface(run, folder);
  if (const std::string script = export_script(format); !script.empty())
    write_file((folder / script).string(), format == ExportFormat::onnx ? export_onnx : export_gguf);
}

}  // namespace

std::string export_script(ExportFormat format) {
  if (format == ExportFormat::huggingface) return "";
  return fmt::format("export_{}.py", enum_name(format));
}

std::vector<std::string> export_run(const SavedRun& run, ExportFormat format, const fs::path& given) {
  refuse_file_of_run(given);
  const std::string folder = new_folder(given.string());
  write_new_folder(folder, [&](const fs::path& unfinished) { write_export(run, format, unfinished); });
  return names_in_folder(folder);
}

}  // namespace capstan
