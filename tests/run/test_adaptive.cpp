// Evaluation that learns: a cache against its definition, and weights that move after a text was scored.
#include <doctest/doctest.h>

#include <cmath>

#include "run/predictions/adapted.hpp"
#include "tests/train/support.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

/// Unit vectors at these angles, in degrees.
Array at_angles(const std::vector<double>& degrees) {
  Array states(Shape{static_cast<int64_t>(degrees.size()), 2});
  for (size_t i = 0; i < degrees.size(); ++i) {
    const double angle = degrees[i] * std::acos(-1.0) / 180, length = 1 + static_cast<double>(i);
    states.mutable_data()[2 * i] = static_cast<real>(length * std::cos(angle));
    states.mutable_data()[2 * i + 1] = static_cast<real>(length * std::sin(angle));
  }
  return states;
}

Ids ids(const std::vector<int32_t>& values) { return Ids(Shape{static_cast<int64_t>(values.size())}, values); }

/// What the cache should say of token `at`, from the last `size` tokens before it.
double expected(const std::vector<double>& degrees, const std::vector<int32_t>& labels, size_t at, size_t size,
                double sharpness) {
  double of_label = 0, all = 0;
  for (size_t i = at > size ? at - size : 0; i < at; ++i) {
    const double vote = std::exp(sharpness * std::cos((degrees[at] - degrees[i]) * std::acos(-1.0) / 180));
    all += vote;
    if (labels[i] == labels[at]) of_label += vote;
  }
  return all > 0 ? of_label / all : 0;
}

}  // namespace

TEST_CASE("a cache gives the tokens that followed like states their share, from the past alone, in whatever pieces") {
  const std::vector<double> degrees{0, 10, 90, 5, 95, 12, 200, 3};
  const std::vector<int32_t> labels{4, 4, 7, 4, 7, 5, 4, 4};
  const std::vector<CacheRule> rules{{3, 0.1}, {20, 0.1}};
  for (const size_t size : {size_t{3}, size_t{5}, size_t{100}})
    for (const size_t piece : {size_t{1}, size_t{3}, size_t{8}}) {
      CAPTURE(size);
      CAPTURE(piece);
      ContinuousCache cache(static_cast<int64_t>(size), 2);
      const Array states = at_angles(degrees);
      for (size_t begin = 0; begin < degrees.size(); begin += piece) {
        const size_t end = std::min(begin + piece, degrees.size());
        Array part(Shape{static_cast<int64_t>(end - begin), 2});
        std::copy(states.data() + 2 * begin, states.data() + 2 * end, part.mutable_data());
        const auto found = cache.score(
            part, ids({labels.begin() + static_cast<int64_t>(begin), labels.begin() + static_cast<int64_t>(end)}),
            rules);
        for (size_t r = 0; r < rules.size(); ++r)
          for (size_t i = begin; i < end; ++i)
            CHECK(found[r][i - begin] ==
                  doctest::Approx(expected(degrees, labels, i, size, rules[r].sharpness)).epsilon(1e-4));
      }
    }
}

TEST_CASE("dynamic evaluation returns the loss from before a text is learned, and decay leads back") {
  ParamStore params;
  const LookupTask task(params, 11, false);
  DrawnBatches batches;
  AdaptOptions options;
  options.rate = 1e-3;
  options.decay = 0;
  const std::vector<real> start(params.values(), params.values() + params.flat_size());
  const auto distance = [&] {
    double sum = 0;
    for (size_t i = 0; i < start.size(); ++i) sum += std::abs(static_cast<double>(params.values()[i] - start[i]));
    return sum;
  };
  const auto loss_now = [&](const Batch& text) {
    return static_cast<double>(task.loss(text, Context{Segments(text.segment_ids)}).sum.value().item());
  };
  const Batch text = rows_of(batches.batch(0, 1), 2, 3);
  DynamicEvaluation dynamic(task, params, batches, options, {});
  CHECK(distance() == 0);  // the statistics change nothing
  double last = INFINITY;
  for (int round = 0; round < 20; ++round) {
    const double before = loss_now(text), returned = dynamic.learn(text);
    CHECK(returned == doctest::Approx(before).epsilon(1e-6));
    CHECK(returned < last);
    last = returned;
  }
  const double learned = distance();
  CHECK(learned > 0);

  options.rate = 1e-30;
  options.decay = 0.2;
  std::copy(start.begin(), start.end(), params.values());
  DynamicEvaluation back(task, params, batches, options, {});
  const Param& bias = params.find("bias");
  params.values()[bias.offset] += real{1};
  for (int round = 0; round < 20; ++round) back.learn(text);
  CHECK(distance() < 0.1);
}
