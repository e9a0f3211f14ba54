#include "tests/nn/mixer/mixer_suite.hpp"

#include <doctest/doctest.h>

#include <set>

#include "core/array/layout.hpp"
#include "nn/blocks/block.hpp"
#include "nn/blocks/short_conv.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

constexpr int64_t length = 150;  // over two tiles of 64, one of 128, and a ragged tail
constexpr int64_t batch = 3;     // used to check decoding

/// The bias of the projection after the mixer's core; undefined where there is none.
Var output_bias(const ParamStore& store) {
  for (const Param& param : store.params())
    if (param.name == "to_out.bias") return param.var;
  return Var();
}

/// Largest magnitude in the rows of padding, less `expected` (one row) unless that is undefined.
double in_padding(const Array& rows, const Segments& segments, const Var& expected) {
  double worst = 0;
  for (int64_t i = 0; i < rows.size(); ++i) {
    if (segments.ids()[i / width] != 0) continue;
    const double wanted = expected ? static_cast<double>(expected.value()[i % width]) : 0;
    const double error = std::abs(static_cast<double>(rows[i]) - wanted);
    worst = error > worst || std::isnan(error) ? error : worst;
  }
  return worst;
}

bool finite(const Array& array) {
  for (int64_t i = 0; i < array.size(); ++i)
    if (!std::isfinite(array[i])) return false;
  return true;
}

Var zeros(const Shape& shape) { return Var(Array::zeros(shape)); }

/// Where a prefill ends: at the beginning, at the end, around the first boundaries.
std::set<int64_t> splits(int64_t boundary, int64_t end) {
  std::set<int64_t> result{0, 1, end - 1, end};
  for (const int64_t shift : {-1, 0, 1})
    for (int64_t times = 1; boundary > 0 && times <= 3; ++times)
      if (times * boundary + shift < end) result.insert(times * boundary + shift);
  return result;
}

void check_decode_equals_forward(const MixerCase& c) {
  const int64_t end = c.boundary > 0 ? std::min(length, 3 * c.boundary + 5) : 61;
  const auto built = built_mixer(c, /*causal=*/true, c.any_length ? 11 : end);
  const Array x = normal_array({batch, end, width}, 8);
  const Array y = forward(*built.module, x, Segments::full(batch, end));
  const auto state = built.module->make_state(batch);
  for (const int64_t prefilled : splits(c.boundary, end)) {
    state->reset();
    const double error = relative_error(decoded(*built.module, x, prefilled, *state), y, 1);
    CHECK_MESSAGE(error <= layer_tolerance, c.name, ", prefill of ", prefilled, ": ", error);
  }
}

void check_states(const MixerCase& c) {
  const auto built = built_mixer(c, true, 45);
  const Array x = normal_array({batch, 45, width}, 9);
  Array changed = normal_array(x.shape(), 10, 3);
  std::copy_n(x.data() + 45 * width, 45 * width, changed.mutable_data() + 45 * width);  // only row 1 is the same
  const auto state = built.module->make_state(batch), used = built.module->make_state(batch);
  for (const int64_t prefilled : {0, 11}) {
    state->reset();
    used->reset();
    const Array y = decoded(*built.module, x, prefilled, *state), z = decoded(*built.module, changed, prefilled, *used);
    CHECK(relative_error(z.rows(1, 2), y.rows(1, 2), 1) <= layer_tolerance);
    CHECK(relative_error(z.rows(0, 1), y.rows(0, 1), 1) > 0.01);
    used->reset();
    CHECK(identical(decoded(*built.module, x, prefilled, *used), y));
  }
}

/// A state that no mixer made.
struct ForeignState final : MixerState {
  ForeignState() : MixerState(2) {}
  std::vector<Array*> parts() override { return {}; }
  int64_t elements(int64_t) const override { return 0; }
};

