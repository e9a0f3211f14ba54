// A step is a forward() over each sequence by itself, so that what one gets does not depend on its neighbours.
#include "nn/mixer/forward_mixer.hpp"

#include <algorithm>

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// The inputs of all tokens so far.
struct InputState final : MixerState {
  InputState(int64_t batch, const MixerShape& shape)
      : MixerState(batch), width(shape.width), inputs(static_cast<size_t>(batch)) {
    if (shape.prefix) prefixes = Array::zeros(Shape{batch, 1});
  }

  void reset() override {
    MixerState::reset();
    for (std::vector<real>& rows : inputs) rows.clear();
  }
  void select(const std::vector<int64_t>& rows) override {
    MixerState::select(rows);
    std::vector<std::vector<real>> selected;
    for (const int64_t row : rows) selected.push_back(inputs.at(static_cast<size_t>(row)));
    inputs = std::move(selected);
  }
  void copy(int64_t to, MixerState& from, int64_t row) override {
    MixerState::copy(to, from, row);
    inputs.at(static_cast<size_t>(to)) = static_cast<InputState&>(from).inputs.at(static_cast<size_t>(row));
  }
  std::vector<Array*> parts() override { return {&prefixes}; }
  int64_t elements(int64_t position) const override { return position * width + (prefixes.empty() ? 0 : 1); }

  int64_t prefix(int64_t row) const { return prefixes.empty() ? 0 : static_cast<int64_t>(prefixes[row]); }
  /// The inputs of sequence `row` and `count` more rows: (1, T, D).
  Array document(int64_t row, const real* next, int64_t count) const {
    const std::vector<real>& before = inputs[static_cast<size_t>(row)];
    Array tokens(Shape{1, position(row) + count, width});
    std::copy_n(next, count * width, std::copy(before.begin(), before.end(), tokens.mutable_data()));
    return tokens;
  }
  void append(int64_t row, const real* next, int64_t count) {
    std::vector<real>& rows = inputs[static_cast<size_t>(row)];
    rows.insert(rows.end(), next, next + count * width);
  }

  int64_t width;
  std::vector<std::vector<real>> inputs;  // of each sequence: its tokens' inputs, D elements each
  Array prefixes;                         // (B, 1): tokens that were read as a whole; empty where prefixes are not read
};

}  // namespace

std::unique_ptr<MixerState> ForwardMixer::make_state(int64_t batch) const {
  if (!shape_.causal) throw std::logic_error(fmt::format("{}: a bidirectional mixer does not decode", name_));
  return new_state<InputState>(batch, shape_);
}

Array ForwardMixer::last_rows(const Array& document, int64_t prefix, int64_t count) const {
  const int64_t tokens = document.dim(1), width = document.dim(2);
  Context context = Context::evaluation(1, tokens);
  if (prefix > 0) {
    Ids ids = context.segments.ids().clone();
    std::fill(ids.mutable_data() + prefix, ids.mutable_data() + tokens, 0);
    context.prefixes = Segments(ids);
  }
  return forward(Var(document), context).value().reshape({tokens, width}).rows(tokens - count, tokens);
}

Var ForwardMixer::prefill(const Var& x, MixerState& mixer_state) const {
  auto& state = prefill_state<InputState>(mixer_state, name_, x, shape_.width);
  const int64_t batch = x.dim(0), length = x.dim(1), size = length * shape_.width;
  if (batch == 0 || length == 0) return x;
  const bool prefix = shape_.prefix && state.position(0) == 0;
  Array y(x.shape());
  for (int64_t row = 0; row < batch; ++row) {
    const Array document = state.document(row, x.value().data() + row * size, length);
    const Array last = last_rows(document, prefix ? length : state.prefix(row), length);
    std::copy_n(last.data(), size, y.mutable_data() + row * size);
  }
  // What forward() refuses leaves the state as it was.
  for (int64_t row = 0; row < batch; ++row) {
    state.append(row, x.value().data() + row * size, length);
    if (prefix) state.prefixes.mutable_data()[row] = static_cast<real>(length);
  }
  state.advance(batch, length);
  return Var(y);
}

Var ForwardMixer::step(const Var& x, MixerState& mixer_state) const {
  auto& state = step_state<InputState>(mixer_state, name_, x, shape_.width);
  const int64_t rows = x.dim(0), width = shape_.width;
  Array y(x.shape());
  for (int64_t row = 0; row < rows; ++row) {
    const Array last = last_rows(state.document(row, x.value().data() + row * width, 1), state.prefix(row), 1);
    std::copy_n(last.data(), width, y.mutable_data() + row * width);
  }
  for (int64_t row = 0; row < rows; ++row) state.append(row, x.value().data() + row * width, 1);
  state.advance(rows, 1);
  return Var(y);
}

}  // namespace capstan::CAPSTAN_PRECISION
