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

/// The caller owns the state and calls the model; this says what is read next and takes what was chosen. One thread.
class WrittenText {
 public:
  /// What add() made of a token: it ends the text without being part of it, is its last one, or goes on.
  enum class Added { end, last, goes_on };

  /// `options` must outlive it. Throws Error for a prompt that cannot be continued, as generate() does.
  WrittenText(const Model& model, Prompt prompt, const GenerateOptions& options);

  /// The tokens of the text from begin() on, of which the state has read the first read(). At 0 the state must be that
  /// of a sequence at its first position.
  const std::vector<int32_t>& window() const { return window_; }
  int64_t begin() const { return begin_; }
  int64_t read() const { return read_; }
  /// Where the piece ends that is read next.
  int64_t piece_end() const;
  void has_read(int64_t end) { read_ = end; }

  /// The token after the window, once all of that is read. logits: V elements
  int32_t choose(const Array& logits) { return sampler_.choose(logits); }
  /// Adds it. If it goes on, the window has it as its last token, or is another one, of which nothing is read.
  Added add(int32_t token, const Array& logits);

  Generated& result() { return result_; }

 private:
  Added ended(GenerateEnd how, Added as);
  bool full() const { return limit_ && read_ >= *limit_; }
  /// Moves the window to where it begins for the successor of the text's last token.
  void place_window();

  const GenerateOptions* options_;
  std::optional<int64_t> limit_;
  bool whole_;  // the first piece is the whole window: a prefix is read in both directions
  Sampler sampler_;
  std::vector<int32_t> window_;
  int64_t begin_, read_;
  Generated result_;
};

/// Reads a window from its begin, piece by piece: the logits after it, (1, V). `state`: of one sequence.
Array read_window(const Model& model, WrittenText& text, DecodeState& state);
/// Reads the next piece of a window, of which the state has read what comes before: the logits after it, (1, V);
/// `every`, unless null, gets those after each of its tokens, (1, T, V).
Array read_piece(const Model& model, WrittenText& text, DecodeState& state, Array* every = nullptr);

}  // namespace capstan::CAPSTAN_PRECISION