void check_decode_refusals(const MixerCase& c) {
  const auto bidirectional = built_mixer(c, /*causal=*/false, 8);
  CHECK_THROWS_AS(bidirectional.module->make_state(1), std::logic_error);
  const auto built = built_mixer(c, true, 8);
  const auto state = built.module->make_state(2);
  CHECK_THROWS_AS(built.module->prefill(zeros({3, 4, width}), *state), std::invalid_argument);
  CHECK_THROWS_AS(built.module->prefill(zeros({2, width}), *state), std::invalid_argument);
  CHECK_THROWS_AS(built.module->step(zeros({3, width}), *state), std::invalid_argument);
  CHECK_THROWS_AS(built.module->step(zeros({2, 1, width}), *state), std::invalid_argument);
  CHECK_THROWS_AS(built.module->step(zeros({2, width + 1}), *state), std::invalid_argument);
  ForeignState foreign;
  const auto other = built_mixer(c, true, 8).module->make_state(2);  // of the same form
  for (MixerState* const wrong : {static_cast<MixerState*>(&foreign), other.get()}) {
    CHECK_THROWS_WITH_AS(built.module->step(zeros({2, width}), *wrong),
                         doctest::Contains("this state was made for another mixer"), std::invalid_argument);
    CHECK_THROWS_AS(built.module->prefill(zeros({2, 4, width}), *wrong), std::invalid_argument);
  }
  CHECK_THROWS_AS(state->copy(0, *other, 0), std::invalid_argument);
  CHECK_NOTHROW(built.module->step(zeros({1, width}), *state));
  CHECK_THROWS_WITH_AS(built.module->prefill(zeros({2, 4, width}), *state), doctest::Contains("at different positions"),
                       std::invalid_argument);
}

/// A mixer that knows its longest length refuses more, and keeps its state when it does.
void check_limit(const MixerCase& c) {
  const int64_t longest = 9;
  const Array x = normal_array({batch, longest + 1, width}, 13);
  const auto built = built_mixer(c, true, longest);
  const auto state = built.module->make_state(batch);
  CHECK_THROWS_AS(built.module->prefill(Var(x), *state), std::invalid_argument);
  CHECK_THROWS_AS(forward(*built.module, x, Segments::full(batch, longest + 1)), std::invalid_argument);
  const Array known = tokens(x, 0, longest), y = decoded(*built.module, known, longest - 1, *state);
  CHECK(relative_error(y, forward(*built.module, known, Segments::full(batch, longest)), 1) <= layer_tolerance);
  const Var next(tokens(x, longest, longest + 1).reshape({batch, width}));
  CHECK_THROWS_AS(built.module->step(next, *state), std::invalid_argument);
}

}  // namespace

Built<Mixer> built_mixer(const MixerConfig& config, bool causal, int64_t max_length) {
  return built_mixer(MixerCase{"", config}, causal, max_length);
}

Built<Mixer> built_mixer(const MixerCase& c, bool causal, int64_t max_length, bool prefix) {
  Built<Mixer> built;
  const Scope scope(*built.store, 1);
  built.module = make_mixer(scope, {width, max_length, causal, 1, prefix}, c.config);
  if (c.short_conv > 0) built.module = make_short_conv(scope, width, c.short_conv, std::move(built.module));
  redraw(*built.store);
  return built;
}

Array forward(const Mixer& mixer, const Array& x, const Segments& segments) {
  return mixer.forward(Var(x), {segments}).value();
}

Array decoded(const Mixer& mixer, const Array& x, int64_t prefilled, MixerState& state) {
  std::vector<int64_t> pieces{prefilled};
  pieces.resize(1 + static_cast<size_t>(x.dim(1) - prefilled), single_step);
  return in_pieces(mixer, x, pieces, state);
}

Array in_pieces(const Mixer& mixer, const Array& x, const std::vector<int64_t>& pieces, MixerState& state) {
  const int64_t rows = x.dim(0), end = x.dim(1);
  Array all(x.shape());
  int64_t begin = 0;
  for (const int64_t piece : pieces) {
    const int64_t count = piece == single_step ? 1 : piece;
    const Var next(tokens(x, begin, begin + count));
    const Array y = piece == single_step ? mixer.step(Var(next.value().reshape({rows, width})), state).value()
                                         : mixer.prefill(next, state).value();
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(y.data() + row * count * width, count * width, all.mutable_data() + (row * end + begin) * width);
    begin += count;
  }
  CHECK(begin == end);
  return all;
}

Array tokens(const Array& x, int64_t begin, int64_t end) {
  const int64_t rows = x.dim(0), row_length = x.dim(1), channels = x.dim(2);
  Array part(Shape{rows, end - begin, channels});
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(x.data() + (row * row_length + begin) * channels, (end - begin) * channels,
                part.mutable_data() + row * (end - begin) * channels);
  return part;
}

