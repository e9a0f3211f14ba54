// A mixer of which only forward() is written: the base class for a first try of an idea.
// tests/nn/systems/test_forward_mixer.cpp holds that it decodes what forward() gives.
#pragma once

#include "nn/mixer/mixer.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Decodes by reading again: a state keeps the inputs of all tokens so far, and each token takes a forward() over them,
/// one document at a time. This is right and slow: T tokens cost T passes. For a fast one derive from DecodingMixer
/// instead and write fresh_state(), read(), next() and cost(), which the tests of nn/mixer/README.md hold to the same
/// values.
class ForwardMixer : public Mixer {
 public:
  std::unique_ptr<MixerState> make_state(int64_t batch) const final;
  Var prefill(const Var& x, MixerState& state) const final;
  Var step(const Var& x, MixerState& state) const final;
  MixerCost cost(int64_t) const final { return {}; }
  bool forward_only() const final { return true; }

 protected:
  /// `name`: its type_name, for messages.
  ForwardMixer(const char* name, const MixerShape& shape) : name_(name), shape_(shape) {}
  const MixerShape& shape() const { return shape_; }

 private:
  /// The last `count` rows, (count, D), of forward() over one document, (1, T, D), that begins with a prefix.
  Array last_rows(const Array& document, int64_t prefix, int64_t count) const;

  const char* name_;
  MixerShape shape_;
};

}  // namespace capstan::CAPSTAN_PRECISION
