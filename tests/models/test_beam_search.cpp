// Several texts at a time: copies of states, samples together, and the likeliest completions.
#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "models/generation/beam_search.hpp"
#include "models/generation/generate.hpp"
#include "tests/models/samples.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

constexpr double tolerance = sizeof(real) == 4 ? 1e-4 : 1e-10;

Built<LanguageModel> drawn(const MixerConfig& mixer, int64_t order = 0) {
  auto config = small<LanguageModelConfig>(mixer);
  config.positions = Positions::none;
  if (order > 0) {
    set_ngrams(config.ngram_embedding, {order}, 50, 3);
  }
  return redrawn(language_model(config));
}

/// ln p of `text` after `prompt`, and of the stop token after it.
double forced(const LanguageModel& model, const std::vector<int32_t>& prompt, const std::vector<int32_t>& text,
              int32_t stop) {
  DecodeState state = model.make_state(1);
  Array logits = model.prefill(Ids(Shape{1, static_cast<int64_t>(prompt.size())}, prompt), state);
  double sum = 0;
  for (const int32_t token : text) {
    sum += log_probability(logits, token);
    logits = model.step(Ids({1}, token), state);
  }
  return sum + log_probability(logits, stop);
}

TEST_CASE("decode states: sequences that are copied and dropped go on as on their own") {
  for (const MixerCase& c : mixer_cases()) {
    INFO(c.name);
    const auto built = drawn(c.config, 2);
    const int64_t length = 2 * window + 3;
    const Ids tokens = random_tokens({3, length}, 8);
    DecodeState state = built.model->make_state(3);
    built.model->prefill(tokens, state);
    const std::vector<int64_t> rows{2, 2, 0, 1, 2};
    state.select(rows);
    CHECK(state.batch() == 5);
    const Ids next = random_tokens({5}, 9), more = random_tokens({5}, 10);
    built.model->step(next, state);
    const Array together = built.model->step(more, state);
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      DecodeState alone = built.model->make_state(1);
      built.model->prefill(tokens.rows(rows[i], rows[i] + 1), alone);
      built.model->step(next.rows(at, at + 1), alone);
      CHECK(relative_error(together.rows(at, at + 1), built.model->step(more.rows(at, at + 1), alone), 1) <= tolerance);
    }
    state.select({3});
    CHECK(state.batch() == 1);
    CHECK_THROWS_AS(state.select({1}), std::invalid_argument);
    CHECK_THROWS_AS(state.select({}), std::invalid_argument);
  }
}

TEST_CASE("decode states: after a call that threw between layers, one is refused until it is reset") {
  for (const MixerCase& c : mixer_cases()) {
    INFO(c.name);
    const auto built = drawn(c.config, 2), other = drawn(c.config, 2);
    const Ids tokens = random_tokens({2, 5}, 8), next = random_tokens({2}, 9);
    DecodeState state = built.model->make_state(2), foreign = other.model->make_state(2);
    const Array first = built.model->prefill(tokens, state);
    const Array second = built.model->step(next, state);
    std::swap(state.layers.back(), foreign.layers.back());  // the last layer refuses it, after the others
    CHECK_THROWS_AS(built.model->step(next, state), std::invalid_argument);
    std::swap(state.layers.back(), foreign.layers.back());
    CHECK_THROWS_WITH_AS(built.model->step(next, state), doctest::Contains("reset() this state"), Error);
    CHECK_THROWS_AS(built.model->prefill(tokens, state), Error);
    CHECK_THROWS_AS(foreign.copy(0, state, 0), Error);
    state.reset();
    CHECK(built.model->prefill(tokens, state).to_vector() == first.to_vector());
    CHECK(built.model->step(next, state).to_vector() == second.to_vector());
  }
}

