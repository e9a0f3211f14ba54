// Texts with blanks, filled by a masked language model.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/command_line/output.hpp"
#include "core/base/error.hpp"
#include "data/batches/batcher.hpp"
#include "run/predictions/predictor.hpp"

namespace capstan {
namespace {

struct Guess {
  std::string text;
  double probability;
};

class BlankPredictor final : public Predictor {
 public:
  BlankPredictor(const SavedRun& run, const PredictOptions& options)
      : run_(run), model_(run.model->masked_language_model()), options_(options) {
    if (options.blank.empty()) throw ConfigError("--blank: the text must not be empty");
    if (options.errors) throw ConfigError("--errors: a masked language model fills blanks, which have no labels");
  }

  void add(InputText text) override {
    try {
      rows_.push_back(tokens_of(text));
    } catch (const Error&) {
      flush();
      throw;
    }
    texts_.push_back(std::move(text));
    if (static_cast<int64_t>(rows_.size()) >= options_.batch_size) flush();
  }

  void flush() override {
    if (rows_.empty()) return;
    const Batch batch = pad_rows(rows_);
    Context context;
    context.segments = Segments(batch.segment_ids);
    const Array logits = model_.logits(batch.tokens, context).value();
    for (size_t row = 0; row < rows_.size(); ++row) {
      std::vector<std::vector<Guess>> blanks;
      for (size_t t = 0; t < rows_[row].size(); ++t) {
        if (rows_[row][t] != model_.mask_token()) continue;
        const int64_t place = static_cast<int64_t>(row) * logits.dim(1) + static_cast<int64_t>(t);
        blanks.push_back(guesses(logits.data() + place * logits.dim(2), t > 0 ? rows_[row][t - 1] : -1));
      }
      write(texts_[row].text, blanks);
    }
    flush_output();
    rows_.clear();
    texts_.clear();
  }

 private:
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

  /// The text with the likeliest token in every blank. Tokens of word tokenizers begin with a blank of their own, which is left out
  /// after one and at the beginning of the text.
  std::string filled(const std::string& text, const std::vector<std::vector<Guess>>& blanks) const {
    std::string out;
    size_t at = 0;
    for (const std::vector<Guess>& guesses : blanks) {
      const size_t blank = text.find(options_.blank, at);
      out += text.substr(at, blank - at);
      const std::string& token = guesses.front().text;
      const bool spaced = out.empty() || out.back() == ' ' || out.back() == '\n' || out.back() == '\t';
      out += spaced && token.size() > 1 && token.front() == ' ' ? token.substr(1) : token;
      at = blank + options_.blank.size();
    }
    return out + text.substr(at);
  }

  static std::string trimmed(const std::string& token) {
    return token.size() > 1 && token.front() == ' ' ? token.substr(1) : token;
  }

  void write(const std::string& text, const std::vector<std::vector<Guess>>& blanks) const {
    if (options_.format == "jsonl") {
      nlohmann::ordered_json all = nlohmann::ordered_json::array();
      for (const std::vector<Guess>& guesses : blanks) {
        nlohmann::ordered_json one = nlohmann::ordered_json::array();
        for (const Guess& guess : guesses)
          one.push_back({{"token", trimmed(guess.text)}, {"probability", guess.probability}});
        all.push_back(one);
      }
      nlohmann::ordered_json line{{"filled", filled(text, blanks)}, {"blanks", all}, {"text", text}};
      std::cout << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
      return;
    }
    std::cout << tsv_field(filled(text, blanks));
    for (const std::vector<Guess>& guesses : blanks)
      for (const Guess& guess : guesses)
        std::cout << fmt::format("\t{}\t{:.4f}", tsv_field(trimmed(guess.text)), guess.probability);
    if (options_.echo) std::cout << '\t' << tsv_field(text);
    std::cout << '\n';
  }

  const SavedRun& run_;
  const MaskedLanguageModel& model_;
  const PredictOptions& options_;
  std::vector<std::vector<int32_t>> rows_;
  std::vector<InputText> texts_;
};

}  // namespace

std::unique_ptr<Predictor> make_blank_predictor(const SavedRun& run, const PredictOptions& options) {
  return std::make_unique<BlankPredictor>(run, options);
}

}  // namespace capstan
