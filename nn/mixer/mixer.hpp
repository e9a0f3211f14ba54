// The interface of a mixer: the part of a block through which tokens exchange information.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/autograd/var.hpp"
#include "core/base/error.hpp"
#include "nn/layers/context.hpp"
#include "nn/layers/decode_context.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// What a mixer remembers between the tokens of a generation. Belongs to the use, not to the module.
class MixerState {
 public:
  virtual ~MixerState() = default;
  /// Back to the first position.
  virtual void reset() = 0;
  /// From now on sequence i is a copy of what sequence rows[i] was; their number may change. For beam search, and for
  /// dropping sequences that are done.
  virtual void select(const std::vector<int64_t>& rows) = 0;
  /// Elements held per sequence after `position` tokens.
  virtual int64_t elements(int64_t position) const = 0;

  /// What steps multiply with; the states of a model share one.
  DecodeContext& decode() const { return *decode_; }
  virtual void share(std::shared_ptr<DecodeContext> decode) { decode_ = std::move(decode); }

 private:
  friend class Mixer;
  std::shared_ptr<DecodeContext> decode_ = std::make_shared<DecodeContext>();
  std::shared_ptr<const char> maker_;  // of the mixer that made it
};

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
  bool prefix =
      false;  // causal, but the first prefill() reads its tokens as a whole, as forward() does context.prefixes
};

/// How a mixer weights the tokens of a text, for display. values: (B, H, T, T), the weight of token s (column) for
/// token t (row) in each of H heads; 0 where t does not see s.
struct MixingWeights {
  std::string name;  // "attention", "query pool"
  Array values;
  bool pool = false;  // weights of a pool over the text: without causality all rows are the same
};

class Mixer {
 public:
  virtual ~Mixer() = default;

  /// x: (B, T, D) -> (B, T, D). Tokens see what context.segments, context.prefixes and the mixer's causality let them
  /// see. Called by several threads at once (lanes, evaluation), so it must not change any state of the mixer.
  virtual Var forward(const Var& x, const Context& context) const = 0;

  /// State for `batch` sequences. Throws std::logic_error for a bidirectional mixer.
  virtual std::unique_ptr<MixerState> make_state(int64_t batch) const = 0;
  /// The next T >= 0 tokens of B sequences at once: equals the last T rows of forward over all tokens so far, in pieces
  /// of any lengths and with steps among them. With MixerShape::prefix, a first piece is read as a whole.
  virtual Var prefill(const Var& x, MixerState& state) const = 0;
  /// The next token of every sequence.  x: (B, D) -> (B, D). Equals the last row of forward over all tokens so far.
  virtual Var step(const Var& x, MixerState& state) const = 0;

  virtual MixerCost cost(int64_t length) const = 0;

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
  /// For prefill() and step(): `state` as what make_state() made. Throws std::invalid_argument, naming the `mixer`, for
  /// the state of any other mixer, even one of the same form: its tokens were read with other weights.
  template <class State>
  State& own_state(MixerState& state, const char* mixer) const {
    check(state.maker_ == identity_, "{}: this state was made for another mixer", mixer);
    return static_cast<State&>(state);
  }

 private:
  std::shared_ptr<const char> identity_ = std::make_shared<const char>();  // states hold it too, so it is never reused
};

inline std::vector<MixingWeights> Mixer::mixing_weights(const Var&, const Context&) const { return {}; }
inline Array Mixer::position_bias(int64_t) const { return {}; }

}  // namespace capstan::CAPSTAN_PRECISION