void check_causality(const MixerCase& c) {
  const Array x = normal_array({1, length, width}, 3);
  const Segments all = Segments::full(1, length);
  const auto built = built_mixer(c, true, length);
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    const Array y = forward(*built.module, x, all);
    for (const int64_t cut : {1, 63, 64, 65, 100, 149}) {
      for (const double factor : {1, 30, 3000}) {
        INFO(c.name << ", cut " << cut << ", factor " << factor << ", threads " << count);
        Array changed = normal_array(x.shape(), 77 + static_cast<uint64_t>(cut), factor);
        std::copy_n(x.data(), cut * width, changed.mutable_data());
        const Array z = forward(*built.module, changed, all);
        if (c.exact_causality) CHECK(identical(tokens(z, 0, cut), tokens(y, 0, cut)));
        CHECK(relative_error(tokens(z, 0, cut), tokens(y, 0, cut)) <= (sizeof(real) == 4 ? 1e-6 : 1e-12));
        CHECK(relative_error(tokens(z, cut, length), tokens(y, cut, length), 1) > 0.01);
      }
    }
  }
}

void check_padding(const MixerCase& c) {
  const int64_t valid = 90;
  const Array alone = normal_array({1, valid, width}, 4);
  for (const bool causal : {true, false}) {
    const auto built = built_mixer(c, causal, length);
    for (const int count : {1, 2}) {
      const Threads threads_used(count);
      const Array y = forward(*built.module, alone, Segments::full(1, valid));
      for (const int64_t left : {0, 17}) {
        Array rows = normal_array({3, length, width}, 5, 30);  // wild numbers everywhere else
        std::copy_n(alone.data(), alone.size(), rows.mutable_data() + (length + left) * width);
        Ids ids(Shape{3, length}, 0);
        std::fill_n(ids.mutable_data(), 130, 1);
        std::fill_n(ids.mutable_data() + length + left, valid, 3);
        std::fill_n(ids.mutable_data() + length + left + valid, 20, 4);
        const Array padded = forward(*built.module, rows, Segments(ids));
        const double error = relative_error(tokens(padded.rows(1, 2), left, left + valid), y, 1);
        CHECK_MESSAGE(error <= layer_tolerance, c.name, ", causal ", causal, ", left ", left, ": ", error);
      }
    }
  }
}

void check_extreme_inputs(const MixerCase& c) {
  const Segments segments = ragged_segments(70);
  for (const bool causal : {true, false}) {
    for (const double factor : {30, 3000}) {
      INFO(c.name << ", causal " << causal << ", factor " << factor);
      const auto built = built_mixer(c, causal, 70);
      const Var x = Var::leaf(normal_array({4, 70, width}, 8, factor));
      TapeScope scope;
      const Var y = built.module->forward(x, {segments});
      CHECK(finite(y.value()));
      scope.tape().backward(std::vector<Var>{y}, {normal_array(y.shape(), 9)});
      CHECK(finite(x.grad()));
      for (const Param& param : built.store->params()) CHECK_MESSAGE(finite(param.var.grad()), param.name);
    }
  }
}

void check_lengths(const MixerCase& c) {
  const int64_t longest = 40;
  const Array x = normal_array({3, longest, width}, 7);
  Ids ids(Shape{1, 3 * longest});
  for (int64_t t = 0; t < ids.size(); ++t) ids.mutable_data()[t] = static_cast<int32_t>(1 + t / longest);
  for (const bool causal : {true, false}) {
    INFO(c.name << ", causal " << causal);
    const auto built = built_mixer(c, causal, longest);
    const Array y = forward(*built.module, x, Segments::full(3, longest));
    if (c.any_length) {
      const auto trained_short = built_mixer(c, causal, 16);
      CHECK(identical(forward(*trained_short.module, x, Segments::full(3, longest)), y));
    }
    // Documents in one row of three times the length give what each gives alone.
    const Array packed = forward(*built.module, x.reshape({1, 3 * longest, width}), Segments(ids));
    CHECK(relative_error(packed.reshape(y.shape()), y, 1) <= layer_tolerance);
    if (!causal) continue;
    const Array shorter = forward(*built.module, tokens(x, 0, 11), Segments::full(3, 11));
    CHECK(relative_error(shorter, tokens(y, 0, 11), 1) <= layer_tolerance);
  }
  if (!c.any_length) check_limit(c);
}

