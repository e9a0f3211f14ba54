// Choosing tokens and running past the window.
#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "models/generation/generate.hpp"
#include "tests/models/samples.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

Built<LanguageModel> redrawn(const MixerConfig& mixer, Positions positions, int64_t max_length = longest) {
  auto config = small<LanguageModelConfig>(mixer);
  config.positions = positions;
  config.max_length = max_length;
  return redrawn(language_model(config));
}

/// The likeliest token after these.
int32_t likeliest_after(const LanguageModel& model, const std::vector<int32_t>& text) {
  const int64_t length = static_cast<int64_t>(text.size());
  const Array logits = model.logits(Ids({1, length}, text), Context::evaluation(1, length)).value();
  const real* const last = logits.data() + (length - 1) * vocabulary;
  return static_cast<int32_t>(std::max_element(last, last + vocabulary) - last);
}

std::vector<int> draws(const SamplingConfig& config, const std::vector<real>& logits, int count,
                       const std::vector<int32_t>& seen = {}) {
  const int64_t size = static_cast<int64_t>(logits.size());
  Sampler sampler(config, size);
  for (const int32_t token : seen) sampler.see(token);
  std::vector<int> counts(logits.size(), 0);
  for (int i = 0; i < count; ++i) ++counts[static_cast<size_t>(sampler.choose(Array({size}, logits)))];
  return counts;
}

TEST_CASE("sampling follows the softmax of the logits over the temperature") {
  const std::vector<real> logits{real(std::log(0.1)), real(std::log(0.6)), real(std::log(0.3))};
  SamplingConfig config;
  const auto counts = draws(config, logits, 20000);
  for (size_t i = 0; i < 3; ++i) CHECK(counts[i] / 20000.0 == doctest::Approx(std::exp(logits[i])).epsilon(0.05));
  config.temperature = 0.5;  // squares the probabilities: 0.01, 0.36, 0.09 of 0.46
  const auto sharper = draws(config, logits, 20000);
  CHECK(sharper[1] / 20000.0 == doctest::Approx(0.36 / 0.46).epsilon(0.05));
  config.temperature = 0;
  CHECK(draws(config, logits, 10) == std::vector<int>{0, 10, 0});
  config.temperature = 1e-300;
  CHECK(draws(config, logits, 10) == std::vector<int>{0, 10, 0});
}

TEST_CASE("top-k and top-p keep the likeliest tokens") {
  const std::vector<real> logits{real(std::log(0.1)), real(std::log(0.5)), real(std::log(0.15)), real(std::log(0.25))};
  struct Case {
    int64_t top_k;
    double top_p;
    std::vector<bool> kept;
  };
  for (const Case& c : {Case{0, 1, {true, true, true, true}}, Case{1, 1, {false, true, false, false}},
                        Case{2, 1, {false, true, false, true}}, Case{9, 1, {true, true, true, true}},
                        Case{0, 0, {false, true, false, false}}, Case{0, 0.49, {false, true, false, false}},
                        Case{0, 0.51, {false, true, false, true}}, Case{0, 0.74, {false, true, false, true}},
                        Case{0, 0.76, {false, true, true, true}},
                        Case{2, 0.6, {false, true, false, false}}}) {  // 0.5 of the 0.75 that top-k left is 0.67
    SamplingConfig config;
    config.top_k = c.top_k;
    config.top_p = c.top_p;
    const auto counts = draws(config, logits, 3000);
    for (size_t i = 0; i < 4; ++i)
      CHECK_MESSAGE((counts[i] > 0) == c.kept[i], "top_k ", c.top_k, ", top_p ", c.top_p, ", token ", i);
  }
  SamplingConfig greedy;
  greedy.top_k = 1;
  CHECK(draws(greedy, {1, 2, 2}, 10) == std::vector<int>{0, 10, 0});  // the first of equals
}