TEST_CASE("generate: several prompts together give what each gives alone") {
  for (const MixerCase& c : mixer_cases()) {
    INFO(c.name);
    const auto built = drawn(c.config);
    GenerateOptions options;
    options.max_tokens = 9;
    options.stop_token = 3;
    options.log_probabilities = true;
    options.banned = {0, 7};
    std::vector<Prompt> prompts;
    for (int64_t i = 0; i < 6; ++i)
      prompts.push_back({random_tokens({4}, static_cast<uint64_t>(20 + i / 2)).to_vector(), i % 3});
    const std::vector<Generated> together = generate_together(*built.model, prompts, options);
    for (size_t i = 0; i < prompts.size(); ++i) {
      const Generated alone = generate_together(*built.model, {prompts[i]}, options).front();
      CHECK(alone.tokens == together[i].tokens);
      CHECK(alone.end == together[i].end);
      CHECK(alone.log_probability == doctest::Approx(together[i].log_probability).epsilon(tolerance));
      for (const int32_t token : alone.tokens) CHECK((token != 0 && token != 7 && token != 3));
      if (alone.end == GenerateEnd::stop_token)
        CHECK(forced(*built.model, prompts[i].tokens, alone.tokens, 3) ==
              doctest::Approx(alone.log_probability).epsilon(tolerance));
    }
    GenerateOptions longer;
    longer.max_tokens = 20;
    const std::vector<Generated> samples = generate_together(*built.model, {{{1, 2}, 0}, {{1, 2}, 5}}, longer);
    CHECK(samples[0].tokens != samples[1].tokens);
    CHECK_THROWS_AS(generate_together(*built.model, {{{1, 2}, 0}, {{1}, 0}}, options), std::invalid_argument);
  }
}

/// All texts of up to `most` tokens that end with the stop token, and those of `most` after which something else is
/// likelier, with their log probabilities.
void enumerate(const LanguageModel& model, const std::vector<int32_t>& prompt, std::vector<int32_t>& text, double sum,
               int64_t most, const GenerateOptions& options, std::vector<Hypothesis>& all) {
  DecodeState state = model.make_state(1);
  std::vector<int32_t> read = prompt;
  read.insert(read.end(), text.begin(), text.end());
  const Array logits = model.prefill(Ids(Shape{1, static_cast<int64_t>(read.size())}, read), state);
  const auto length = static_cast<double>(text.size() + 1);
  const auto banned = [&](int32_t token) {
    return std::find(options.banned.begin(), options.banned.end(), token) != options.banned.end();
  };
  if (static_cast<int64_t>(text.size()) == most) {
    int32_t likeliest = *options.stop_token;
    for (int32_t token = 0; token < vocabulary; ++token)
      if (!banned(token) && logits[token] > logits[likeliest]) likeliest = token;
    const bool stop = likeliest == options.stop_token;
    const double end = sum + (stop ? log_probability(logits, likeliest) : 0);
    all.push_back({text, end, end / std::pow(stop ? length : length - 1, options.length_penalty), stop});
    return;
  }
  for (int32_t token = 0; token < vocabulary; ++token) {
    if (banned(token)) continue;
    const double next = sum + log_probability(logits, token);
    const bool stop = token == options.stop_token;
    if (!stop) text.push_back(token);
    if (stop)
      all.push_back({text, next, next / std::pow(length, options.length_penalty), stop});
    else
      enumerate(model, prompt, text, next, most, options, all);
    if (!stop) text.pop_back();
  }
}

