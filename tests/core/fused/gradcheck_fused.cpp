#include <doctest/doctest.h>

#include "core/autograd/gradcheck.hpp"
#include "core/fused/bag.hpp"
#include "core/fused/feed_forward.hpp"
#include "core/fused/linear.hpp"
#include "core/fused/loss.hpp"
#include "core/fused/norm.hpp"
#include "core/fused/rotary.hpp"
#include "core/kernels/activation.hpp"
#include "tests/support/agreement.hpp"

using namespace capstan;

namespace {

// Widths past two registers of eight doubles plus one; rows that are no multiple of anything.
constexpr int64_t rows = 5, width = 19;

void check_gradients(const std::string& name, const testing::Op& op, const std::vector<Shape>& inputs) {
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    const GradcheckReport report = gradcheck(op, inputs);
    CHECK_MESSAGE(report.ok, name, ": ", report.worst);
  }
}

}  // namespace

TEST_CASE("gradients of linear match finite differences") {
  for (const auto& act : enum_names(Activation{})) {
    check_gradients(std::string(act.name) + " with bias",
                    [&](const auto& v) { return linear(v[0], v[1], v[2], act.value); },
                    {Shape{rows, 3}, Shape{width, 3}, Shape{width}});
    check_gradients(act.name, [&](const auto& v) { return linear(v[0], v[1], Var(), act.value); },
                    {Shape{2, rows, 3}, Shape{width, 3}});
  }
}

TEST_CASE("gradients of feed-forward match finite differences") {
  for (const auto& act : enum_names(Activation{})) {
    check_gradients(std::string("plain ") + act.name,
                    [&](const auto& v) { return feed_forward(v[0], v[1], v[2], v[3], v[4], act.value); },
                    {Shape{rows, 3}, Shape{width, 3}, Shape{width}, Shape{4, width}, Shape{4}});
    check_gradients(std::string("gated ") + act.name,
                    [&](const auto& v) { return gated_feed_forward(v[0], v[1], v[2], v[3], v[4], act.value); },
                    {Shape{rows, 3}, Shape{2 * width, 3}, Shape{2 * width}, Shape{4, width}, Shape{4}});
    check_gradients(std::string("gated without biases ") + act.name,
                    [&](const auto& v) { return gated_feed_forward(v[0], v[1], Var(), v[2], Var(), act.value); },
                    {Shape{rows, 3}, Shape{2 * width, 3}, Shape{4, width}});
  }
}

TEST_CASE("gradients of bags of embeddings match finite differences") {
  Bags bags;
  bags.ids = {4, 0, 4, 2};
  bags.close(real(0.7));
  bags.close(3);  // empty
  bags.ids.insert(bags.ids.end(), {2, 2});
  bags.close(-1);
  check_gradients("embedding_bag", [&](const auto& v) { return embedding_bag(v[0], bags); }, {Shape{rows, width}});
}

TEST_CASE("gradients of norms match finite differences") {
  const Shape x{rows, width}, row{width};
  check_gradients("layer_norm", [](const auto& v) { return layer_norm(v[0], v[1], v[2]); }, {x, row, row});
  check_gradients("layer_norm, bare", [](const auto& v) { return layer_norm(v[0]); }, {x});
  check_gradients("rms_norm", [](const auto& v) { return rms_norm(v[0], v[1]); }, {x, row});
  check_gradients("rms_norm, bare", [](const auto& v) { return rms_norm(v[0]); }, {x});
  check_gradients("scale_norm", [](const auto& v) { return scale_norm(v[0], v[1]); }, {x, Shape{}});
}

TEST_CASE("gradients of losses match finite differences") {
  const Ids targets(Shape{rows}, std::vector<int32_t>{3, -1, 18, 0, 7});
  for (const double smoothing : {0.0, 0.2}) {
    CrossEntropyOptions options;
    options.label_smoothing = smoothing;
    options.chunk_rows = 2;
    check_gradients("softmax_cross_entropy",
                    [&](const auto& v) { return softmax_cross_entropy(v[0], targets, options).sum; },
                    {Shape{rows, width}});
    check_gradients("linear_cross_entropy",
                    [&](const auto& v) { return linear_cross_entropy(v[0], v[1], v[2], targets, options).sum; },
                    {Shape{rows, 3}, Shape{width, 3}, Shape{width}});
    check_gradients("linear_cross_entropy without bias",
                    [&](const auto& v) { return linear_cross_entropy(v[0], v[1], Var(), targets, options).sum; },
                    {Shape{rows, 3}, Shape{width, 3}});
  }
  Ids labels = Ids::zeros({rows, width});
  for (int64_t i = 0; i < labels.size(); i += 3) labels.mutable_data()[i] = 1;
  for (const double smoothing : {0.0, 0.2}) {
    SigmoidCrossEntropyOptions of_labels;
    of_labels.label_smoothing = smoothing;
    of_labels.label_weights = Array(Shape{width}, real(1.5));
    check_gradients("sigmoid_cross_entropy",
                    [&](const auto& v) { return sigmoid_cross_entropy(v[0], labels, of_labels); },
                    {Shape{rows, width}});
  }
}

TEST_CASE("gradients of rotary match finite differences") {
  const Ids positions(Shape{2, 2}, std::vector<int32_t>{0, 9, 4, 1000});
  for (const auto& pairs : enum_names(RotaryPairs{}))
    check_gradients(pairs.name,
                    [&](const auto& v) {
                      return rotary(v[0], positions, {10000, pairs.value});
                    },
                    {Shape{2, 2, 3, 22}});
}