TEST_CASE("top-k, then top-p of what it left, then min-p of what both left: as worked by hand") {
  struct Case {
    std::vector<double> p;
    SamplingConfig config;  // temperature, top_k, top_p, repetition penalty, seed, min_p
    std::vector<double> expected;
  };
  const std::vector<double> five{0.5, 0.2, 0.1, 0.1, 0.1}, four{0.4, 0.3, 0.2, 0.1};
  for (const Case& c : {Case{five, {1, 0, 0.7, 1, 1, 0.3}, {5.0 / 7, 2.0 / 7, 0, 0, 0}},
                        // top-p needs three (0.8 of 1), min-p takes the third, 0.2 of the first
                        Case{five, {1, 0, 0.75, 1, 1, 0.25}, {5.0 / 7, 2.0 / 7, 0, 0, 0}},
                        // top-k leaves 4/9, 3/9, 2/9: 7/9 > 0.75 with two, which in the whole have 0.7
                        Case{four, {1, 3, 0.75, 1, 1, 0}, {4.0 / 7, 3.0 / 7, 0, 0}},
                        Case{four, {1, 3, 0.8, 1, 1, 0.45}, {4.0 / 9, 3.0 / 9, 2.0 / 9, 0}},
                        Case{four, {1, 3, 0.8, 1, 1, 0.55}, {4.0 / 7, 3.0 / 7, 0, 0}},
                        // the temperature comes first: 16, 9, 4, 1 of 30
                        Case{four, {0.5, 0, 0.9, 1, 1, 0.2}, {16.0 / 29, 9.0 / 29, 4.0 / 29, 0}},
                        Case{four, {0.5, 0, 0.9, 1, 1, 0.3}, {16.0 / 25, 9.0 / 25, 0, 0}},
                        Case{four, {1, 0, 1, 1, 1, 1}, {1, 0, 0, 0}}}) {
    std::vector<real> logits;
    for (const double p : c.p) logits.push_back(real(std::log(p)));
    const auto counts = draws(c.config, logits, 20000);
    for (size_t i = 0; i < c.p.size(); ++i) {
      INFO("top_k ", c.config.top_k, ", top_p ", c.config.top_p, ", min_p ", c.config.min_p, ", token ", i);
      CHECK((counts[i] > 0) == (c.expected[i] > 0));
      CHECK(counts[i] / 20000.0 == doctest::Approx(c.expected[i]).epsilon(0.05));
    }
  }
}

TEST_CASE("tokens seen are made less likely, whatever the sign of their logit") {
  SamplingConfig config;
  config.temperature = 0;
  config.repetition_penalty = 2;
  CHECK(draws(config, {3, 2, 1}, 1, {0}) == std::vector<int>{0, 1, 0});
  CHECK(draws(config, {-1, real(-1.5), -3}, 1, {0}) == std::vector<int>{0, 1, 0});
  CHECK(draws(config, {5, 2, 1}, 1, {0}) == std::vector<int>{1, 0, 0});
}

TEST_CASE("penalties of frequency and presence count what was written, not the prompt; biases are added") {
  SamplingConfig config;
  config.temperature = 0;
  const auto chosen = [&](int written, int32_t seen = 1) {
    Sampler sampler(config, 3);
    sampler.see(seen);
    for (int i = 0; i < written; ++i) sampler.write(0);
    return sampler.choose(Array(Shape{3}, std::vector<real>{2, 1, 0}));
  };
  config.frequency_penalty = 0.4;  // 2 - 0.4 n, beside 1
  CHECK(chosen(2, 0) == 0);
  CHECK(chosen(3, 0) == 1);
  config.frequency_penalty = 0;
  config.presence_penalty = 0.9;
  CHECK(chosen(9) == 0);
  config.presence_penalty = 1.1;
  CHECK(chosen(0, 0) == 0);
  CHECK(chosen(1) == 1);
  config.logit_bias = {{2, 2.5}};
  CHECK(chosen(0) == 2);
  config.logit_bias = {{0, -100}};
  CHECK(chosen(0) == 1);
  config.logit_bias = {{3, 1}};
  CHECK_THROWS_AS(chosen(0), ConfigError);
}

TEST_CASE("draws are a function of the seed and the stream, which is 0 where none is given") {
  const auto drawn = [](Sampler sampler) {
    std::vector<int32_t> tokens;
    for (int i = 0; i < 50; ++i) tokens.push_back(sampler.choose(Array(Shape{4}, real{0})));
    return tokens;
  };
  const SamplingConfig config;
  SamplingConfig other;
  other.seed = 2;
  const std::vector<int32_t> first = drawn(Sampler(config, 4));
  CHECK(drawn(Sampler(config, 4, {}, 0)) == first);
  CHECK(drawn(Sampler(config, 4, {}, 1)) != first);
  CHECK(drawn(Sampler(other, 4)) != first);
}

TEST_CASE("bad logits and settings are refused") {
  SamplingConfig config;
  CHECK_THROWS_AS(draws(config, {0, real(NAN)}, 1), Error);
  CHECK_THROWS_AS(draws(config, {0, real(INFINITY)}, 1), Error);
  config.temperature = 0;
  CHECK_THROWS_AS(draws(config, {real(NAN), 0}, 1), Error);
  for (const SamplingConfig& bad : {SamplingConfig{-1}, SamplingConfig{NAN}, SamplingConfig{1, -1},
                                    SamplingConfig{1, 0, 1.5}, SamplingConfig{1, 0, 1, 0}})
    CHECK_THROWS_AS(Sampler(bad, 3), std::invalid_argument);

  const auto built = redrawn(any_mixer(), Positions::none);
  CHECK_THROWS_AS(generate(*built.model, {}), Error);
  CHECK_THROWS_AS(generate(*built.model, {1, vocabulary}), Error);
  CHECK_THROWS_AS(generate(*built.model, {-1}), Error);
}

