// Weights keep the run's types, and large tables the run's rows. tests/cli/runs/test_export.cpp.
#include "run/exports/exported_weights.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/io/safetensors.hpp"
#include "core/io/safetensors_format.hpp"

namespace capstan {
namespace {

using nlohmann::json;

/// A run stores any large tensor without its rows of zeros. Only the modules of these tensors can read them so (they
/// have a place for the rows' numbers); all others are written whole.
bool is_ngram_table(const std::string& name) {
  for (const char* const table : {"ngrams.table", "ngram_embedding.table", "linear.weight", "linear.scale"})
    if (name == table) return true;
  return false;
}

}  // namespace

nlohmann::json write_pytorch_weights(const SavedRun& run, const std::filesystem::path& file) {
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
    metadata[safetensors::sparse_key] =
        json{{"format", gaps ? safetensors::pytorch_gaps_format : safetensors::pytorch_bits_format}, {"rows", rows}}
            .dump();
  write_safetensors(file.string(), std::move(tensors), metadata);
  return tables;
}

}  // namespace capstan