void check_blind_tokens(const MixerCase& c) {
  const Segments some = ragged_segments(70), nothing{Ids(Shape{4, 70}, 0)};  // one row of `some` is padding alone
  for (const bool causal : {true, false}) {
    for (const Segments& segments : {some, nothing}) {
      INFO(c.name << ", causal " << causal << ", visible tokens " << segments.valid());
      const auto built = built_mixer(c, causal, 70);
      const Var x = Var::leaf(normal_array({4, 70, width}, 8, 3));
      TapeScope scope;
      const Var y = built.module->forward(x, {segments});
      CHECK_MESSAGE(in_padding(y.value(), segments, output_bias(*built.store)) == 0,
                    "rows of padding must be 0 before the output projection, whose bias must be called to_out.bias");
      scope.tape().backward(std::vector<Var>{y}, {normal_array(y.shape(), 9)});
      CHECK_MESSAGE(in_padding(x.grad(), segments, Var()) == 0, "rows of padding must get no gradient");
      if (segments.valid() > 0) {
        CHECK(relative_error(x.grad(), Array::zeros(x.shape()), 1) > 0);
        continue;
      }
      for (const Param& param : built.store->params())
        if (param.name != "to_out.bias" && param.var.has_grad())
          CHECK_MESSAGE(relative_error(param.var.grad(), Array::zeros(param.var.shape()), 1) == 0, param.name);
    }
  }
}

void check_shapes(const MixerCase& c) {
  for (const bool causal : {true, false}) {
    INFO(c.name << ", causal " << causal);
    const auto built = built_mixer(c, causal, 8);
    for (const auto& [rows, tokens_each] : {std::pair<int64_t, int64_t>{0, 5}, {2, 0}}) {
      const Var x = Var::leaf(Array(Shape{rows, tokens_each, width}));
      TapeScope scope;
      const Var y = built.module->forward(x, Context::evaluation(rows, tokens_each));
      CHECK(y.shape() == x.shape());
      scope.tape().backward(std::vector<Var>{y}, {Array(y.shape())});
    }
    for (const Var& x : {zeros({2, 4, width}), zeros({3, 5, width}), zeros({2, 5, width + 1}), zeros({10, width})})
      CHECK_THROWS_AS(built.module->forward(x, Context::evaluation(2, 5)), std::invalid_argument);
  }
}

void check_prefix(const MixerCase& c) {
  if (!prefix_obstacle(c.config).empty()) return;
  INFO(c.name);
  const int64_t end = 45;
  const auto bidirectional = built_mixer(c, /*causal=*/false, end), prefixed = built_mixer(c, true, end, true);
  const Array x = normal_array({4, end, width}, 14);
  Context context{ragged_segments(end)};
  context.prefixes = context.segments;
  const Array y = prefixed.module->forward(Var(x), context).value();
  CHECK(relative_error(y, forward(*bidirectional.module, x, context.segments), 1) <= layer_tolerance);
  const auto state = prefixed.module->make_state(4);
  CHECK(relative_error(prefixed.module->prefill(Var(x), *state).value(),
                       forward(*bidirectional.module, x, Segments::full(4, end)), 1) <= layer_tolerance);
}

void check_decode(const MixerCase& c) {
  INFO(c.name);
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    check_decode_equals_forward(c);
  }
  check_states(c);
  check_decode_refusals(c);
}

void check_pieces(const MixerCase& c) {
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    const auto built = built_mixer(c, /*causal=*/true, c.any_length ? 11 : length);
    const Array x = normal_array({batch, length, width}, 21);
    const Array y = forward(*built.module, x, Segments::full(batch, length));
    const auto state = built.module->make_state(batch);
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      RandomStream random(random_key(seed, "pieces"));
      std::vector<int64_t> pieces;
      // The longest piece: over windows, chunks and tiles; of two tokens; of the first boundary.
      const int64_t longest = seed % 4 == 0 ? 90 : seed % 4 == 1 ? 2 : c.boundary > 0 ? 2 * c.boundary : 20;
      for (int64_t left = length; left > 0;) {
        const auto drawn = static_cast<int64_t>(random.uniform() * static_cast<double>(longest + 1));
        const bool step = seed > 4 && random.uniform() < 0.4;
        pieces.push_back(step ? single_step : std::min(left, drawn));
        left -= step ? 1 : pieces.back();
      }
      state->reset();
      const double error = relative_error(in_pieces(*built.module, x, pieces, *state), y, 1);
      CHECK_MESSAGE(error <= layer_tolerance, c.name, ", seed ", seed, ": ", error);
    }
  }
}

void check_mixer(const MixerCase& c) {
  check_causality(c);
  check_padding(c);
  check_extreme_inputs(c);
  check_lengths(c);
  check_blind_tokens(c);
  check_shapes(c);
  check_prefix(c);
  check_decode(c);
  check_pieces(c);
  check_company(c);
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
