// What went wrong in public implementations of AFT, each as a test named after it. What their code computed is known
// from reading it; none of it is here.
#include <doctest/doctest.h>

#include "core/ops/ops.hpp"
#include "tests/nn/systems/aft/cases.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/ragged.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

/// AFT alone: no biases, no projection after it, so that outputs are sigmoid(Q) times an average of values.
std::vector<MixerCase> bare_cases() {
  const auto factorised = PositionBias::factorised, dense = PositionBias::dense;
  return {{"simple", with_projections(AftSimpleConfig{}, bare)},
          {"full", full_config(factorised, bare), 0, false, false},
          {"full dense", full_config(dense, bare), 0, false, false},
          {"local", local_config(5, factorised, bare), 5, false, false},
          {"conv", conv_config(5, 5, bare), 5, true, false}};
}

/// Redraws the projection and sets the rows of queries to 0, so that the gate is 1/2 everywhere, and those of keys to
/// `gain` times what they were.
void prepare_projection(const ParamStore& store, double gain) {
  const Var& weight = store.find("to_qkv.weight").var;
  Array rows = weight.value().clone();
  for (int64_t i = 0; i < rows.size(); ++i) {
    const int64_t row = i / width;
    if (row < width) rows.mutable_data()[i] = 0;
    if (row >= width && row < rows.dim(0) - width) rows.mutable_data()[i] *= static_cast<real>(gain);
  }
  weight.assign(rows);
}

/// Makes every value 1: the inputs' first feature is 1 and the only one that values read.
Array constant_values(const ParamStore& store, int64_t length) {
  const Var& weight = store.find("to_qkv.weight").var;
  Array rows = weight.value().clone();
  const int64_t first = rows.dim(0) - width;
  for (int64_t row = first; row < rows.dim(0); ++row)
    for (int64_t column = 0; column < width; ++column) rows.mutable_data()[row * width + column] = column == 0 ? 1 : 0;
  weight.assign(rows);
  Array x = normal_array({2, length, width}, 5);
  for (int64_t i = 0; i < x.size(); i += width) x.mutable_data()[i] = 1;
  return x;
}

TEST_CASE("NLP-AFT counts the current token twice, RWKV v1 leaves w out of the denominator: here weights sum to one") {
  for (const MixerCase& c : bare_cases()) {
    for (const bool causal : {true, false}) {
      const auto built = built_mixer(c.config, causal, 70);
      prepare_projection(*built.store, 3);
      const Array x = constant_values(*built.store, 70), y = forward(*built.module, x, Segments::full(2, 70));
      CHECK_MESSAGE(relative_error(y, Array(y.shape(), real{0.5}), 1) <= layer_tolerance, c.name, ", causal ", causal);
    }
  }
}

TEST_CASE("aft-pytorch #5: the exponential of keys past 88 is not infinite, nor NaN the next layer") {
  for (const MixerCase& c : bare_cases()) {
    for (const bool causal : {true, false}) {
      INFO(c.name << ", causal " << causal);
      const auto built = built_mixer(c.config, causal, 70);
      prepare_projection(*built.store, 300);  // keys of up to about 2000
      Var x(normal_array({2, 70, width}, 5));
      for (int layer = 0; layer < 12; ++layer) x = x + built.module->forward(x, Context::evaluation(2, 70));
      for (const real entry : x.value().to_vector()) REQUIRE(std::isfinite(entry));
    }
  }
}

TEST_CASE("aft-pytorch #3: the position bias is a parameter of the module, which every backward pass reaches") {
  for (const MixerCase& c : bare_cases()) {
    if (c.name == "simple") continue;
    const auto built = built_mixer(c.config, true, 20);
    int found = 0;
    for (int pass = 1; pass <= 2; ++pass) {
      TapeScope scope;
      const Var y = built.module->forward(Var(normal_array({2, 20, width}, 5)), Context::evaluation(2, 20));
      scope.tape().backward(std::vector<Var>{y}, {normal_array(y.shape(), 9)});
    }
    for (const Param& param : built.store->params()) {
      if (param.name.rfind("position_", 0) != 0 && param.name.rfind("kernel", 0) != 0) continue;
      ++found;
      CHECK_MESSAGE(relative_error(param.var.grad(), Array::zeros(param.var.shape()), 1) > 1e-3, c.name, " ",
                    param.name);
    }
    CHECK_MESSAGE(found >= 1, c.name);
  }
}

