// What a configuration can ask of a model besides its mixers: no layers, no norms, and the post-norm wiring of BERT
// that Fastformer's authors use, with their pooling.
#include <cmath>
#include <set>

#include "core/base/error.hpp"
#include "models/summary.hpp"
#include "tests/models/systems.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/ragged.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

bool is_block(const Param& param) { return param.name.rfind("blocks.", 0) == 0; }

/// No blocks and no positions.
template <class Config>
Config bare() {
  auto config = small<Config>(any_mixer());
  config.layers.clear();
  config.positions = Positions::none;
  return config;
}

TEST_CASE("without layers, a text is a bag of its tokens, and a token of a language model is all that its logits see") {
  const auto bag = redrawn(classifier(bare<TextClassifierConfig>()));
  const Ids there({1, 4}, std::vector<int32_t>{3, 1, 4, 2}), back({1, 4}, std::vector<int32_t>{2, 4, 1, 3});
  const Context context = Context::evaluation(1, 4);
  const Array logits = bag.model->logits(there, context).value();
  CHECK(difference(logits, bag.model->logits(back, context).value()) <= (sizeof(real) == 4 ? 1e-5 : 1e-12));
  const Array states = bag.model->find_stack()->forward(there, context).value();
  const Array &weight = bag.store->find("head.weight").var.value(), &bias = bag.store->find("head.bias").var.value();
  for (int64_t c = 0; c < logits.size(); ++c) {
    double sum = static_cast<double>(bias[c]);
    for (int64_t i = 0; i < states.size(); ++i)
      sum += static_cast<double>(states[i]) / 4 * static_cast<double>(weight[c * weight.dim(1) + i % weight.dim(1)]);
    CHECK(static_cast<double>(logits[c]) == doctest::Approx(sum).epsilon(1e-4));
  }
  const auto unigrams = redrawn(language_model(bare<LanguageModelConfig>()));
  const Array next = unigrams.model->logits(there, context).value(),
              last = unigrams.model->logits(back, context).value();
  for (int64_t v = 0; v < vocabulary; ++v) CHECK(next[v] == last[3 * vocabulary + v]);
}

TEST_CASE(
    "sparse_embedding changes no value; the gradient is that of the rows which were read, and no other row has one") {
  auto config = small<LanguageModelConfig>(any_mixer());
  config.tied_output = false;
  const auto dense = language_model(config);
  config.sparse_embedding = true;
  const auto sparse = language_model(config);
  for (const Param& param : dense.store->params()) sparse.store->find(param.name).var.assign(param.var.value());
  sparse.store->finalize();
  const Batch batch = next_token_batch(ragged(20), 4);
  const auto loss_of = [&](const Built<LanguageModel>& model) {
    TapeScope scope;
    const TaskLoss loss = model.model->loss(batch, context_of(batch));
    scope.backward(loss.sum);
    return loss.sum.value();
  };
  CHECK(difference(loss_of(dense), loss_of(sparse)) == 0);
  const Param& embed = sparse.store->find("embed.weight");
  CHECK(difference(dense.store->find("embed.weight").var.grad(), embed.var.grad()) <=
        (sizeof(real) == 4 ? 1e-6 : 1e-14));
  const std::set<int32_t> read(batch.tokens.data(), batch.tokens.data() + batch.tokens.size());
  for (const int64_t row : sparse.store->row_grads(embed).rows()) CHECK(read.count(static_cast<int32_t>(row)) == 1);

  config.tied_output = true;
  CHECK_THROWS_WITH_AS(
      language_model(config),
      "model.sparse_embedding: the output layer uses all rows of the embedding: set tied_output: false", ConfigError);
}

TEST_CASE(
    "matrices are the weights of layers inside the network, not embeddings, output layers, vectors or tables by rows") {
  const auto is_weight = [](const std::string& name) {
    return name.size() > 7 && name.substr(name.size() - 7) == ".weight";
  };
  for (const System& system : systems()) {
    INFO(system.name);
    auto config = small<LanguageModelConfig>(system.layer.mixer);
    config.layers = {system.layer};
    config.tied_output = false;
    config.ngram_embedding.orders = {2};
    config.ngram_embedding.buckets = 30;
    auto texts = small<TextClassifierConfig>(system.layer.mixer);
    texts.layers = {system.layer};
    texts.ngrams.orders = {1};
    texts.ngrams.buckets = 30;
    const auto model = language_model(config);
    const auto text_classifier = classifier(texts);
    for (const ParamStore* store : {model.store.get(), text_classifier.store.get()}) {
      for (const Param& param : store->params()) {
        INFO(param.name);
        const bool inside = is_block(param) || param.name == "ngram_embedding.output.weight";
        CHECK(is_matrix(param) == (inside && is_weight(param.name)));
      }
    }
  }
}

