// A folder for transformers is always written; formats of other programs are that folder and a script that makes their
// files. What config.json says is read by the exported Python code (run/exports/huggingface), so that keys change in
// both. tests/cli/runs/test_export.cpp.
#include "run/exports/export_run.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "core/io/safetensors.hpp"
#include "core/io/safetensors_format.hpp"
#include "run/exports/export_files.hpp"
#include "run/exports/model_card.hpp"
#include "run/exports/tokenizer_json.hpp"
#include "run/setup/file_safety.hpp"
#include "run/setup/run_model.hpp"
#include "run/setup/saved_run.hpp"
#include "run/yaml/config.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

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

/// A run stores any large tensor without its rows of zeros. Only the modules of these tensors can read them so (they
/// have a place for the rows' numbers); all others are written whole.
bool is_ngram_table(const std::string& name) {
  for (const char* const table : {"ngrams.table", "ngram_embedding.table", "linear.weight", "linear.scale"})
    if (name == table) return true;
  return false;
}

/// Writes the weights as a safetensors file for PyTorch, in the types that the run has them in. Of a table of n-grams
/// the run has the rows that are not zero: so has the file, with a tensor NAME_rows that says which rows these are.
/// Returns, by name, what a reader needs to make whole tables of them: rows, stored (how many of them), bytes and form
/// (of NAME_rows) and factor.
json write_pytorch_weights(const SavedRun& run, const fs::path& file) {
  const SafetensorsFile read(run.weights);
  std::vector<TensorToWrite> tensors;
  std::vector<std::vector<float>> values;  // of tensors that are written otherwise than the run has them
  json rows, tables = json::object();
  bool gaps = false;  // all tables of a file have the same form
  for (const FileTensor& tensor : read.tensors()) {
    if (tensor.stored != nullptr && is_ngram_table(tensor.name)) {
      const StoredRows& stored = *tensor.stored;
      const FileTensor part = tensor.without_zeros();
      const auto bytes = static_cast<int64_t>(stored.bytes().size());
      gaps = stored.form() == StoredRows::Form::gaps;
      tensors.push_back({tensor.name, tensor.dtype, part.shape, part.bytes, nullptr, tensor.factor});
      tensors.push_back({tensor.name + safetensors::pytorch_rows_suffix, DType::u8, {bytes}, stored.bytes().data()});
      rows[tensor.name] = stored.rows();
      tables[tensor.name] = {{"rows", stored.rows()},
                             {"stored", stored.count()},
                             {"bytes", bytes},
                             {"form", gaps ? "gaps" : "bits"},
                             {"factor", tensor.factor}};
    } else if (tensor.stored == nullptr && tensor.factor == 1) {
      tensors.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
    } else {
      values.push_back(tensor.to_floats());
      tensors.push_back({tensor.name, DType::f32, tensor.shape, values.back().data()});
    }
  }
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  if (!rows.empty())
    metadata[safetensors::sparse_key] = json{
        {"format", gaps ? safetensors::pytorch_gaps_format : safetensors::pytorch_bits_format},
        {"rows", rows}}.dump();
  write_safetensors(file.string(), std::move(tensors), metadata);
  return tables;
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

/// Writes a folder for the Python library transformers: config.json, generation_config.json, model.safetensors, the
/// Python files that compute the model, the tokenizer and a model card.
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
  write("README.md", model_card(run, class_of(run.config).opened_by));
}

void write_export(const SavedRun& run, ExportFormat format, const fs::path& folder) {
  const ModelFacts facts = facts_of(run.config.model);
  if (format == ExportFormat::onnx && facts.reads_texts)
    throw Error(fmt::format("export: a {} reads texts, which ONNX cannot hash to n-grams; use --format huggingface",
                            type_of(run.config.model)));
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
