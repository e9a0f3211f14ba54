// The mixer of running_mean.cpp, which decodes fast: its state is the sum so far, so a step costs the same at any
// position.
#include "running_mean.hpp"

#include <cmath>

#include "core/base/error.hpp"
#include "core/ops/ops.hpp"
#include "nn/layers/layers.hpp"
#include "nn/mixer/decoding_mixer.hpp"
#include "nn/mixer/prefixes.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// What decoding keeps of each sequence.
struct RunningMeanState final : MixerState {
  RunningMeanState(int64_t batch, int64_t width) : MixerState(batch), sum(Array::zeros({batch, width})) {}
  void reset() override {
    MixerState::reset();
    sum = Array::zeros(sum.shape());
  }
  // The arrays that have a row for each sequence, so that sequences can be selected and copied.
  std::vector<Array*> parts() override { return {&sum}; }
  int64_t elements(int64_t) const override { return sum.dim(1); }

  Array sum;  // (B, D) of v over the tokens seen
};

/// (B, T, T): entry (t, s) is 1 / (number of tokens that t sees) where t sees s, else 0. The spans are the documents of
/// each row, without padding: a mixer that keeps to them can be trained on packed documents as well.
Array averaging_weights(const Segments& segments, bool causal) {
  const int64_t length = segments.length();
  Array weights = Array::zeros({segments.batch(), length, length});
  real* const w = weights.mutable_data();
  for (const Segments::Span& span : segments.spans()) {
    for (int64_t t = span.begin; t < span.end; ++t) {
      const int64_t end = causal ? t + 1 : span.end;
      real* const row = w + (span.row * length + t) * length;
      for (int64_t s = span.begin; s < end; ++s) row[s] = real{1} / static_cast<real>(end - span.begin);
    }
  }
  return weights;
}

class RunningMean final : public DecodingMixer<RunningMeanState> {
 public:
  RunningMean(const Scope& scope, const MixerShape& shape, const RunningMeanConfig& config);

  Var forward(const Var& x, const Context& context) const override;

  std::unique_ptr<MixerState> fresh_state(int64_t batch) const override;
  Var read(const Var& x, RunningMeanState& state) const override;
  Var next(const Var& x, RunningMeanState& state) const override;

  MixerCost cost(int64_t length) const override;

 private:
  int64_t hidden_;  // E
  Linear to_vg_, to_out_;
};

// Every parameter is made through the scope, which names it: blocks.0.mixer.to_vg.weight. The last projection starts
// with the gain that the model asks for, which keeps the activations of deep stacks at their size.
RunningMean::RunningMean(const Scope& scope, const MixerShape& shape, const RunningMeanConfig& config)
    : DecodingMixer("running-mean", shape),
      hidden_(config.expansion * shape.width),
      to_vg_(scope / "to_vg", {shape.width, 2 * hidden_}),
      to_out_(scope / "to_out", {hidden_, shape.width, /*bias=*/true, shape.output_gain}) {}

// Written with the library's operations, which have their gradients.
Var RunningMean::forward(const Var& x, const Context& context) const {
  const std::vector<Var> vg = split(to_vg_(x), -1, {hidden_, hidden_});
  const auto average = [&](const Segments& segments, bool causal) {
    return matmul(Var(averaging_weights(segments, causal)), vg[0]);
  };
  const Var mean = mix_with_prefix(context, shape_.causal, average);
  return to_out_(sigmoid(vg[1]) * mean);
}

std::unique_ptr<MixerState> RunningMean::fresh_state(int64_t batch) const {
  return new_state<RunningMeanState>(batch, hidden_);
}

// The next tokens at once, after any number of others: the sum so far is added to that of the new ones. A prefix, which
// is read as a whole, exists at the start only.
Var RunningMean::read(const Var& x, RunningMeanState& state) const {
  const int64_t batch = x.dim(0), length = x.dim(1);
  const std::vector<Var> vg = split(to_vg_(x), -1, {hidden_, hidden_});
  const int64_t before = state.position(0);
  const bool causal = !shape_.prefix || before > 0;
  Array counts(Shape{1, length, 1}), totals(Shape{1, length, 1});  // tokens that are seen: new ones, and all
  for (int64_t t = 0; t < length; ++t) {
    counts.mutable_data()[t] = static_cast<real>(causal ? t + 1 : length);
    totals.mutable_data()[t] = static_cast<real>(before) + counts[t];
  }
  const Var averages = matmul(Var(averaging_weights(Segments::full(batch, length), causal)), vg[0]);
  const Var mean = (reshape(Var(state.sum), {batch, 1, hidden_}) + averages * Var(counts)) / Var(totals);
  state.sum = (Var(state.sum) + sum(vg[0], {1})).value();
  state.advance(batch, length);
  return to_out_(sigmoid(vg[1]) * mean);
}

// The next token of the first n sequences, each at a position of its own.
Var RunningMean::next(const Var& x, RunningMeanState& state) const {
  const int64_t rows = x.dim(0);
  // Linear::step multiplies with weights that are packed once for the whole generation.
  const std::vector<Var> vg = split(Var(to_vg_.step(x.value(), state.decode())), -1, {hidden_, hidden_});
  // Row by row, since a row's bits must not depend on how many rows there are: an operation on all of them may round
  // the last elements of the array, which fill no vector register, in another way than the others.
  Array sums = state.sum.clone(), gated(Shape{rows, hidden_});
  for (int64_t row = 0; row < rows; ++row) {
    const auto count = static_cast<real>(state.position(row) + 1);
    for (int64_t i = row * hidden_; i < (row + 1) * hidden_; ++i) {
      sums.mutable_data()[i] += vg[0].value()[i];
      gated.mutable_data()[i] = sums[i] / count / (1 + std::exp(-vg[1].value()[i]));
    }
  }
  state.sum = sums;
  state.advance(rows, 1);
  return Var(to_out_.step(gated, state.decode()));
}

// The cost for the table of `inspect`, without the products with the parameters, which are counted there.
MixerCost RunningMean::cost(int64_t length) const {
  const double hidden = static_cast<double>(hidden_);
  return {/*mixing_flops=*/2 * hidden * static_cast<double>(length), /*decode_flops=*/3 * hidden,
          /*saved_elements=*/5 * hidden};
}

}  // namespace

std::unique_ptr<Mixer> make(const Scope& scope, const MixerShape& shape, const RunningMeanConfig& config) {
  return std::make_unique<RunningMean>(scope, shape, config);
}

}  // namespace capstan::CAPSTAN_PRECISION
