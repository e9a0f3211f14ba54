// Texts become vectors one by one on all threads. tests/run/test_run.cpp and tests/cli/runs/test_predictions.cpp.
#include "run/predictions/text_vectors.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "data/batches/batcher.hpp"
#include "data/batches/text_example.hpp"

namespace capstan {
namespace {

std::vector<int32_t> tokens_of(const SavedRun& run, const InputText& text) {
  TextRule rule = facts_of(run.config.data).text;
  const bool classifies = facts_of(run.config.model).classifies();
  const std::optional<int32_t> end = classifies ? std::nullopt : end_of_document(run);
  if (const auto limit = run.model->position_limit()) {
    const int64_t most = std::max<int64_t>(1, *limit - (end ? 1 : 0) - (classifies ? 1 : 0));
    rule.max_length = rule.max_length > 0 ? std::min(rule.max_length, most) : most;
  }
  std::vector<int32_t> tokens =
      encode_text({text.columns.begin(), text.columns.end()}, *run.tokenizer, rule, text.place);
  if (end && !tokens.empty()) tokens.insert(tokens.begin(), *end);
  return tokens;
}

std::vector<float> vector_of(const SavedRun& run, const InputText& text, int64_t& read) {
  const std::vector<int32_t> tokens = tokens_of(run, text);
  read = static_cast<int64_t>(tokens.size());
  if (tokens.empty()) return std::vector<float>(static_cast<size_t>(run.model->stack().config().width), 0.0F);
  const Batch batch = pad_rows({tokens});
  std::vector<float> vector = run.model->model().text_vector(batch.tokens, Context{Segments(batch.segment_ids)});
  require_finite(vector.data(), static_cast<int64_t>(vector.size()), text.place);
  return vector;
}

}  // namespace

std::vector<std::vector<float>> vectors_of(const SavedRun& run, const std::vector<InputText>& texts, int64_t* tokens) {
  run.model->stack();
  std::vector<std::vector<float>> vectors(texts.size());
  std::vector<int64_t> read(texts.size());
  for_each_text(texts.size(), [&](size_t i) { vectors[i] = vector_of(run, texts[i], read[i]); });
  if (tokens != nullptr) *tokens = std::accumulate(read.begin(), read.end(), int64_t{0});
  return vectors;
}

std::string vector_json(const std::vector<float>& vector, const InputText& text) {
  return json_line({{"vector", vector}, {"text", text.text}}) + '\n';
}

std::string npy_content(const std::vector<std::vector<float>>& rows, int64_t columns) {
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows.size(), columns);
  // The data begin at a multiple of 64 bytes: magic, version and length are 10, and a line end closes the header.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string content("\x93NUMPY\x01\x00", 8);
  content += static_cast<char>(header.size() % 256);
  content += static_cast<char>(header.size() / 256);
  content += header;
  for (const std::vector<float>& row : rows)
    content.append(reinterpret_cast<const char*>(row.data()), row.size() * sizeof(float));
  return content;
}

}  // namespace capstan
