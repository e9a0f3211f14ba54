// The interface of a mixer: the part of a block through which tokens exchange information. Every folder of nn/systems
// implements it, Block (nn/blocks) calls it. What must hold for each (causality, padding, packing, decoding equals
// forward, its cost) is in nn/mixer/README.md and tests/nn/mixer/mixer_suite.cpp, which every mixer's tests run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/array/array.hpp"
#include "core/autograd/var.hpp"
#include "core/base/error.hpp"
#include "nn/layers/context.hpp"
#include "nn/mixer/mixer_state.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Cost of one mixer, beyond what its parameters' products cost.
struct MixerCost {
  double mixing_flops = 0;    // per token and forward pass
  double decode_flops = 0;    // of one step at position `length`
  double saved_elements = 0;  // kept per token for the pullback, projections included
};

/// The properties of the model that a mixer needs.
struct MixerShape {
  int64_t width = 0;
  int64_t max_length = 0;  // longest document; positions past it do not exist
  bool causal = false;
  double output_gain = 1;  // scale of the initial output projection (1 / sqrt(2 layers) in deep pre-norm stacks)
  /// Causal, but the first prefill() reads its tokens as a whole, as forward() does context.prefixes.
  bool prefix = false;
};

/// How a mixer weights the tokens of a text, for display. values: (B, H, T, T), the weight of token s (column) for
/// token t (row) in each of H heads; 0 where t does not see s.
struct MixingWeights {
  std::string name;  // "attention", "query pool"
  Array values;
  bool pool = false;  // weights of a pool over the text: without causality all rows are the same
};

/// One mixer with its parameters. Const after its construction: what a generation remembers is in a MixerState.
class Mixer {
 public:
  virtual ~Mixer() = default;

  /// x: (B, T, D) -> (B, T, D). Tokens see what context.segments, context.prefixes and the mixer's causality let them
  /// see. Called by several threads at once (lanes, evaluation), so it must not change any state of the mixer.
  virtual Var forward(const Var& x, const Context& context) const = 0;

  /// State for `batch` sequences. Throws std::logic_error for a bidirectional mixer.
  virtual std::unique_ptr<MixerState> make_state(int64_t batch) const = 0;
  /// The next T >= 0 tokens of B sequences that are at one position: equals the last T rows of forward over all tokens
  /// so far, in pieces of any lengths and with steps among them. With MixerShape::prefix, a first piece is read as a
  /// whole.
  virtual Var prefill(const Var& x, MixerState& state) const = 0;
  /// The next token of the first n sequences, at any positions.  x: (n, D) -> (n, D). Equals the last row of forward
  /// over all tokens so far. A row has the same bits whatever the others are.
  virtual Var step(const Var& x, MixerState& state) const = 0;

  /// For documents of `length` tokens. tests/nn/systems/test_cost.cpp compares what is kept with the pool's use.
  virtual MixerCost cost(int64_t length) const = 0;
  /// Is forward() all that there is (nn/mixer/forward_mixer.hpp)? Then a step reads all tokens again, and the cost is
  /// not known.
  virtual bool forward_only() const { return false; }

  /// For pictures and tables, by the composed forms of the ops: T x T elements a head. The weights with which the
  /// tokens of x (as in forward) are averaged where these depend on the text; empty for a mixer without such matrices.
  virtual std::vector<MixingWeights> mixing_weights(const Var& x, const Context& context) const;
  /// The learned bias w_ts that position alone gives source s (column) for target t (row), (H, T, T) with H = 1 when
  /// all features share it; T is `longest`, or less where that many positions show all of it. Empty without such a
  /// bias.
  virtual Array position_bias(int64_t longest) const;

 protected:
  /// For make_state(): a State that own_state() takes.
  template <class State, class... Arguments>
  std::unique_ptr<MixerState> new_state(Arguments&&... arguments) const {
    auto state = std::make_unique<State>(std::forward<Arguments>(arguments)...);
    state->maker_ = identity_;
    return state;
  }
  /// For prefill(): `state` as what make_state() made. Throws std::invalid_argument, naming the `mixer`, for the state
  /// of any other mixer, even one of the same form: its tokens were read with other weights; for x that is not (B, T,
  /// width); and where the sequences are at different positions.
  template <class State>
  State& prefill_state(MixerState& state, const char* mixer, const Var& x, int64_t width) const {
    check_own(state, mixer);
    check(x.rank() == 3 && x.dim(0) == state.batch() && x.dim(2) == width,
          "{}: prefill: x is {}, but must be ({}, T, {})", mixer, x.shape(), state.batch(), width);
    for (const int64_t position : state.positions())
      check(position == state.position(0), "{}: prefill: sequences are at different positions, {} and {}", mixer,
            state.position(0), position);
    return static_cast<State&>(state);
  }
  /// For step(), likewise; x must be (n, width), n <= B.
  template <class State>
  State& step_state(MixerState& state, const char* mixer, const Var& x, int64_t width) const {
    check_own(state, mixer);
    check(x.rank() == 2 && x.dim(0) <= state.batch() && x.dim(1) == width,
          "{}: step: x is {}, but must be (n, {}) for the first n of {} sequences", mixer, x.shape(), width,
          state.batch());
    return static_cast<State&>(state);
  }

 private:
  void check_own(const MixerState& state, const char* mixer) const {
    check(state.maker_ == identity_, "{}: this state was made for another mixer", mixer);
  }
  std::shared_ptr<const char> identity_ = std::make_shared<const char>();  // states hold it too, so it is never reused
};

inline std::vector<MixingWeights> Mixer::mixing_weights(const Var&, const Context&) const { return {}; }
inline Array Mixer::position_bias(int64_t) const { return {}; }

}  // namespace capstan::CAPSTAN_PRECISION
