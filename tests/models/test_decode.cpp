// Decoding gives what forward gives.
#include <algorithm>

#include "core/error.hpp"
#include "tests/models/samples.hpp"

CAPSTAN_BEGIN
namespace testing {
namespace {

/// The largest difference between forward's logits at t and those decoded by prefill(k) and steps.
double decode_error(const LanguageModel& model, int64_t prefilled, DecodeState& state) {
  const int64_t batch = state.batch, length = 3 * window + 2;
  const Ids tokens = random_tokens({batch, length}, 5);
  const Array expected = model.logits(tokens, Context::evaluation(batch, length)).value();
  const auto columns = [&](int64_t begin, int64_t end) {
    Ids part({batch, end - begin});
    for (int64_t row = 0; row < batch; ++row)
      for (int64_t t = begin; t < end; ++t)
        part.mutable_data()[row * (end - begin) + t - begin] = tokens[row * length + t];
    return part;
  };
  double worst = 0, largest = 1;
  const auto compare = [&](const Array& logits, int64_t t) {
    for (int64_t row = 0; row < batch; ++row) {
      for (int64_t v = 0; v < vocabulary; ++v) {
        const double wanted = expected[(row * length + t) * vocabulary + v];
        worst = std::max(worst, std::abs(wanted - static_cast<double>(logits[row * vocabulary + v])));
        largest = std::max(largest, std::abs(wanted));
      }
    }
  };
  state.reset();
  if (prefilled > 0) compare(model.prefill(columns(0, prefilled), state), prefilled - 1);
  for (int64_t t = prefilled; t < length; ++t) compare(model.step(columns(t, t + 1).reshape({batch}), state), t);
  CHECK(state.position == length);
  return worst / largest;
}

void check_decode(const std::string& name, const LanguageModel& model) {
  DecodeState state = model.make_state(2);
  for (const int64_t prefilled : {int64_t{0}, int64_t{1}, window - 1, window, window + 1, 2 * window + 1}) {
    INFO(name << ", prefill of " << prefilled);
    CHECK(decode_error(model, prefilled, state) <= (sizeof(real) == 4 ? 1e-4 : 1e-11));
  }
}

TEST_CASE("decode equals forward") {
  for (const MixerCase& c : mixer_cases()) {
    for (const Positions positions : {Positions::learned, Positions::sinusoidal}) {
      auto config = small<LanguageModelConfig>(c.config);
      config.positions = positions;
      const auto built = language_model(config);
      redraw(*built.store);
      built.store->finalize();
      check_decode(c.name, *built.model);
    }
  }
}

TEST_CASE("decode equals forward after some training, pre- and post-norm") {
  for (const NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
    for (const MixerCase& c : mixer_cases()) {
      auto config = small<LanguageModelConfig>(c.config);
      config.layers[0].norm_placement = placement;
      const auto built = language_model(config);
      built.store->finalize();
      const Batch batch = next_token_batch(ragged(20), 4);
      for (int step = 0; step < 5; ++step) descend(*built.model, *built.store, batch, 0.3);
      check_decode(c.name + " trained", *built.model);
    }
  }
}

/// The same of one block, on states of sigma 1.
double block_decode_error(const Block& block, int64_t prefilled) {
  const int64_t batch = 2, length = 3 * window + 2;
  const Array x = normal_array({batch, length, width}, 9, 1);
  const auto columns = [&](const Array& from, int64_t begin, int64_t end) {
    Array part({batch, end - begin, width});
    for (int64_t row = 0; row < batch; ++row)
      std::copy_n(from.data() + (row * length + begin) * width, (end - begin) * width,
                  part.mutable_data() + row * (end - begin) * width);
    return part;
  };
  const Array expected = block.forward(Var(x), Context::evaluation(batch, length)).value();
  const auto state = block.make_state(batch);
  double worst =
      relative_error(block.prefill(Var(columns(x, 0, prefilled)), *state).value(), columns(expected, 0, prefilled), 1);
  for (int64_t t = prefilled; t < length; ++t) {
    const Array y = block.step(Var(columns(x, t, t + 1).reshape({batch, width})), *state).value();
    worst = std::max(worst, relative_error(y, columns(expected, t, t + 1).reshape({batch, width}), 1));
  }
  return worst;
}

TEST_CASE("a block decodes as it reads, at sigma 0.5 and after some training") {
  for (const bool trained : {false, true}) {
    for (const MixerCase& c : mixer_cases()) {
      const auto built = language_model(small<LanguageModelConfig>(c.config));
      if (!trained) redraw(*built.store);
      built.store->finalize();
      const Batch batch = next_token_batch(ragged(20), 4);
      for (int step = 0; trained && step < 5; ++step) descend(*built.model, *built.store, batch, 0.3);
      for (const int64_t prefilled : {int64_t{0}, int64_t{1}, window - 1, window, window + 1}) {
        INFO(c.name << (trained ? std::string(", trained") : std::string()) << ", prefill of " << prefilled);
        for (const Block& block : built.model->stack().blocks())
          CHECK(block_decode_error(block, prefilled) <= (sizeof(real) == 4 ? 1e-5 : 1e-11));
      }
    }
  }
}

TEST_CASE("a model refuses what it cannot decode") {
  const auto built = language_model(small<LanguageModelConfig>(AftFullConfig{}));
  built.store->finalize();
  DecodeState state = built.model->make_state(1);
  CHECK(built.model->position_limit() == longest);
  built.model->prefill(random_tokens({1, longest}, 1), state);
  CHECK_THROWS_AS(built.model->step(Ids({1}, 0), state), Error);
  CHECK_THROWS_AS(built.model->prefill(random_tokens({1, 2}, 1), state), std::invalid_argument);
  state.reset();
  CHECK_THROWS_AS(built.model->prefill(random_tokens({1, longest + 1}, 1), state), Error);
  CHECK_THROWS_AS(built.model->prefill(random_tokens({2, 2}, 1), state), std::invalid_argument);
  CHECK_THROWS_AS(built.model->prefill(Ids(Shape{1, 0}), state), std::invalid_argument);
  CHECK_THROWS_AS(built.model->make_state(0), std::invalid_argument);
  CHECK_THROWS_AS(built.model->logits(random_tokens({1, longest + 1}, 1), Context::evaluation(1, longest + 1)), Error);

  const auto labels = classifier(small<TextClassifierConfig>(AftSimpleConfig{}));
  CHECK_THROWS_AS(labels.model->stack().make_state(1), std::logic_error);
}

}  // namespace
}  // namespace testing
CAPSTAN_END
