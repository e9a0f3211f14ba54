// The table of a model.
#include "models/summary.hpp"

#include "core/machine/pool.hpp"
#include "tests/models/samples.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

const LayerSummary& part(const ModelSummary& summary, const std::string& name) {
  for (const LayerSummary& layer : summary.layers)
    if (layer.name == name) return layer;
  FAIL("no part ", name);
  throw std::logic_error(name);
}

TEST_CASE("a summary counts what was made") {
  const auto simple = mixer_called("aft-simple");
  if (!simple) return;
  const auto built = language_model(small<LanguageModelConfig>(*simple));
  const ModelSummary summary = summarize(*built.model, *built.store, 16);
  CHECK(summary.parameters() == built.store->count());
  CHECK(part(summary, "embed").parameters == vocabulary * width);
  CHECK(part(summary, "embed").flops == 0);
  CHECK(part(summary, "positions").parameters == longest * width);
  // q, k, v and output; up and down with expansion 1.5 and biases; two norms.
  const int64_t matrices = 4 * width * width + 2 * 30 * width;
  CHECK(part(summary, "blocks.1").parameters == matrices + 30 + width + 4 * width);
  CHECK(part(summary, "blocks.1").mixer == "aft-simple");
  CHECK(part(summary, "blocks.1").flops == 2.0 * matrices);
  CHECK(part(summary, "output").parameters == 0);
  CHECK(part(summary, "output").flops == 2.0 * vocabulary * width);
  CHECK(part(summary, "blocks.0").state_bytes == 3 * width * static_cast<int64_t>(sizeof(real)));
  CHECK(summary.training_flops() == 3 * summary.flops());
  ModelSummary twice = summary;  // embedding and head are not recomputed
  twice.recompute = true;
  double blocks = 0;
  for (const LayerSummary& layer : summary.layers)
    if (layer.name.rfind("blocks.", 0) == 0) blocks += layer.flops;
  CHECK(blocks > 0);
  CHECK(twice.training_flops() == doctest::Approx(3 * summary.flops() + blocks));
  CHECK(summary.decode_flops() == summary.flops());  // aft-simple mixes in O(D)
  const std::string text = to_text(summary);
  CHECK(text.find("aft-simple") != std::string::npos);
  CHECK(text.find("decode state") != std::string::npos);

  const auto labels = classifier(small<TextClassifierConfig>(*simple));
  const ModelSummary bidirectional = summarize(*labels.model, *labels.store, 16);
  CHECK(bidirectional.parameters() == labels.store->count());
  CHECK(bidirectional.state_bytes() == 0);
  CHECK(part(bidirectional, "head").flops == doctest::Approx(2.0 * 3 * width / 16));

  auto with_ngrams = small<TextClassifierConfig>(*simple);
  set_ngrams(with_ngrams.ngrams, {1, 2}, 50, 4);
  const auto wide = classifier(with_ngrams);
  const ModelSummary wider = summarize(*wide.model, *wide.store, 16);
  CHECK(wider.parameters() == bidirectional.parameters() + 50 * 4 + 4 * 3);
  CHECK(part(wider, "ngrams").parameters == 50 * 4 + 4 * 3);
  CHECK(part(wider, "ngrams").flops == doctest::Approx(2.0 * 4 * 3 / 16 + 2 * 4));
  CHECK(to_text(bidirectional).find("decode state") == std::string::npos);

  auto embedded_ngrams = small<LanguageModelConfig>(*simple);
  set_ngrams(embedded_ngrams.ngram_embedding, {2, 3}, 50, 4);
  const auto enriched = language_model(embedded_ngrams);
  const ModelSummary richer = summarize(*enriched.model, *enriched.store, 16);
  CHECK(richer.parameters() == summary.parameters() + 50 * 4 + 4 * width);
  CHECK(part(richer, "ngram_embedding").flops == 2.0 * 4 * width + 2 * 4);
  CHECK(richer.decode_flops() == richer.flops());
  embedded_ngrams.ngram_embedding.every_block = true;
  const auto led = language_model(embedded_ngrams);
  CHECK(summarize(*led.model, *led.store, 16).parameters() == richer.parameters() + 2 * width);
}

TEST_CASE("activation memory is what a recorded forward pass holds") {
  for (const MixerCase& c : mixer_cases()) {
    for (const bool recompute : {false, true}) {
      auto config = small<LanguageModelConfig>(c.config);
      config.ngram_embedding.orders = {2, 3};
      config.ngram_embedding.width = 4;
      config.ngram_embedding.every_block = true;
      config.width = 64;
      config.max_length = 512;
      config.layers[0].repeat = 4;
      config.recompute = recompute;
      const auto built = language_model(config);
      if (!built.model->stack().forward_only_mixers().empty()) continue;  // its memory is not known
      built.store->finalize();
      const Batch batch = next_token_batch(Segments::full(4, 512), 1);
      const double predicted = summarize(*built.model, *built.store, 512).activation_bytes() * 4 * 512;
      const Context context = context_of(batch, true);
      const size_t before = pool::stats().bytes_in_use;
      TapeScope scope;
      const TaskLoss loss = built.model->loss(batch, context);
      const double held = static_cast<double>(pool::stats().bytes_in_use - before);
      const std::string name = c.name + (recompute ? ", recomputed" : "");
      CHECK_MESSAGE(held < 1.2 * predicted, name, ": ", held, " bytes instead of ", predicted);
      CHECK_MESSAGE(held > 0.9 * predicted, name, ": ", held, " bytes instead of ", predicted);
    }
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
