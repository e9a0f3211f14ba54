// Texts with blanks, filled by a masked language model.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"
#include "data/batches/batcher.hpp"
#include "run/predictions/predictions.hpp"

namespace capstan {
namespace {

class BlankFiller {
 public:
  BlankFiller(const SavedRun& run, const PredictOptions& options)
      : run_(run), model_(run.model->masked_language_model()), options_(options) {}

  /// The text between the blanks is encoded piece by piece. Documents begin as in training.
  std::vector<int32_t> tokens_of(const InputText& input) const {
    const std::string& text = input.text;
    std::vector<int32_t> ids;
    if (const auto end = end_of_document(run_)) ids.push_back(*end);
    bool any = false;
    for (size_t at = 0; at <= text.size();) {
      const size_t blank = text.find(options_.blank, at);
      const size_t end = std::min(blank, text.size());
      const std::vector<int32_t> piece =
          run_.tokenizer->encode(std::string_view(text).substr(at, end - at), input.place);
      ids.insert(ids.end(), piece.begin(), piece.end());
      if (blank == std::string::npos) break;
      ids.push_back(model_.mask_token());
      any = true;
      at = blank + options_.blank.size();
    }
    if (!any)
      throw Error(
          fmt::format("{}: there is no {} in the text; write it where a token is missing, or choose another mark "
                      "with --blank",
                      input.place, options_.blank));
    const auto limit = model_.position_limit();
    if (limit && static_cast<int64_t>(ids.size()) > *limit)
      throw Error(fmt::format("{}: the text has {} tokens, but this model has {} positions; shorten it", input.place,
                              ids.size(), *limit));
    return ids;
  }

  /// tokens: those of the text; logits: (tokens, V).
  Prediction fill(const std::string& text, const std::vector<int32_t>& tokens, const float* logits,
                  int64_t vocabulary) const {
    Prediction prediction;
    for (size_t t = 0; t < tokens.size(); ++t)
      if (tokens[t] == model_.mask_token())
        prediction.blanks.push_back(guesses(logits + static_cast<int64_t>(t) * vocabulary, t > 0 ? tokens[t - 1] : -1));
    prediction.filled = filled(text, prediction.blanks);
    for (std::vector<Guess>& blank : prediction.blanks)
      for (Guess& guess : blank) guess.text = without_space(guess.text);
    return prediction;
  }

 private:
  /// The likeliest tokens for a blank after token `previous`. Those that are no text are left out.
  std::vector<Guess> guesses(const float* logits, int32_t previous) const {
    const auto size = static_cast<size_t>(run_.tokenizer->vocabulary_size());
    const std::optional<int32_t> unknown = run_.tokenizer->unknown_token();
    std::vector<size_t> order(size);
    std::iota(order.begin(), order.end(), size_t{0});
    order.erase(std::remove_if(order.begin(), order.end(),
                               [&](size_t id) { return unknown && static_cast<size_t>(*unknown) == id; }),
                order.end());
    const size_t count = std::min(order.size(), static_cast<size_t>(std::max<int64_t>(options_.top_k, 1)));
    std::partial_sort(order.begin(), order.begin() + static_cast<long>(count), order.end(),
                      [&](size_t a, size_t b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); });
    const double top = static_cast<double>(*std::max_element(logits, logits + size));
    double total = 0;
    for (size_t id = 0; id < size; ++id) total += std::exp(static_cast<double>(logits[id]) - top);
    const bool text_before = previous >= 0 && previous < run_.tokenizer->vocabulary_size();
    std::vector<Guess> best;
    for (size_t i = 0; i < count; ++i)
      best.push_back({run_.tokenizer->piece(static_cast<int32_t>(order[i]), text_before ? previous : -1),
                      std::exp(static_cast<double>(logits[order[i]]) - top) / total});
    return best;
  }

  /// The text with the likeliest token in every blank.
  std::string filled(const std::string& text, const std::vector<std::vector<Guess>>& blanks) const {
    std::string out;
    size_t at = 0;
    for (const std::vector<Guess>& likeliest : blanks) {
      const size_t blank = text.find(options_.blank, at);
      out += text.substr(at, blank - at);
      const std::string& token = likeliest.front().text;
      const bool spaced = out.empty() || out.back() == ' ' || out.back() == '\n' || out.back() == '\t';
      out += spaced ? without_space(token) : token;
      at = blank + options_.blank.size();
    }
    return out + text.substr(at);
  }

  /// Tokens of word tokenizers begin with a space, which is left out after another one and at the beginning of a text.
  static std::string without_space(const std::string& token) {
    return token.size() > 1 && token.front() == ' ' ? token.substr(1) : token;
  }

  const SavedRun& run_;
  const MaskedLanguageModel& model_;
  const PredictOptions& options_;
};

}  // namespace

std::vector<Prediction> fill_blanks(const SavedRun& run, const std::vector<InputText>& texts,
                                    const PredictOptions& options) {
  const BlankFiller filler(run, options);
  const auto rows = encode_all(texts, [&](const InputText& text) { return filler.tokens_of(text); });
  const Batch batch = pad_rows(rows);
  const Array logits =
      run.model->masked_language_model().logits(batch.tokens, Context{Segments(batch.segment_ids)}).value();
  std::vector<Prediction> predictions;
  for (size_t row = 0; row < texts.size(); ++row)
    predictions.push_back(filler.fill(texts[row].text, rows[row],
                                      logits.data() + static_cast<int64_t>(row) * logits.dim(1) * logits.dim(2),
                                      logits.dim(2)));
  return predictions;
}

}  // namespace capstan