TEST_CASE("neural_net clears gradients on the way back: here two passes give twice the gradient of one") {
  for (const MixerCase& c : bare_cases()) {
    std::vector<Array> once;
    const auto built = built_mixer(c.config, true, 20);
    for (int pass = 1; pass <= 2; ++pass) {
      TapeScope scope;
      const Var y = built.module->forward(Var(normal_array({2, 20, width}, 5)), Context::evaluation(2, 20));
      scope.tape().backward(std::vector<Var>{y}, {normal_array(y.shape(), 9)});
      size_t at = 0;
      for (const Param& param : built.store->params()) {
        const Array grad = param.var.grad().clone();
        if (pass == 1) {
          once.push_back((Var(grad) * Var(Array::scalar(2))).value());
        } else {
          CHECK_MESSAGE(relative_error(grad, once[at], 1e-3) <= 10 * layer_tolerance, c.name, " ", param.name);
        }
        ++at;
      }
    }
  }
}

TEST_CASE("labml: a maximum over all of time makes early rows 0/0 once a later key is larger by 104") {
  for (const MixerCase& c : bare_cases()) {
    INFO(c.name);
    const auto built = built_mixer(c.config, true, 70);
    prepare_projection(*built.store, 1);
    Array x = normal_array({1, 70, width}, 5);
    for (int64_t i = 69 * width; i < 70 * width; ++i) x.mutable_data()[i] *= 200;  // the last token's keys
    const Array y = forward(*built.module, x, Segments::full(1, 70));
    for (const real entry : y.to_vector()) REQUIRE(std::isfinite(entry));
    // Early rows do not depend on the presence of the last token.
    const Array alone = forward(*built.module, tokens(x, 0, 30), Segments::full(1, 30));
    CHECK(relative_error(tokens(y, 0, 30), alone, 1) <= layer_tolerance);
  }
}

TEST_CASE("labml: no mask is needed, and every text of a batch may have its own") {
  for (const MixerCase& c : bare_cases()) {
    const auto built = built_mixer(c.config, true, 30);
    const Array x = normal_array({3, 30, width}, 5);
    const Array all = forward(*built.module, x, Segments::full(3, 30));
    const Array masked = forward(*built.module, x, segments_of_lengths({30, 11, 1}, 30));
    CHECK_MESSAGE(relative_error(tokens(masked, 0, 1), tokens(all, 0, 1), 1) <= layer_tolerance, c.name);
    CHECK_MESSAGE(relative_error(tokens(masked.rows(1, 2), 0, 11), tokens(all.rows(1, 2), 0, 11), 1) <= layer_tolerance,
                  c.name);
  }
}

TEST_CASE("AFT_FULL wants texts of one length: here any length up to the longest") {
  for (const MixerCase& c : bare_cases()) {
    const auto built = built_mixer(c.config, true, 30);
    const Array x = normal_array({1, 30, width}, 5), y = forward(*built.module, x, Segments::full(1, 30));
    for (const int64_t length : {1, 2, 17, 29}) {
      const Array part = forward(*built.module, tokens(x, 0, length), Segments::full(1, length));
      CHECK_MESSAGE(relative_error(part, tokens(y, 0, length), 1) <= layer_tolerance, c.name);
    }
  }
}

TEST_CASE("RWKV v1 and v2 clamp keys, which ends their gradients: here two large keys still compete") {
  for (const MixerCase& c : bare_cases()) {
    INFO(c.name);
    const auto built = built_mixer(c.config, false, 8);
    prepare_projection(*built.store, 1);
    Array x = normal_array({1, 8, width}, 5, 0.3);
    for (int64_t i = 0; i < x.size(); i += width) x.mutable_data()[i] = 100;  // all keys large, and close together
    const Var input = Var::leaf(x);
    TapeScope scope;
    const Var y = built.module->forward(input, Context::evaluation(1, 8));
    scope.tape().backward(std::vector<Var>{y}, {normal_array(y.shape(), 9)});
    const Array grad = built.store->find("to_qkv.weight").var.grad();
    double largest = 0;
    for (int64_t i = width * width; i < (grad.dim(0) - width) * width; ++i)  // the rows of keys
      largest = std::max(largest, std::abs(static_cast<double>(grad[i])));
    CHECK(largest > 1e-3);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