TEST_CASE("beam search: wide enough, it finds the best of all texts") {
  const auto built = drawn(any_mixer());
  for (const double penalty : {0.0, 1.0, -0.5}) {
    GenerateOptions options;
    options.beam = 200;
    options.max_tokens = 3;
    options.stop_token = 4;
    options.banned = {1, 2, 3, 9, 10, 11, 12};
    options.length_penalty = penalty;
    std::vector<Hypothesis> all;
    std::vector<int32_t> text;
    enumerate(*built.model, {5, 6}, text, 0, 3, options, all);
    std::sort(all.begin(), all.end(), [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
    const std::vector<Hypothesis> found = beam_search(*built.model, {5, 6}, options);
    REQUIRE(found.size() == std::min<size_t>(200, all.size()));
    for (size_t i = 0; i < found.size(); ++i) {
      CHECK(found[i].score == doctest::Approx(all[i].score).epsilon(tolerance));
      CHECK(found[i].log_probability == doctest::Approx(all[i].log_probability).epsilon(tolerance));
    }
    CHECK(found[0].tokens == all[0].tokens);
    CHECK(found[0].finished == all[0].finished);
  }
}

TEST_CASE("beam search: never less likely than greedy decoding, and its log probabilities are the model's") {
  int better = 0;
  for (const MixerCase& c : mixer_cases()) {
    INFO(c.name);
    const auto built = drawn(c.config, 2);
    for (uint64_t seed = 0; seed < 8; ++seed) {
      const std::vector<int32_t> prompt = random_tokens({5}, seed).to_vector();
      GenerateOptions options;
      options.max_tokens = 12;
      options.stop_token = 2;
      GenerateOptions greedy;
      greedy.sampling.temperature = 0;
      greedy.max_tokens = 12;
      greedy.stop_token = 2;
      greedy.log_probabilities = true;
      const double likeliest = generate(*built.model, prompt, greedy).log_probability;
      for (const int64_t width : {1, 2, 4}) {
        options.beam = width;
        const std::vector<Hypothesis> found = beam_search(*built.model, prompt, options);
        REQUIRE(!found.empty());
        CHECK(static_cast<int64_t>(found.size()) <= width);
        CHECK(found[0].log_probability >= likeliest - tolerance * std::abs(likeliest));
        better += found[0].log_probability > likeliest + 1e-3 ? 1 : 0;
        for (size_t i = 0; i < found.size(); ++i) {
          if (i > 0) CHECK(found[i - 1].score >= found[i].score);
          if (found[i].finished)
            CHECK(forced(*built.model, prompt, found[i].tokens, 2) ==
                  doctest::Approx(found[i].log_probability).epsilon(tolerance));
        }
      }
    }
  }
  CHECK(better > 20);
}

TEST_CASE("beam search: limits and misuse") {
  const auto full = mixer_called("aft-full");
  if (!full) return;
  auto config = small<LanguageModelConfig>(*full);
  config.max_length = 6;
  const auto built = redrawn(language_model(config));
  GenerateOptions options;
  options.beam = 4;
  options.max_tokens = 50;
  options.stop_token = 0;
  options.banned = {0};  // it would never end by itself
  for (const Hypothesis& text : beam_search(*built.model, {1, 2}, options)) {
    CHECK(text.tokens.size() == 5);  // the last of the 6 positions reads the fourth
    CHECK(!text.finished);
  }
  CHECK_THROWS_AS(beam_search(*built.model, {}, options), Error);
  options.beam = 0;
  CHECK_THROWS_AS(beam_search(*built.model, {1}, options), std::invalid_argument);
}

TEST_CASE("sampling: min-p and banned tokens") {
  const std::vector<real> logits{real(std::log(0.5)), real(std::log(0.3)), real(std::log(0.15)), real(std::log(0.05))};
  const auto drawn_tokens = [&](const SamplingConfig& config, const std::vector<int32_t>& banned) {
    Sampler sampler(config, 4, banned);
    std::vector<int> counts(4, 0);
    for (int i = 0; i < 4000; ++i) ++counts[static_cast<size_t>(sampler.choose(Array({4}, logits)))];
    return counts;
  };
  SamplingConfig config;
  config.min_p = 0.31;  // of 0.5
  CHECK(drawn_tokens(config, {})[2] == 0);
  CHECK(drawn_tokens(config, {})[1] / 4000.0 == doctest::Approx(0.375).epsilon(0.1));
  config.min_p = 0.29;
  CHECK(drawn_tokens(config, {})[2] > 400);
  CHECK(drawn_tokens(config, {})[3] == 0);
  config.min_p = 1;
  CHECK(drawn_tokens(config, {})[0] == 4000);
  CHECK(drawn_tokens({}, {0})[0] == 0);
  CHECK(drawn_tokens({}, {0})[1] / 4000.0 == doctest::Approx(0.6).epsilon(0.1));
  config.temperature = 0;
  CHECK(drawn_tokens(config, {0, 1})[2] == 4000);
  CHECK_THROWS_AS(Sampler({}, 4, {4}), std::invalid_argument);
  CHECK_THROWS_AS(Sampler({}, 2, {0, 1}), std::invalid_argument);
  config.min_p = 1.5;
  CHECK_THROWS_AS(Sampler(config, 4), std::invalid_argument);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