double deviation(const Array& array) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < array.size(); ++i) {
    sum += static_cast<double>(array[i]);
    squares += static_cast<double>(array[i]) * static_cast<double>(array[i]);
  }
  const double n = static_cast<double>(array.size());
  return std::sqrt(squares / n - sum / n * sum / n);
}

/// As in the authors' notebook, with the width of these tests.
TextClassifierConfig bert_style() {
  auto config = small<TextClassifierConfig>(any_mixer());
  config.width = 64;
  config.layers[0].feed_forward.expansion = 1;
  config.layers[0].norm_placement = NormPlacement::post;
  config.embedding_norm = true;
  config.pooling = Pooling::attention;
  return config;
}

TEST_CASE("post-norm wiring of BERT: biases 0, gains 1, a norm of the embeddings and none at the end") {
  const auto built = classifier(bert_style());
  for (const Param& param : built.store->params()) {
    const std::string kind = param.name.substr(param.name.rfind('.') + 1);
    INFO(param.name);
    if (kind != "weight") CHECK(static_cast<double>(param.var.value()[0]) == (kind == "gain" ? 1 : 0));
    CHECK(param.name.rfind("final_norm", 0) != 0);
  }
  built.store->find("embed_norm.gain");
  built.store->find("positions.weight");
  CHECK(built.store->find("blocks.0.feed_forward.up.weight").var.shape() == Shape{64, 64});
}

TEST_CASE("the switches of Fastformer's authors: without positions and without any norm") {
  auto config = bert_style();
  config.positions = Positions::none;
  config.embedding_norm = false;
  config.layers[0].norm.type = config.final_norm.type = NormKind::none;
  for (const NormPlacement placement : {NormPlacement::pre, NormPlacement::post}) {
    config.layers[0].norm_placement = placement;
    const auto built = classifier(config);
    for (const Param& param : built.store->params())
      for (const char* const absent : {"norm", "positions"}) CHECK(param.name.find(absent) == std::string::npos);
    built.store->finalize();
    CHECK(std::isfinite(deviation(built.model->logits(random_tokens({2, 9}, 3), Context::evaluation(2, 9)).value())));
  }
}

TEST_CASE("attention pooling is a masked softmax of w . tanh(W x + b), finite where a plain exp is not") {
  auto config = bert_style();
  config.layers.clear();
  config.layers.push_back(small<TextClassifierConfig>(any_mixer()).layers[0]);
  const auto built = redrawn(classifier(config));
  const auto param = [&](const char* name) { return built.store->find(name).var; };
  for (const double size : {1.0, 1e4}) {
    Array score = Array::zeros({1, 64});  // of one feature, so that no rounding of a sum is blown up
    score.mutable_data()[5] = static_cast<real>(size);
    param("pooling.score.weight").assign(score);
    const Ids tokens = random_tokens({2, 11}, 6);
    const Segments segments = segments_of_lengths({11, 7}, 11);
    const Array states = built.model->stack().forward(tokens, {segments}).value();
    const Array logits = built.model->logits(tokens, {segments}).value();
    const Array hidden =
        linear(Var(states), param("pooling.hidden.weight"), param("pooling.hidden.bias"), Activation::tanh).value();
    for (int64_t row = 0; row < 2; ++row) {
      const int64_t valid = row == 0 ? 11 : 7;
      std::vector<double> a;
      for (int64_t t = 0; t < valid; ++t) {
        double sum = 0;
        for (int64_t c = 0; c < 64; ++c)
          sum += static_cast<double>(score[c]) * static_cast<double>(hidden[(row * 11 + t) * 64 + c]);
        a.push_back(sum);
      }
      const double largest = *std::max_element(a.begin(), a.end());
      double total = 0;
      for (double& weight : a) total += weight = std::exp(weight - largest);
      for (int64_t label = 0; label < 3; ++label) {
        double expected = static_cast<double>(param("head.bias").value()[label]);
        for (int64_t c = 0; c < 64; ++c)
          for (int64_t t = 0; t < valid; ++t)
            expected += static_cast<double>(param("head.weight").value()[label * 64 + c]) * a[static_cast<size_t>(t)] /
                        total * static_cast<double>(states[(row * 11 + t) * 64 + c]);
        const double allowed = sizeof(real) == 8 ? 1e-10 : 1e-4;
        CHECK(std::abs(static_cast<double>(logits[row * 3 + label]) - expected) <= allowed);
      }
    }
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