TEST_CASE("greedy text is what forward finds likeliest; a seed fixes sampled text") {
  const auto built = redrawn(any_mixer(), Positions::learned);
  GenerateOptions options;
  options.max_tokens = 15;
  options.sampling.temperature = 0;
  std::vector<int32_t> text{1, 2, 3};
  const Generated greedy = generate(*built.model, text, options);
  CHECK(greedy.tokens.size() == 15);
  CHECK(greedy.end == GenerateEnd::max_tokens);
  for (const int32_t token : greedy.tokens) {
    CHECK(token == likeliest_after(*built.model, text));
    text.push_back(token);
  }
  CHECK(generate(*built.model, {1, 2, 3}, options).tokens == greedy.tokens);
  options.sampling.temperature = 1;
  const auto sampled = generate(*built.model, {1, 2, 3}, options).tokens;
  CHECK(generate(*built.model, {1, 2, 3}, options).tokens == sampled);
  options.sampling.seed = 2;
  CHECK(generate(*built.model, {1, 2, 3}, options).tokens != sampled);
}

TEST_CASE("a stop token, a callback and the number of tokens end a text") {
  const auto built = redrawn(any_mixer(), Positions::none);
  GenerateOptions options;
  options.max_tokens = 10;
  std::vector<int32_t> streamed;
  options.on_token = [&](int64_t, int32_t token) {
    streamed.push_back(token);
    return true;
  };
  const auto all = generate(*built.model, {1}, options).tokens;
  CHECK(streamed == all);
  options.stop_token = all[4];
  const Generated stopped = generate(*built.model, {1}, options);
  CHECK(stopped.end == GenerateEnd::stop_token);
  const auto first = std::find(all.begin(), all.end(), all[4]);
  CHECK(stopped.tokens == std::vector<int32_t>(all.begin(), first));
  options.stop_token.reset();
  streamed.clear();
  options.on_token = [&](int64_t, int32_t token) {
    streamed.push_back(token);
    return streamed.size() < 3;
  };
  const Generated cut = generate(*built.model, {1}, options);
  CHECK(cut.end == GenerateEnd::callback);
  CHECK(cut.tokens == std::vector<int32_t>(all.begin(), all.begin() + 3));
  options.max_tokens = 0;
  CHECK(generate(*built.model, {1}, options).tokens.empty());
}

TEST_CASE("past its window a model goes on with half of it, the new token included, or stops") {
  const auto full = mixer_called("aft-full");
  if (!full) return;
  for (const int64_t limit : {1, 2, 7, 8}) {
    INFO("limit " << limit);
    const auto built = redrawn(*full, Positions::none, limit);
    GenerateOptions options;
    options.max_tokens = 3 * limit + 2;
    options.sampling.temperature = 0;
    int told = 0;
    options.on_slide = [&] { ++told; };
    const Generated slid = generate(*built.model, {1}, options);
    CHECK(static_cast<int64_t>(slid.tokens.size()) == options.max_tokens);
    CHECK(slid.slid);
    CHECK(told == 1);
    // The same by hand: when `limit` tokens have been read, the next read starts over from limit / 2 tokens,
    // of which the last is the new one.
    std::vector<int32_t> window{1};
    for (const int32_t token : slid.tokens) {
      CHECK(token == likeliest_after(*built.model, window));
      window.push_back(token);
      if (static_cast<int64_t>(window.size()) > limit)
        window.erase(window.begin(), window.end() - std::max<int64_t>(1, limit / 2));
    }
    options.slide = false;
    const Generated stopped = generate(*built.model, {1}, options);
    CHECK(stopped.end == GenerateEnd::window);
    CHECK(static_cast<int64_t>(stopped.tokens.size()) == limit);
    const std::vector<int32_t> long_prompt(static_cast<size_t>(limit) + 1, 1);
    CHECK_THROWS_AS(generate(*built.model, long_prompt, options), Error);
    options.slide = true;
    CHECK(generate(*built.model, long_prompt, options).slid);
  }
}

TEST_CASE("a model without positions goes on past max_length") {
  for (const MixerCase& c : mixer_cases()) {
    if (!c.any_length) continue;
    INFO(c.name);
    for (const Positions positions : {Positions::none, Positions::sinusoidal}) {
      const auto built = redrawn(c.config, positions, 4);
      CHECK(!built.model->position_limit());
      GenerateOptions options;
      options.max_tokens = 20;
      const Generated text = generate(*built.model, {1, 2}, options);
      CHECK(text.tokens.size() == 20);
      CHECK(!text.slid);
    }
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
