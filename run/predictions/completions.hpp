// What a language model writes after a text or, trained on pairs, after a source: for `capstan generate` and, by the
// parts below, for the server's engine. Both must write the same text for a request: tests/serve/test_endpoints.cpp and
// test_company.cpp hold it, tests/run/test_probabilities.cpp that tokens are chosen by the probabilities that eval
// counts.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "models/generation/generate.hpp"
#include "run/inputs/input_text.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {

/// How a text is written, and what is shown of it. With data of type pairs, `slide` is off.
struct CompletionOptions : GenerateOptions {
  int64_t samples = 1;            // completions of the same text, written together
  std::vector<std::string> stop;  // a completion ends before any of these texts
  InvalidBytes invalid = InvalidBytes::replaced;
  /// Called with each piece as it is written; false ends this sample.
  std::function<bool(int64_t sample, std::string_view piece)> on_piece;
};

struct Completion {
  std::string text;  // what was written, without the text that it continues
  GenerateEnd end = GenerateEnd::max_tokens;
};

/// Passes text on, but holds back an end that may be the beginning of a stop string.
class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// The text that can be shown now; done() is true from the end of a stop string on.
  std::string push(const std::string& text);
  /// What was held back, once there is no more text.
  std::string finish();
  bool done() const { return done_; }

 private:
  std::vector<std::string> stops_;
  std::string pending_;  // text that is held back: it may be the beginning of a stop string
  bool done_ = false;    // a stop string was found
};

/// The text of one sample, from its tokens.
class SampleText {
 public:
  /// `previous`: the token in front of the text; one that the data add counts as none.
  SampleText(const SavedRun& run, const std::vector<std::string>& stops, int32_t previous,
             InvalidBytes invalid = InvalidBytes::replaced)
      : decoder_(run.tokenizer, previous < run.tokenizer->vocabulary_size() ? previous : -1, invalid), filter_(stops) {}

  std::string push(int32_t token) { return filter_.push(decoder_.push(token)); }
  std::string finish() { return filter_.done() ? "" : filter_.push(decoder_.finish()) + filter_.finish(); }
  bool done() const { return filter_.done(); }

 private:
  StreamingDecoder decoder_;
  StopFilter filter_;
};

/// `options` with the tokens that end a text of the run, and those that no text may have.
GenerateOptions generation_of(const SavedRun& run, GenerateOptions options);

/// A completion for each sample. Throws Error for a model that is no language model and for a text that it cannot read.
std::vector<Completion> completions_of(const SavedRun& run, const InputText& text,
                                       const CompletionOptions& options = {});

/// Prints the samples at their end, separated by ---. A single one is printed piece by piece while it is written, until
/// nobody reads any more.
void print_completions(const SavedRun& run, const InputText& prompt, CompletionOptions options, std::ostream& out);

}  // namespace capstan
