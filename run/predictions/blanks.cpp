// Texts with blanks, filled by a masked language model: fill_blanks() of predictions.hpp. All windows of a batch of
// texts are read together in padded groups; scores of the vocabulary are then computed for a few blanks at a time,
// since a row of them may be large. tests/cli/runs/test_predictions.cpp holds the result.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/math.hpp"
#include "core/ops/index.hpp"
#include "core/ops/math.hpp"
#include "data/batches/batcher.hpp"
#include "models/generation/sampling.hpp"
#include "run/predictions/predictions.hpp"

namespace capstan {
namespace {

/// How many blanks have their scores of the whole vocabulary in memory at once.
constexpr size_t blanks_at_once = 256;

/// A hidden token: its text, and its place among the text's tokens.
struct Blank {
  size_t text, token;
};

/// What the model reads to fill some blanks: tokens [begin, end) of a text.
struct Window {
  size_t text, begin, end;
  size_t first_blank, blanks;  // index of the first of them, and their number
};

class BlankFiller {
 public:
  BlankFiller(const SavedRun& run, const PredictOptions& options)
      : run_(run), model_(run.model->that_predicts(Predicts::hidden_tokens)), options_(options) {}

  /// The tokens of a text, with the mask token in place of each blank. The text between blanks is encoded piece by
  /// piece.
  std::vector<int32_t> tokens_of(const InputText& input) const {
    const std::string& text = input.text;
    std::vector<int32_t> ids;
    if (const auto start = start_token(run_)) ids.push_back(*start);
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
    return ids;
  }

  /// Adds the blanks of a text and the windows that are read for them. A window is all of a text that is no longer than
  /// those of the training; otherwise it is as many tokens around a blank, which serve the following blanks in it, too.
  void add_windows(size_t text, const std::vector<int32_t>& tokens, std::vector<Blank>& blanks,
                   std::vector<Window>& windows) const {
    size_t most = tokens.size();
    for (const int64_t limit : {facts_of(run_.config.data).longest, model_.position_limit().value_or(0)})
      if (limit > 0) most = std::min(most, static_cast<size_t>(limit));
    size_t end = 0;
    for (size_t t = 0; t < tokens.size(); ++t) {
      if (tokens[t] != model_.mask_token()) continue;
      if (t >= end) {
        const size_t begin = std::min(t - std::min(t, most / 2), tokens.size() - most);
        end = begin + most;
        windows.push_back({text, begin, end, blanks.size(), 0});
      }
      ++windows.back().blanks;
      blanks.push_back({text, t});
    }
  }

  /// A text with its blanks filled. `guesses`: of each blank, the likeliest tokens.
  Prediction prediction(const std::string& text, std::vector<std::vector<Guess>> guesses) const {
    Prediction prediction;
    prediction.filled = filled(text, guesses);
    for (std::vector<Guess>& blank : guesses)
      for (Guess& guess : blank) {
        const std::string bare = without_space(guess.text);
        guess.space = guess.text.substr(0, guess.text.size() - bare.size());
        guess.text = bare;
      }
    prediction.blanks = std::move(guesses);
    return prediction;
  }

  /// The likeliest tokens for a blank after token `previous`, with the probabilities that the loss is made of: over the
  /// whole vocabulary. Tokens that are no text (added ones, the unknown word) are not among the guesses.
  std::vector<Guess> guesses(const float* logits, int64_t vocabulary, int32_t previous) const {
    const int64_t count = std::max<int64_t>(options_.top_k, 1);
    std::vector<int32_t> ids = likeliest_tokens(logits, run_.tokenizer->vocabulary_size(), count + 1);
    if (const auto unknown = run_.tokenizer->unknown_token())
      ids.erase(std::remove(ids.begin(), ids.end(), *unknown), ids.end());
    ids.resize(std::min(ids.size(), static_cast<size_t>(count)));
    const double total = log_total(logits, vocabulary);
    const bool text_before = previous >= 0 && previous < run_.tokenizer->vocabulary_size();
    std::vector<Guess> best;
    for (const int32_t id : ids)
      best.push_back({run_.tokenizer->piece(id, text_before ? previous : -1),
                      math::exp(static_cast<double>(logits[id]) - total), id});
    return best;
  }

 private:
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
  const Model& model_;
  const PredictOptions& options_;
};

}  // namespace

std::vector<Prediction> fill_blanks(const SavedRun& run, const std::vector<InputText>& texts,
                                    const PredictOptions& options) {
  const BlankFiller filler(run, options);
  const Model& model = run.model->that_predicts(Predicts::hidden_tokens);
  const auto tokens = encode_all(texts, [&](const InputText& text) { return filler.tokens_of(text); });
  std::vector<Blank> blanks;
  std::vector<Window> windows;
  for (size_t i = 0; i < texts.size(); ++i) filler.add_windows(i, tokens[i], blanks, windows);
  std::vector<std::vector<int32_t>> rows;
  for (const Window& window : windows)
    rows.emplace_back(tokens[window.text].begin() + static_cast<std::ptrdiff_t>(window.begin),
                      tokens[window.text].begin() + static_cast<std::ptrdiff_t>(window.end));
  std::vector<std::vector<Guess>> guesses(blanks.size());
  for_padded_groups(rows, [&](const std::vector<int64_t>& indices, const Batch& group) {
    std::vector<int32_t> places;
    std::vector<size_t> numbers;  // the indices of the blanks at these places
    for (size_t row = 0; row < indices.size(); ++row) {
      const Window& window = windows[static_cast<size_t>(indices[row])];
      for (size_t b = window.first_blank; b < window.first_blank + window.blanks; ++b) {
        places.push_back(
            static_cast<int32_t>(row * static_cast<size_t>(group.tokens.dim(1)) + blanks[b].token - window.begin));
        numbers.push_back(b);
      }
    }
    const Var states = model.states(group.tokens, places, Context{Segments(group.segment_ids)});
    for (size_t begin = 0; begin < numbers.size(); begin += blanks_at_once) {
      std::vector<int32_t> rows_now(std::min(blanks_at_once, numbers.size() - begin));
      std::iota(rows_now.begin(), rows_now.end(), static_cast<int32_t>(begin));
      const Array logits =
          model.state_logits(gather(states, Ids(Shape{static_cast<int64_t>(rows_now.size())}, rows_now))).value();
      for (size_t i = 0; i < rows_now.size(); ++i) {
        const Blank& blank = blanks[numbers[begin + i]];
        guesses[numbers[begin + i]] =
            filler.guesses(logits.data() + static_cast<int64_t>(i) * logits.dim(1), logits.dim(1),
                           blank.token > 0 ? tokens[blank.text][blank.token - 1] : -1);
      }
    }
  });
  std::vector<std::vector<std::vector<Guess>>> of_text(texts.size());
  for (size_t b = 0; b < blanks.size(); ++b) of_text[blanks[b].text].push_back(std::move(guesses[b]));
  for_each_text(texts.size(), [&](size_t i) {  // if one logit is NaN, so are all probabilities: one is enough to check
    for (const std::vector<Guess>& blank : of_text[i]) require_finite(blank.front().probability, texts[i].place);
  });
  std::vector<Prediction> predictions;
  for (size_t i = 0; i < texts.size(); ++i)
    predictions.push_back(filler.prediction(texts[i].text, std::move(of_text[i])));
  return predictions;
}

}  // namespace capstan
