// Decoding gives what forward gives.
#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
#include "nn/layers/feed_forward.hpp"
#include "tests/models/samples.hpp"
#include "tests/support/arrays.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

/// The largest difference between forward's logits at t and those decoded by prefill(k) and steps.
double decode_error(const LanguageModel& model, int64_t prefilled, DecodeState& state) {
  const int64_t batch = state.batch(), length = 3 * window + 2;
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
  CHECK(state.positions == std::vector<int64_t>(static_cast<size_t>(batch), length));
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
    for (const Positions positions : {Positions::learned, Positions::sinusoidal, Positions::scaled_sinusoidal}) {
      auto config = small<LanguageModelConfig>(c.config);
      config.positions = positions;
      const auto built = redrawn(language_model(config));
      check_decode(c.name, *built.model);
    }
  }
}

TEST_CASE("decode equals forward with every feed-forward network") {
  for (const auto& kind : enum_names(FeedForwardKind{})) {
    auto config = small<LanguageModelConfig>(mixer_cases().front().config);
    for (auto& layer : config.layers) layer.feed_forward.type = kind.value;
    const auto built = redrawn(language_model(config));
    check_decode(kind.name, *built.model);
  }
}

TEST_CASE("decode equals forward with n-grams in the embedding, past a prompt shorter than they are") {
  for (const MixerCase& c : mixer_cases()) {
    auto config = small<LanguageModelConfig>(c.config);
    set_ngrams(config.ngram_embedding, {1, 3, 4}, 50, 4);
    for (const bool every_block : {false, true}) {
      config.ngram_embedding.every_block = every_block;
      const auto built = redrawn(language_model(config));
      check_decode(c.name + (every_block ? " with n-grams in every block" : " with n-grams"), *built.model);
    }
    config.layers.clear();
    const auto bag = redrawn(language_model(config));
    check_decode("n-grams without layers", *bag.model);
  }
}

TEST_CASE("decode equals forward with short convolutions in front of the mixers") {
  for (const MixerCase& c : mixer_cases()) {
    auto config = small<LanguageModelConfig>(c.config);
    for (LayerConfig& layer : config.layers) layer.short_conv = 4;
    const auto built = redrawn(language_model(config));
    check_decode(c.name + " with short convolutions", *built.model);
  }
}

