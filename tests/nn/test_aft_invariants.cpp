// The invariants of design.md section 6 for whole AFT mixers; those of the ops alone stand in tests/core, gradients in
// gradcheck_modules.cpp, decoding in test_aft_decode.cpp.
#include <doctest/doctest.h>

#include "core/ops_math.hpp"
#include "tests/nn/samples.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/arrays.hpp"

CAPSTAN_BEGIN
namespace testing {
namespace {

constexpr int64_t length = 150;  // over two tiles of 64, one of 128, and a ragged tail

Array forward(const Mixer& mixer, const Array& x, const Segments& segments) {
  return mixer.forward(Var(x), {segments}).value();
}

/// The bias behind the mixer's core; undefined where there is none.
Var output_bias(const ParamStore& store) {
  for (const Param& param : store.params())
    if (param.name == "to_out.bias") return param.var;
  return Var();
}

/// The largest |K| that this mixer's projection makes of tokens [begin, T).
double largest_key(const ParamStore& store, const Array& x, int64_t begin) {
  const Array projected = linear(Var(tokens(x, begin, x.dim(1))), store.find("to_qkv.weight").var).value();
  const int64_t columns = projected.dim(2), keys = columns - 2 * width;
  double result = 0;
  for (int64_t row = 0; row < projected.size() / columns; ++row)
    for (int64_t key = 0; key < keys; ++key)
      result = std::max(result, std::abs(static_cast<double>(projected[row * columns + width + key])));
  return result;
}

/// x with other tokens from `cut` on, so large that their keys reach +-`key`.
Array with_later_keys(const ParamStore& store, const Array& x, int64_t cut, double key) {
  Array changed = normal_array(x.shape(), 77 + static_cast<uint64_t>(cut));
  std::copy_n(x.data(), cut * width, changed.mutable_data());
  const double factor = key / largest_key(store, changed, cut);
  for (int64_t i = cut * width; i < changed.size(); ++i) changed.mutable_data()[i] *= static_cast<real>(factor);
  return changed;
}

TEST_CASE("causality: later tokens, with keys of 1, 100 and 10^4, do not reach earlier outputs") {
  const Array x = normal_array({1, length, width}, 3);
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    for (const MixerCase& c : mixer_cases()) {
      const auto built = built_mixer(c.config, true, length);
      const Array y = forward(*built.module, x, Segments::full(1, length));
      const bool scan = std::holds_alternative<AftSimpleConfig>(c.config);
      for (const int64_t cut : {1, 63, 64, 65, 100, 128, 149}) {
        for (const double key : {1.0, 100.0, 1e4}) {
          const Array changed = with_later_keys(*built.store, x, cut, key);
          CHECK(largest_key(*built.store, changed, cut) == doctest::Approx(key).epsilon(1e-3));
          const Array z = forward(*built.module, changed, Segments::full(1, length));
          INFO(c.name << ", cut " << cut << ", key " << key);
          if (scan) CHECK(identical(tokens(z, 0, cut), tokens(y, 0, cut)));
          CHECK(relative_error(tokens(z, 0, cut), tokens(y, 0, cut)) <= (sizeof(real) == 4 ? 1e-6 : 1e-12));
          CHECK(relative_error(tokens(z, cut, length), tokens(y, cut, length), 1) > 0.01);
        }
      }
    }
  }
}

TEST_CASE("causality: keys that are large but do not make earlier weights underflow") {
  const int64_t short_length = 64;  // one tile, whose maximum is the later key
  const Segments all = Segments::full(1, short_length);
  for (const MixerCase& c : mixer_cases()) {
    const auto built = built_mixer(c.config, true, short_length);
    double worst = 0;
    for (const uint64_t seed : {3, 4}) {
      const Array x = normal_array({1, short_length, width}, seed, 1);
      const Array y = forward(*built.module, x, all);
      for (const int64_t cut : {8, 20, 33, 51}) {
        for (double key = 50; key < 130; key += 2) {
          const Array z = forward(*built.module, with_later_keys(*built.store, x, cut, key), all);
          worst = std::max(worst, relative_error(tokens(z, 0, cut), tokens(y, 0, cut)));
        }
      }
    }
    CHECK_MESSAGE(worst <= (sizeof(real) == 4 ? 1e-6 : 1e-12), c.name, ": ", worst);
  }
}

TEST_CASE("padding: more of it, its side, batch mates and documents packed beside change no valid output") {
  const int64_t valid = 90;
  const Array alone = normal_array({1, valid, width}, 4);
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    for (const MixerCase& c : mixer_cases()) {
      for (const bool causal : {true, false}) {
        const auto built = built_mixer(c.config, causal, length);
        const Array y = forward(*built.module, alone, Segments::full(1, valid));
        for (const int64_t left : {0, 17}) {
          Array batch = normal_array({3, length, width}, 5, 30);  // wild numbers everywhere else
          std::copy_n(alone.data(), alone.size(), batch.mutable_data() + (length + left) * width);
          Ids ids(Shape{3, length}, 0);
          std::fill_n(ids.mutable_data(), 130, 1);
          std::fill_n(ids.mutable_data() + length + left, valid, 3);
          std::fill_n(ids.mutable_data() + length + left + valid, 20, 4);
          const Array padded = forward(*built.module, batch, Segments(ids));
          const double error = relative_error(tokens(padded.rows(1, 2), left, left + valid), y, 1);
          CHECK_MESSAGE(error <= layer_tolerance, c.name, ", causal ", causal, ", left ", left, ": ", error);
        }
      }
    }
  }
}

