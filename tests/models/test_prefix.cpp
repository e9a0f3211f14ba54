// Prefix language models: the source of a pair is read in both directions, its target from left to right.
#include "core/autograd/gradcheck.hpp"
#include "core/base/error.hpp"
#include "tests/models/systems.hpp"
#include "tests/support/texts.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

constexpr double tolerance = sizeof(real) == 4 ? 1e-4 : 1e-11;

LanguageModelConfig prefixed(const MixerConfig& mixer) {
  auto config = small<LanguageModelConfig>(mixer);
  config.prefix = PrefixRule::bidirectional;
  return config;
}

std::vector<MixerCase> prefix_cases() {
  std::vector<MixerCase> cases;
  for (const MixerCase& c : mixer_cases())
    if (prefix_obstacle(c.config).empty()) cases.push_back(c);
  return cases;
}

Context prefix_context(const Batch& batch) {
  Context context = context_of(batch);
  context.prefixes = prefixes_of(context.segments, batch.labels);
  return context;
}

TEST_CASE("prefixes: the tokens of a document up to its first label") {
  const Batch batch = pair_batch();
  const Segments prefixes = prefixes_of(Segments(batch.segment_ids), batch.labels);
  REQUIRE(prefixes.spans().size() == 3);
  CHECK(prefixes.spans()[0].length() == 5);
  CHECK(prefixes.spans()[1].length() == 6);
  CHECK(prefixes.spans()[2].begin == 8);
  CHECK(prefixes.spans()[2].length() == 1);
  CHECK(prefixes.ids()[14 + 8] == 2);
  CHECK(prefixes_of(Segments(batch.segment_ids), Ids(batch.labels.shape(), ignored_target)).spans().empty());
}

TEST_CASE("prefix language model: gradients of the whole model") {
  for (const MixerCase& c : prefix_cases()) {
    const auto built = redrawn(language_model(prefixed(c.config)));
    const Batch batch = pair_batch();
    GradcheckOptions options;
    options.samples = sizeof(real) == 4 ? 1 : 6;
    std::vector<std::pair<std::string, Var>> leaves;
    for (const Param& param : built.store->params()) leaves.emplace_back(param.name, param.var);
    if (sizeof(real) == 4) continue;  // finite differences need doubles
    const GradcheckReport report =
        gradcheck([&] { return built.model->loss(batch, context_of(batch)).sum; }, leaves, options);
    CHECK_MESSAGE(report.ok, c.name, ": ", report.worst);
  }
}

TEST_CASE("prefix language model: sources see all of themselves and nothing else, targets what precedes them") {
  for (const MixerCase& c : prefix_cases()) {
    INFO(c.name);
    const auto built = redrawn(language_model(prefixed(c.config)));
    const Batch batch = pair_batch();
    const Context context = prefix_context(batch);
    const Array before = built.model->logits(batch.tokens, context).value();
    // How much the logits of tokens [begin, end) of a row move when a token changes.
    const auto effect = [&](int64_t changed, int64_t row, int64_t begin, int64_t end) {
      Ids other = batch.tokens.clone();
      other.mutable_data()[changed] = (other[changed] + 1) % static_cast<int32_t>(vocabulary);
      const Array after = built.model->logits(other, context).value();
      double most = 0;
      for (int64_t i = (row * 14 + begin) * vocabulary; i < (row * 14 + end) * vocabulary; ++i)
        most = std::max(most, std::abs(static_cast<double>(after[i]) - static_cast<double>(before[i])));
      return most;
    };
    CHECK(effect(4, 0, 0, 1) > 1e-6);              // the end of the source reaches its beginning
    CHECK(effect(5, 0, 0, 5) == 0);                // a target token reaches no source
    CHECK(effect(8, 0, 0, 8) <= tolerance);        // and no earlier target
    CHECK(effect(2, 0, 5, 12) > 1e-6);             // targets see the source
    CHECK(effect(14 + 3, 1, 8, 12) <= tolerance);  // other documents see nothing of it
    CHECK(effect(13, 0, 0, 12) == 0);              // padding
  }
}

TEST_CASE("prefix language model: a source alone is read as by a bidirectional stack") {
  for (const MixerCase& c : prefix_cases()) {
    INFO(c.name);
    const auto built = language_model(prefixed(c.config));
    const auto masked = masked_language_model(small<MaskedLanguageModelConfig>(c.config));
    redraw(*built.store);
    redraw(*masked.store);
    for (const Param& param : masked.store->params()) {  // the same weights; the mask token has one row more
      if (param.name == "embed.weight") continue;
      Array target = built.store->find(param.name).var.value();
      std::copy_n(param.var.value().data(), target.size(), target.shared_data());
    }
    Array table = built.store->find("embed.weight").var.value();
    std::copy_n(masked.store->find("embed.weight").var.value().data(), table.size(), table.shared_data());
    const Ids tokens = random_tokens({1, 9}, 3);
    Context context = Context::evaluation(1, 9);
    const Array expected = masked.model->stack().forward(tokens, context).value();
    context.prefixes = context.segments;
    CHECK(relative_error(built.model->stack().forward(tokens, context).value(), expected, 1) <= tolerance);
  }
}

TEST_CASE("prefix language model: prefill of the source and steps over the target give what forward gives") {
  for (const MixerCase& c : prefix_cases()) {
    INFO(c.name);
    const auto built = redrawn(language_model(prefixed(c.config)));
    for (const int64_t source : {int64_t{1}, int64_t{5}, int64_t{12}}) {
      const int64_t length = 17;
      const Ids tokens = random_tokens({1, length}, 9);
      Context context = Context::evaluation(1, length);
      Ids prefix = Ids::zeros({1, length});
      std::fill_n(prefix.mutable_data(), source, 1);
      context.prefixes = Segments(prefix);
      const Array expected = built.model->logits(tokens, context).value().reshape({length, vocabulary});
      DecodeState state = built.model->make_state(1);
      Ids first({1, source});
      std::copy_n(tokens.data(), source, first.mutable_data());
      CHECK(relative_error(built.model->prefill(first, state), expected.rows(source - 1, source), 1) <= tolerance);
      for (int64_t t = source; t < length; ++t)
        CHECK(relative_error(built.model->step(Ids({1}, tokens[t]), state), expected.rows(t, t + 1), 1) <= tolerance);
    }
  }
}

TEST_CASE("prefix: refused where parameters depend on the direction") {
  for (const MixerCase& c : mixer_cases()) {
    if (prefix_obstacle(c.config).empty()) continue;
    INFO(c.name);
    CHECK(contains(message_of<ConfigError>([&] { language_model(prefixed(c.config)); }), "model.prefix"));
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
