// Texts are scored one by one on all threads. Bytes of a text that are not UTF-8 are replaced in JSON.
// tests/run/test_probabilities.cpp and tests/cli/runs/test_predictions.cpp.
#include "run/predictions/text_scores.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/json.hpp"
#include "data/batches/batcher.hpp"
#include "models/generation/sampling.hpp"

namespace capstan {
namespace {

/// ln p of tokens [first, end) of a sequence, each in its window; first >= 1.
double log_probability(const Model& model, const std::vector<int32_t>& sequence, int64_t first) {
  const auto count = static_cast<int64_t>(sequence.size()) - 1;  // inputs
  double sum = 0;
  for (int64_t counted = first - 1; counted < count;) {  // of the inputs: input t predicts token t + 1
    const int64_t begin = window_begin(counted, model.position_limit());
    const int64_t end = std::min(count, begin + model.position_limit().value_or(count));
    Batch batch = pad_rows({{sequence.begin() + begin, sequence.begin() + end}});
    batch.labels = Ids(batch.tokens.shape(), ignored_target);
    std::copy(sequence.begin() + counted + 1, sequence.begin() + end + 1,
              batch.labels.mutable_data() + counted - begin);
    sum -= static_cast<double>(model.loss(batch, Context{Segments(batch.segment_ids)}).sum.value().item());
    counted = end;
  }
  return sum;
}

TextScore score_of(const SavedRun& run, const InputText& text) {
  const bool pairs = facts_of(run.config.data).has_pairs;
  std::vector<int32_t> sequence = prompt_of(run, pairs ? text.text : "", text.place);
  const size_t first = std::max<size_t>(sequence.size(), 1);
  const std::vector<int32_t> tokens = run.tokenizer->encode(pairs ? text.label : text.text, text.place);
  if (pairs && tokens.empty()) throw Error(fmt::format("{}: the target is empty", text.place));
  sequence.insert(sequence.end(), tokens.begin(), tokens.end());
  const auto limit = run.model->position_limit();
  if (pairs && limit && static_cast<int64_t>(sequence.size()) > *limit)
    throw Error(fmt::format("{}: the pair has {} tokens, but this model has {} positions; shorten it", text.place,
                            sequence.size(), *limit));
  if (const auto end = end_of_document(run)) sequence.push_back(*end);
  if (sequence.size() <= first) return {};
  const double log_p = log_probability(run.model->model(), sequence, static_cast<int64_t>(first));
  require_finite(log_p, text.place);
  return {log_p, static_cast<int64_t>(sequence.size() - first)};
}

}  // namespace

std::vector<TextScore> scores_of(const SavedRun& run, const std::vector<InputText>& texts) {
  run.model->that_predicts(Predicts::next_token);
  std::vector<TextScore> scores(texts.size());
  for_each_text(texts.size(), [&](size_t i) { scores[i] = score_of(run, texts[i]); });
  return scores;
}

std::string score_tsv(const TextScore& score) {
  return fmt::format("{:.6f}\t{:.6f}\t{}\n", score.log_probability, score.per_token(), score.tokens);
}

std::string score_json(const TextScore& score, const InputText& text) {
  nlohmann::ordered_json json{{"log_probability", score.log_probability},
                              {"per_token", score.per_token()},
                              {"tokens", score.tokens},
                              {"text", text.text}};
  if (!text.label.empty()) json["target"] = text.label;
  return json_line(json) + '\n';
}

}  // namespace capstan