TEST_CASE("length change: simple and conv do not know their longest length") {
  const Array x = normal_array({2, length, width}, 6);
  for (const MixerCase& c : mixer_cases()) {
    if (!c.any_length) continue;
    for (const bool causal : {true, false}) {
      const auto trained_short = built_mixer(c.config, causal, 16),
                 trained_long = built_mixer(c.config, causal, length);
      const Segments all = Segments::full(2, length);
      const Array y = forward(*trained_short.module, x, all);
      CHECK_MESSAGE(identical(y, forward(*trained_long.module, x, all)), c.name);
      // Two such documents in a row of twice the length give what each gives alone.
      Ids ids(Shape{1, 2 * length}, 1);
      std::fill_n(ids.mutable_data() + length, length, 2);
      const Array packed = forward(*trained_short.module, x.reshape({1, 2 * length, width}), Segments(ids));
      CHECK_MESSAGE(relative_error(packed.reshape(y.shape()), y, 1) <= layer_tolerance, c.name);
    }
  }
}

TEST_CASE("length change: full and local take any length up to max_length, and longer rows of shorter documents") {
  const int64_t longest = 40;
  const Array x = normal_array({3, longest, width}, 7);
  for (const MixerCase& c : mixer_cases()) {
    if (c.any_length) continue;
    for (const bool causal : {true, false}) {
      const auto built = built_mixer(c.config, causal, longest);
      const Array y = forward(*built.module, x, Segments::full(3, longest));
      Ids ids(Shape{1, 3 * longest});
      for (int64_t t = 0; t < ids.size(); ++t) ids.mutable_data()[t] = static_cast<int32_t>(1 + t / longest);
      const Array packed = forward(*built.module, x.reshape({1, 3 * longest, width}), Segments(ids));
      CHECK_MESSAGE(relative_error(packed.reshape(y.shape()), y, 1) <= layer_tolerance, c.name);
      if (!causal) continue;
      const Array shorter = forward(*built.module, tokens(x, 0, 11), Segments::full(3, 11));
      CHECK_MESSAGE(relative_error(shorter, tokens(y, 0, 11), 1) <= layer_tolerance, c.name);
      CHECK_THROWS_AS(forward(*built.module, x.reshape({1, 3 * longest, width}), Segments::full(1, 3 * longest)),
                      std::invalid_argument);
    }
  }
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

TEST_CASE("a token that sees nothing gives 0 from the mixer's core, exactly, and gets no gradient") {
  const Segments segments = ragged_segments(29);  // one row holds padding alone
  for (const MixerCase& c : mixer_cases()) {
    for (const bool causal : {true, false}) {
      INFO(c.name << ", causal " << causal);
      const auto built = built_mixer(c.config, causal, 29);
      const Var x = Var::leaf(normal_array({4, 29, width}, 8, 3));
      TapeScope scope({/*checked=*/true});
      const Var y = built.module->forward(x, {segments});
      CHECK(in_padding(y.value(), segments, output_bias(*built.store)) == 0);
      scope.tape().backward(std::vector<Var>{y}, {normal_array(y.shape(), 9)});
      CHECK(in_padding(x.grad(), segments, Var()) == 0);
      CHECK(relative_error(x.grad(), Array::zeros(x.shape()), 1) > 0);
    }
  }
}

TEST_CASE("a batch of padding alone moves no parameter") {
  const Segments nothing{Ids(Shape{2, 70}, 0)};
  for (const MixerCase& c : mixer_cases()) {
    for (const bool causal : {true, false}) {
      const auto built = built_mixer(c.config, causal, 70);
      const Var x = Var::leaf(normal_array({2, 70, width}, 8, 3));
      TapeScope scope({/*checked=*/true});
      const Var y = built.module->forward(x, {nothing});
      scope.tape().backward(std::vector<Var>{y}, {normal_array(y.shape(), 9)});
      for (const Param& param : built.store->params()) {
        if (param.name == "to_out.bias" || !param.var.has_grad()) continue;
        CHECK_MESSAGE(relative_error(param.var.grad(), Array::zeros(param.var.shape()), 1) == 0, c.name, " ",
                      param.name);
      }
    }
  }
}

TEST_CASE("batches without sequences or without tokens pass through; inputs that do not fit are refused") {
  for (const MixerCase& c : mixer_cases()) {
    for (const bool causal : {true, false}) {
      INFO(c.name << ", causal " << causal);
      const auto built = built_mixer(c.config, causal, 8);
      for (const auto& [batch, tokens_each] : {std::pair<int64_t, int64_t>{0, 5}, {2, 0}}) {
        const Var x = Var::leaf(Array(Shape{batch, tokens_each, width}));
        TapeScope scope;
        const Var y = built.module->forward(x, Context::evaluation(batch, tokens_each));
        CHECK(y.shape() == x.shape());
        scope.tape().backward(std::vector<Var>{y}, {Array(y.shape())});
      }
      const auto zeros = [](const Shape& shape) { return Var(Array::zeros(shape)); };
      for (const Var& x : {zeros({2, 4, width}), zeros({3, 5, width}), zeros({2, 5, width + 1}), zeros({10, width})})
        CHECK_THROWS_AS(built.module->forward(x, Context::evaluation(2, 5)), std::invalid_argument);
    }
  }
}

TEST_CASE("aft-conv starts as aft-simple") {
  const Array x = normal_array({2, 70, width}, 10);
  for (const bool causal : {true, false}) {
    ParamStore simple_store, conv_store;
    const MixerShape shape{width, 70, causal, 1};
    const auto simple = make_mixer(Scope(simple_store, 1), shape, AftSimpleConfig{});
    const auto conv =
        make_mixer(Scope(conv_store, 1), shape, conv_config(5, width, plain));  // a key per channel in both
    const Segments all = Segments::full(2, 70);
    CHECK(relative_error(forward(*conv, x, all), forward(*simple, x, all), 1) <= layer_tolerance);
    conv_store.find("kernel_gain").var.assign(Array({width}, real{1}));
    CHECK(relative_error(forward(*conv, x, all), forward(*simple, x, all), 0.01) > 0.01);
  }
}

TEST_CASE("a key bias is listed as a gauge parameter and changes nothing") {
  const Array x = normal_array({1, 70, width}, 11);
  for (const MixerCase& c : mixer_cases()) {
    const auto built = built_mixer(c.config, true, 70);
    int gauges = 0;
    for (const Param& param : built.store->params()) {
      CHECK(param.options.gauge == (param.name == "key_bias"));
      if (!param.options.gauge) continue;
      ++gauges;
      const Array y = forward(*built.module, x, Segments::full(1, 70));
      param.var.assign(normal_array(param.var.shape(), 12, 2));
      CHECK_MESSAGE(relative_error(forward(*built.module, x, Segments::full(1, 70)), y, 1) <= layer_tolerance, c.name);
    }
    CHECK(gauges == (c.name.find("all biases") != std::string::npos ? 1 : 0));
  }
}

}  // namespace
}  // namespace testing
CAPSTAN_END
