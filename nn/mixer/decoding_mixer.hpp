// The base class of mixers that decode from a state of their own: AFT, Fastformer, attention, gau and flash. It makes
// the states and checks what it is called with; tests/nn/mixer/mixer_suite.cpp holds the rest.
#pragma once

#include <memory>
#include <stdexcept>

#include "nn/mixer/mixer.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// A mixer says how a State begins and how tokens are read from there; `State` derives from MixerState.
template <class State>
class DecodingMixer : public Mixer {
 public:
  std::unique_ptr<MixerState> make_state(int64_t batch) const final {
    if (!shape_.causal) throw std::logic_error(fmt::format("{}: a bidirectional mixer does not decode", name_));
    return fresh_state(batch);
  }
  Var prefill(const Var& x, MixerState& state) const final {
    State& own = prefill_state<State>(state, name_, x, shape_.width);
    return x.size() == 0 ? x : read(x, own);
  }
  Var step(const Var& x, MixerState& state) const final {
    return next(x, step_state<State>(state, name_, x, shape_.width));
  }

 protected:
  /// `name`: for messages.
  DecodingMixer(const char* name, const MixerShape& shape) : shape_(shape), name_(name) {}

  /// new_state<State>(batch, ...)
  virtual std::unique_ptr<MixerState> fresh_state(int64_t batch) const = 0;
  /// prefill() of tokens that there are, (B, T, D).
  virtual Var read(const Var& x, State& state) const = 0;
  /// step()
  virtual Var next(const Var& x, State& state) const = 0;

  const MixerShape shape_;

 private:
  const char* name_;
};

}  // namespace capstan::CAPSTAN_PRECISION
