#include "run/predictions/text_vectors.hpp"

#include <algorithm>
#include <cstring>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
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

void write_vector(const SavedRun& run, const InputText& text, float* out) {
  const int64_t width = run.model->stack().config().width;
  std::fill_n(out, width, 0.0F);
  const std::vector<int32_t> tokens = tokens_of(run, text);
  if (tokens.empty()) return;
  const Batch batch = pad_rows({tokens});
  Context context;
  context.segments = Segments(batch.segment_ids);
  if (run.model->is<TextClassifier>()) {
    const Array pooled = run.model->text_classifier().pooled(batch.tokens, context).value();
    std::copy_n(pooled.data(), width, out);
    return;
  }
  const Array states = run.model->stack().forward(batch.tokens, context).value();
  const int64_t length = states.dim(1);
  for (int64_t channel = 0; channel < width; ++channel) {
    double sum = 0;
    for (int64_t t = 0; t < length; ++t) sum += static_cast<double>(states[t * width + channel]);
    out[channel] = static_cast<float>(sum / static_cast<double>(length));
  }
}

}  // namespace

Array vectors_of(const SavedRun& run, const std::vector<InputText>& texts) {
  const TapePause no_tape;
  const int64_t width = run.model->stack().config().width, count = static_cast<int64_t>(texts.size());
  Array vectors(Shape{count, width});
  float* const out = vectors.mutable_data();
  std::vector<std::exception_ptr> errors(texts.size());
  parallel_units(count, [&](int64_t i) {
    const OneThread alone;
    const TapePause pause;
    try {
      write_vector(run, texts[static_cast<size_t>(i)], out + i * width);
    } catch (...) {
      errors[static_cast<size_t>(i)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error != nullptr) std::rethrow_exception(error);
  return vectors;
}

std::string npy_content(const std::vector<float>& values, int64_t columns) {
  const auto rows = static_cast<int64_t>(values.size()) / std::max<int64_t>(columns, 1);
  std::string header = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, columns);
  // The data begin at a multiple of 64 bytes: magic, version and length are 10, and a line end closes the header.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string content("\x93NUMPY\x01\x00", 8);
  content += static_cast<char>(header.size() % 256);
  content += static_cast<char>(header.size() / 256);
  content += header;
  const size_t begin = content.size();
  content.resize(begin + values.size() * sizeof(float));
  std::memcpy(content.data() + begin, values.data(), values.size() * sizeof(float));
  return content;
}

}  // namespace capstan
