// A text is its window and how much of it the state has read. When the window moves, nothing of it is read, and the
// sampler keeps what it has seen.
#include "models/generation/written_text.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// The prompt, if it can be continued.
const Prompt& checked(const Model& model, const Prompt& prompt, const GenerateOptions& options) {
  if (prompt.tokens.empty()) throw Error("generate: the prompt is empty: give at least one token to continue");
  for (const int32_t token : prompt.tokens)
    if (token < 0 || token >= model.vocabulary())
      throw Error(
          fmt::format("generate: token {} of the prompt is outside the vocabulary of {}", token, model.vocabulary()));
  const int64_t length = prompt.begin + static_cast<int64_t>(prompt.tokens.size());
  const auto limit = model.position_limit();
  if (limit && !options.slide && length > *limit)
    throw Error(fmt::format(
        "generate: the prompt has {} tokens, but this model has {} positions: shorten it or let the window slide",
        length, *limit));
  return prompt;
}

}  // namespace

WrittenText::WrittenText(const Model& model, Prompt prompt, const GenerateOptions& options)
    : options_(&options),
      limit_(model.position_limit()),
      whole_(model.stack().shape().prefix),
      sampler_(options.sampling, model.vocabulary(), options.banned, checked(model, prompt, options).stream),
      window_(std::move(prompt.tokens)),
      begin_(prompt.begin),
      read_(prompt.read) {
  for (const int32_t token : window_) sampler_.see(token);
  place_window();
}

void WrittenText::place_window() {
  const int64_t begin = window_begin(begin_ + static_cast<int64_t>(window_.size()) - 1, limit_);
  if (begin == begin_) return;
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(begin - begin_));
  begin_ = begin;
  read_ = 0;
  result_.slid = true;
}

int64_t WrittenText::piece_end() const {
  const auto size = static_cast<int64_t>(window_.size());
  return whole_ && read_ == 0 ? size : std::min(size, (read_ / prompt_piece + 1) * prompt_piece);
}

WrittenText::Added WrittenText::ended(GenerateEnd how, Added as) {
  result_.end = how;
  return as;
}

WrittenText::Added WrittenText::add(int32_t token, const Array& logits) {
  const bool stops = options_->stop_token && token == *options_->stop_token;
  const auto is_long = [&] { return static_cast<int64_t>(result_.tokens.size()) == options_->max_tokens; };
  if (is_long() && !stops) return ended(GenerateEnd::max_tokens, Added::end);
  if (options_->log_probabilities) result_.log_probability += log_probability(logits, token);
  if (stops) return ended(GenerateEnd::stop_token, Added::end);
  result_.tokens.push_back(token);
  window_.push_back(token);
  if (is_long() && !options_->stop_token) return ended(GenerateEnd::max_tokens, Added::last);
  if (full() && !options_->slide) return ended(GenerateEnd::window, Added::last);
  sampler_.write(token);
  if (full()) place_window();
  return Added::goes_on;
}

Array read_piece(const Model& model, WrittenText& text, DecodeState& state, Array* every) {
  const int64_t begin = text.read(), end = text.piece_end();
  const std::vector<int32_t> tokens(text.window().begin() + begin, text.window().begin() + end);
  Array logits = model.prefill(Ids(Shape{1, end - begin}, tokens), state, every);
  text.has_read(end);
  return logits;
}

Array read_window(const Model& model, WrittenText& text, DecodeState& state) {
  state.reset();
  Array logits;
  while (text.read() < static_cast<int64_t>(text.window().size())) logits = read_piece(model, text, state);
  return logits;
}

}  // namespace capstan::CAPSTAN_PRECISION
