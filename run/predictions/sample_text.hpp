// The text of tokens as they are written, up to a stop string.
#pragma once

#include <string>
#include <vector>

#include "run/setup/run_model.hpp"

namespace capstan {

/// Passes text on, except for what may be the beginning of a stop string.
class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// The text that can be shown now; done() is true from the end of a stop string on.
  std::string push(const std::string& text);
  /// What was held back.
  std::string finish();
  bool done() const { return done_; }

 private:
  std::vector<std::string> stops_;
  std::string pending_;
  bool done_ = false;
};

/// The text of one sample, from its tokens.
class SampleText {
 public:
  /// `previous`: the token in front of the text; one that the data add counts as none.
  SampleText(const SavedRun& run, const std::vector<std::string>& stops, int32_t previous)
      : decoder_(run.tokenizer, previous < run.tokenizer->vocabulary_size() ? previous : -1), filter_(stops) {}

  std::string push(int32_t token) { return filter_.push(decoder_.push(token)); }
  std::string finish() { return filter_.done() ? "" : filter_.push(decoder_.finish()) + filter_.finish(); }
  bool done() const { return filter_.done(); }

 private:
  StreamingDecoder decoder_;
  StopFilter filter_;
};

}  // namespace capstan