TEST_CASE("decode equals forward after some training, pre- and post-norm") {
  for (const NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
    for (const MixerCase& c : mixer_cases()) {
      auto config = small<LanguageModelConfig>(c.config);
      config.layers[0].norm_placement = placement;
      const auto built = finalized(language_model(config));
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

/// Logits of every step through random tokens, (T, V), without a prompt.
Array stepped(const LanguageModel& model, DecodeWeights weights) {
  DecodeState state = model.make_state(1, weights);
  const int64_t length = 3 * window + 2;
  const Ids tokens = random_tokens({length}, 5);
  Array logits(Shape{length, vocabulary});
  for (int64_t t = 0; t < length; ++t)
    std::copy_n(model.step(tokens.rows(t, t + 1), state).data(), vocabulary, logits.mutable_data() + t * vocabulary);
  return logits;
}

/// The number of 8 significant bits that is nearest to x as a float, ties to even.
real rounded(real x) {
  int exponent = 0;
  const double fraction = std::frexp(static_cast<double>(static_cast<float>(x)), &exponent);
  return static_cast<real>(std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8));
}

/// Is this a matrix that steps multiply by? The few numbers of Fastformer's logits and of positions are not.
bool is_packed(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  return has(".weight") && !has("logits") && !has("positions") && !has("embed");
}

TEST_CASE("decoding with bf16 weights is decoding with rounded weights, and close to that with float32 weights") {
  for (const bool trained : {false, true}) {
    for (const MixerCase& c : mixer_cases()) {
      for (const FeedForwardKind feed_forward : {FeedForwardKind::gelu, FeedForwardKind::swiglu}) {
        auto config = small<LanguageModelConfig>(c.config);
        config.tied_output = false;  // the embedding's rows are not rounded
        config.layers[0].feed_forward.type = feed_forward;
        const auto built = language_model(config);
        if (!trained) redraw(*built.store);
        built.store->finalize();
        if (!built.model->stack().forward_only_mixers().empty()) continue;  // it decodes with float weights
        const Batch batch = next_token_batch(ragged(20), 4);
        for (int step = 0; trained && step < 5; ++step) descend(*built.model, *built.store, batch, 0.3);
        INFO(c.name << (trained ? std::string(", trained") : std::string()));
        const Array exact = stepped(*built.model, DecodeWeights::float32),
                    bf16 = stepped(*built.model, DecodeWeights::bf16);
        const double difference = relative_error(bf16, exact, 1);
        CHECK(difference <= (trained ? 0.02 : 0.1));
        CHECK(difference >= 1e-5);
        for (const Param& param : built.store->params()) {
          if (!is_packed(param.name)) continue;
          real* const values = built.store->values() + param.offset;
          std::transform(values, values + param.var.size(), values, rounded);
        }
        CHECK(relative_error(bf16, stepped(*built.model, DecodeWeights::float32), 1) <=
              (sizeof(real) == 4 ? 1e-4 : 1e-11));
      }
    }
  }
}

TEST_CASE("decoding gives the same bits with one thread and with two") {
  for (const MixerCase& c : mixer_cases()) {
    auto config = small<LanguageModelConfig>(c.config);
    config.width = 260;  // wide enough to be shared
    const auto built = finalized(language_model(config));
    for (const auto& weights : enum_names(DecodeWeights{})) {
      set_threads(1);
      const Array one = stepped(*built.model, weights.value);
      set_threads(2);
      CHECK_MESSAGE(stepped(*built.model, weights.value).to_vector() == one.to_vector(), c.name, ", ", weights.name);
    }
  }
  set_threads(0);
}

/// The largest difference between the logits after each of random pieces, some read by steps, and forward's.
double error_in_pieces(const LanguageModel& model, const Context& context, int64_t first, uint64_t seed) {
  const int64_t batch = context.segments.batch(), length = context.segments.length();
  const Ids tokens = random_tokens({batch, length}, 5);
  const Array expected = model.logits(tokens, context).value();
  DecodeState state = model.make_state(batch);
  RandomStream random(random_key(seed, "pieces"));
  const auto drawn = [&](int64_t bound) { return static_cast<int64_t>(random.below(static_cast<uint64_t>(bound))); };
  double worst = 0;
  for (int64_t begin = 0, count = first; begin < length; begin += count, count = 1 + drawn(window + 2)) {
    count = std::min(count, length - begin);
    Ids piece({batch, count});
    Array wanted({batch, vocabulary});
    for (int64_t row = 0; row < batch; ++row) {
      std::copy_n(tokens.data() + row * length + begin, count, piece.mutable_data() + row * count);
      std::copy_n(expected.data() + (row * length + begin + count - 1) * vocabulary, vocabulary,
                  wanted.mutable_data() + row * vocabulary);
    }
    const bool step = count == 1 && drawn(2) == 0;
    const Array logits = step ? model.step(piece.reshape({batch}), state) : model.prefill(piece, state);
    worst = std::max(worst, relative_error(logits, wanted, 1));
  }
  CHECK(state.positions == std::vector<int64_t>(static_cast<size_t>(batch), length));
  return worst;
}

// Floats round as the kernels and the compiler have it: 1.7e-5 with OpenBLAS's products for Haswell and Zen, where
// doubles have 4e-15.
constexpr double float_bound = 2e-5;

TEST_CASE("a text in pieces gives what it gives at once: short convolutions, n-grams, positions, a prefix in front") {
  for (const MixerCase& c : mixer_cases()) {
    for (const Positions positions : {Positions::learned, Positions::sinusoidal, Positions::none}) {
      auto config = small<LanguageModelConfig>(c.config);
      config.positions = positions;
      set_ngrams(config.ngram_embedding, {1, 3, 5}, 50, 4);
      for (LayerConfig& layer : config.layers) layer.short_conv = positions == Positions::learned ? 4 : 1;
      const bool prefix = positions == Positions::sinusoidal && prefix_obstacle(c.config).empty();
      if (prefix) config.prefix = PrefixRule::bidirectional;
      const auto built = redrawn(language_model(config));
      for (uint64_t seed = 1; seed <= 4; ++seed) {
        INFO(c.name << ", positions " << static_cast<int>(positions) << ", seed " << seed);
        const int64_t length = 3 * window + 2, first = 1 + static_cast<int64_t>(seed) * 2;
        Context context = Context::evaluation(2, length);
        if (prefix) {
          Ids ids = Ids::zeros({2, length});
          for (const int64_t row : {0, 1}) std::fill_n(ids.mutable_data() + row * length, first, 1);
          context.prefixes = Segments(ids);
        }
        CHECK(error_in_pieces(*built.model, context, first, seed) <= (sizeof(real) == 4 ? float_bound : 1e-13));
      }
    }
  }
}

/// What is read of one text: a prompt, then its tokens one by one; and the logits after each read when it is alone.
struct Reading {
  std::vector<int32_t> tokens;
  int64_t prompt;
  std::vector<Array> logits;
};

Ids token_row(const Reading& text, int64_t begin, int64_t end) {
  return Ids({1, end - begin}, std::vector<int32_t>(text.tokens.begin() + begin, text.tokens.begin() + end));
}

std::vector<Reading> read_alone(const LanguageModel& model, DecodeWeights weights) {
  std::vector<Reading> texts;
  RandomStream random(random_key(3, "company"));
  const auto drawn = [&](int64_t bound) { return static_cast<int64_t>(random.below(static_cast<uint64_t>(bound))); };
  for (uint64_t i = 0; i < 20; ++i) {
    const int64_t length = 2 + drawn(3 * window);
    Reading text{random_tokens({length}, 40 + i).to_vector(), 1 + drawn(length - 1), {}};
    DecodeState state = model.make_state(1, weights);
    text.logits.push_back(model.prefill(token_row(text, 0, text.prompt), state));
    for (int64_t t = text.prompt; t < length; ++t)
      text.logits.push_back(model.step(token_row(text, t, t + 1).reshape({1}), state));
    texts.push_back(std::move(text));
  }
  return texts;
}

/// The texts join and leave six sequences at random.
bool same_in_company(const LanguageModel& model, const std::vector<Reading>& texts, DecodeWeights weights) {
  RandomStream random(random_key(4, "company"));
  DecodeState slots = model.make_state(6, weights), reader = model.make_state(1, weights);
  reader.share(slots);
  std::vector<const Reading*> active;
  size_t next = 0;
  bool same = true;
  while (next < texts.size() || !active.empty()) {
    while (active.size() < 6 && next < texts.size() && (active.empty() || random.below(3) == 0)) {
      const Reading& text = texts[next++];
      reader.reset();
      same = same && identical(model.prefill(token_row(text, 0, text.prompt), reader), text.logits.front());
      if (text.prompt == static_cast<int64_t>(text.tokens.size())) continue;
      slots.copy(static_cast<int64_t>(active.size()), reader, 0);
      active.push_back(&text);
    }
    if (active.empty()) continue;
    std::vector<int32_t> tokens;
    for (size_t row = 0; row < active.size(); ++row)
      tokens.push_back(active[row]->tokens[static_cast<size_t>(slots.positions[row])]);
    const Array logits = model.step(Ids({static_cast<int64_t>(tokens.size())}, tokens), slots);
    for (size_t row = active.size(); row-- > 0;) {
      const Reading& text = *active[row];
      const int64_t seen = slots.positions[row], at = static_cast<int64_t>(row);
      same = same && identical(logits.rows(at, at + 1), text.logits[static_cast<size_t>(seen - text.prompt)]);
      if (seen < static_cast<int64_t>(text.tokens.size())) continue;
      slots.copy(at, slots, static_cast<int64_t>(active.size()) - 1);
      active[row] = active.back();
      active.pop_back();
    }
  }
  return same;
}

TEST_CASE("a text's logits have the same bits alone and in random company, with one thread and with two") {
  for (const MixerCase& c : mixer_cases()) {
    auto config = small<LanguageModelConfig>(c.config);
    config.width = 260;  // wide enough to be shared
    set_ngrams(config.ngram_embedding, {2, 3}, 50, 4);
    config.ngram_embedding.every_block = true;
    for (LayerConfig& layer : config.layers) layer.short_conv = 3;
    const auto built = redrawn(language_model(config));
    for (const auto& weights : enum_names(DecodeWeights{})) {
      set_threads(1);
      const std::vector<Reading> texts = read_alone(*built.model, weights.value);
      for (const int count : {1, 2}) {
        set_threads(count);
        CHECK_MESSAGE(same_in_company(*built.model, texts, weights.value), c.name, ", ", weights.name, ", ", count,
                      " threads");
      }
    }
  }
  set_threads(0);
}

TEST_CASE("a model refuses what it cannot decode") {
  const auto full = mixer_called("aft-full");
  if (!full) return;
  const auto built = finalized(language_model(small<LanguageModelConfig>(*full)));
  DecodeState state = built.model->make_state(1);
  CHECK(built.model->position_limit() == longest);
  built.model->prefill(random_tokens({1, longest}, 1), state);
  CHECK_THROWS_AS(built.model->step(Ids({1}, 0), state), Error);
  CHECK_THROWS_AS(built.model->prefill(random_tokens({1, 2}, 1), state), Error);
  state.reset();
  CHECK_THROWS_AS(built.model->prefill(random_tokens({1, longest + 1}, 1), state), Error);
  CHECK_THROWS_AS(built.model->prefill(random_tokens({2, 2}, 1), state), std::invalid_argument);
  CHECK_THROWS_AS(built.model->prefill(Ids(Shape{1, 0}), state), std::invalid_argument);
  CHECK_THROWS_AS(built.model->make_state(0), std::invalid_argument);
  CHECK_THROWS_AS(built.model->logits(random_tokens({1, longest + 1}, 1), Context::evaluation(1, longest + 1)), Error);

  const auto labels = classifier(small<TextClassifierConfig>(any_mixer()));
  CHECK_THROWS_AS(labels.model->stack().make_state(1), std::logic_error);
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
