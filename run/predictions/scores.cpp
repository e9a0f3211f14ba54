#include "run/predictions/scores.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "data/batches/batcher.hpp"
#include "run/predictions/completions.hpp"

namespace capstan {
namespace {

/// ln p of tokens [first, end) of a sequence, after all that precede them within a window.
double log_probability(const LanguageModel& model, const std::vector<int32_t>& sequence, int64_t first) {
  const auto count = static_cast<int64_t>(sequence.size()) - 1;  // inputs
  const int64_t window = model.position_limit().value_or(count);
  double sum = 0;
  for (int64_t counted = first - 1; counted < count;) {  // of the inputs: input t predicts token t + 1
    const int64_t begin = std::max<int64_t>(0, counted + 1 <= window ? 0 : counted - window / 2);
    const int64_t end = std::min(count, begin + window);
    Batch batch = pad_rows({{sequence.begin() + begin, sequence.begin() + end}});
    batch.labels = Ids(batch.tokens.shape(), ignored_target);
    std::copy(sequence.begin() + counted + 1, sequence.begin() + end + 1,
              batch.labels.mutable_data() + counted - begin);
    Context context;
    context.segments = Segments(batch.segment_ids);
    sum -= static_cast<double>(model.loss(batch, context).sum.value().item());
    counted = end;
  }
  return sum;
}

TextScore score_of(const SavedRun& run, const InputText& text) {
  const LanguageModel& model = run.model->language_model();
  const std::optional<int32_t> end = end_of_document(run);
  std::vector<int32_t> sequence;
  if (facts_of(run.config.data).has_pairs)
    sequence = prompt_of(run, text.text, text.place);
  else
    sequence = {start_token(run)};
  const auto first = static_cast<int64_t>(sequence.size());
  const bool pairs = first > 1 || facts_of(run.config.data).has_pairs;
  const std::vector<int32_t> tokens = run.tokenizer->encode(pairs ? text.label : text.text, text.place);
  if (pairs && tokens.empty()) throw Error(fmt::format("{}: the target is empty", text.place));
  sequence.insert(sequence.end(), tokens.begin(), tokens.end());
  if (end) sequence.push_back(*end);
  const int64_t predicted = static_cast<int64_t>(sequence.size()) - first;
  return {predicted > 0 ? log_probability(model, sequence, first) : 0.0, predicted};
}

}  // namespace

std::vector<TextScore> scores_of(const SavedRun& run, const std::vector<InputText>& texts) {
  run.model->language_model();
  std::vector<TextScore> scores(texts.size());
  for_each_text(texts.size(), [&](size_t i) { scores[i] = score_of(run, texts[i]); });
  return scores;
}

}  // namespace capstan
