// What a mixer remembers between the tokens of a generation. A state's arrays (parts()) have a row for each sequence,
// on which select(), copy() and reset() work; "decode states" in tests/models/test_beam_search.cpp copies and
// selects those of every mixer.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/array/array.hpp"
#include "nn/layers/context.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// The state of B sequences, each at a position of its own. Belongs to the use, not to the module.
class MixerState {
 public:
  explicit MixerState(int64_t batch) : positions_(static_cast<size_t>(batch), 0) {}
  virtual ~MixerState() = default;

  int64_t batch() const { return static_cast<int64_t>(positions_.size()); }
  /// Tokens seen, of each sequence.
  const std::vector<int64_t>& positions() const { return positions_; }
  int64_t position(int64_t row) const { return positions_[static_cast<size_t>(row)]; }
  /// The first `rows` sequences have seen `tokens` more.
  void advance(int64_t rows, int64_t tokens);

  /// All sequences back to the first position; nothing is left of what they have seen.
  virtual void reset();
  /// From now on sequence i is a copy of what sequence rows[i] was; their number may change.
  virtual void select(const std::vector<int64_t>& rows);
  /// Sequence `to` becomes a copy of sequence `row` of `from`, a state of the same mixer, maybe this one. No other
  /// sequence moves. Throws std::invalid_argument for a state of another mixer.
  virtual void copy(int64_t to, MixerState& from, int64_t row);
  /// Elements held per sequence after `position` tokens.
  virtual int64_t elements(int64_t position) const = 0;

  /// What steps multiply with; the states of a model share one.
  DecodeContext& decode() const { return *decode_; }
  virtual void share(std::shared_ptr<DecodeContext> decode) { decode_ = std::move(decode); }

 protected:
  /// The arrays with a row for each sequence, which select() and copy() are about; empty ones are left alone.
  virtual std::vector<Array*> parts() = 0;

 private:
  friend class Mixer;
  std::vector<int64_t> positions_;
  std::shared_ptr<DecodeContext> decode_ = std::make_shared<DecodeContext>();
  std::shared_ptr<const char> maker_;  // identity_ of the mixer that made it
};

}  // namespace capstan::CAPSTAN_PRECISION
