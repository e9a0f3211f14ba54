#include "run/predictions/text_vectors.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "data/batches/batcher.hpp"
#include "data/batches/text_example.hpp"

namespace capstan {
namespace {

std::vector<int32_t> tokens_of(const SavedRun& run, const InputText& text) {
  TextRule rule = facts_of(run.config.data).text;
  const std::optional<int32_t> end = run.model->is<TextClassifier>() ? std::nullopt : end_of_document(run);
  if (const auto limit = run.model->position_limit()) {
    const int64_t most = std::max<int64_t>(1, *limit - (end ? 1 : 0) - (run.model->is<TextClassifier>() ? 1 : 0));
    rule.max_length = rule.max_length > 0 ? std::min(rule.max_length, most) : most;
  }
  std::vector<int32_t> tokens =
      encode_text({text.columns.begin(), text.columns.end()}, *run.tokenizer, rule, text.place);
  if (end && !tokens.empty()) tokens.insert(tokens.begin(), *end);
  return tokens;
}

std::vector<float> vector_of(const SavedRun& run, const InputText& text) {
  const int64_t width = run.model->stack().config().width;
  std::vector<float> vector(static_cast<size_t>(width), 0.0F);
  const std::vector<int32_t> tokens = tokens_of(run, text);
  if (tokens.empty()) return vector;
  const Batch batch = pad_rows({tokens});
  const Context context{Segments(batch.segment_ids)};
  if (run.model->is<TextClassifier>()) {
    const Array pooled = run.model->text_classifier().pooled(batch.tokens, context).value();
    return {pooled.data(), pooled.data() + width};
  }
  const Array states = run.model->stack().forward(batch.tokens, context).value();
  const int64_t length = states.dim(1);
  for (int64_t channel = 0; channel < width; ++channel) {
    double sum = 0;
    for (int64_t t = 0; t < length; ++t) sum += static_cast<double>(states[t * width + channel]);
    vector[static_cast<size_t>(channel)] = static_cast<float>(sum / static_cast<double>(length));
  }
  return vector;
}

}  // namespace

std::vector<std::vector<float>> vectors_of(const SavedRun& run, const std::vector<InputText>& texts) {
  run.model->stack();
  std::vector<std::vector<float>> vectors(texts.size());
  for_each_text(texts.size(), [&](size_t i) { vectors[i] = vector_of(run, texts[i]); });
  return vectors;
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
