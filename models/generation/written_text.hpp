// One text that a model writes: which of its tokens are read next, which one follows, and when the text ends. The one
// rule of generate() and of the scheduler of serve/, which is why both write the same text
// (tests/serve/test_company.cpp).
#pragma once

#include <vector>

#include "models/generation/sampling.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Prompts are read in pieces that end at multiples of this many tokens of their window. The parallel form and steps
/// round differently, so that a text has the same bits only if it is cut at the same places.
constexpr int64_t prompt_piece = 512;

/// One text. The caller owns the decode state and calls the model; WrittenText tells what the model reads next, chooses
/// tokens and collects them. For one thread.
class WrittenText {
 public:
  /// What a token is to the text. end: the text ended in front of it; last: its last token; goes_on: neither.
  enum class Added { end, last, goes_on };

  /// `options` must outlive it. Throws Error for a prompt that cannot be continued, as generate() does.
  WrittenText(const Model& model, Prompt prompt, const GenerateOptions& options);

  /// The tokens of the text from begin() on; the decode state has read the first read() of them. Where read() is 0 the
  /// state must be at its first position.
  const std::vector<int32_t>& window() const { return window_; }
  int64_t begin() const { return begin_; }
  int64_t read() const { return read_; }
  /// The end, in window(), of the piece that the model must read next.
  int64_t piece_end() const;
  void has_read(int64_t end) { read_ = end; }

  /// The token after the window, once all of that is read. logits: V elements
  int32_t choose(const Array& logits) { return sampler_.choose(logits); }
  /// Adds a chosen token. If the text goes on, the token is the window's last, or the window moves and read() is 0.
  Added add(int32_t token, const Array& logits);

  Generated& result() { return result_; }

 private:
  Added ended(GenerateEnd how, Added as);
  bool full() const { return limit_ && read_ >= *limit_; }
  /// Moves the window to window_begin() of the text's last token.
  void place_window();

  const GenerateOptions* options_;
  std::optional<int64_t> limit_;
  bool whole_;  // the first piece is the whole window: a prefix is read in both directions
  Sampler sampler_;
  std::vector<int32_t> window_;
  int64_t begin_, read_;
  Generated result_;
};

/// Reads a whole window, piece by piece, and returns the logits after it, (1, V). `state`: of one sequence.
Array read_window(const Model& model, WrittenText& text, DecodeState& state);
/// Reads the next piece of a window, up to piece_end(), and returns the logits after it, (1, V). `every`, unless null,
/// gets the logits after each token of the piece, (1, T, V).
Array read_piece(const Model& model, WrittenText& text, DecodeState& state, Array* every = nullptr);

}  // namespace capstan::CAPSTAN_PRECISION
