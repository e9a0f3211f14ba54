// Whole models against PyTorch (tests/parity/README.md).
#include "core/kernels/optimizer.hpp"
#include "core/safetensors.hpp"
#include "tests/models/samples.hpp"

CAPSTAN_BEGIN
namespace testing {
namespace {

constexpr double parity_tolerance = sizeof(real) == 4 ? 1e-4 : 1e-8;

class Fixture {
 public:
  explicit Fixture(const std::string& name)
      : file_(std::string(CAPSTAN_SOURCE_DIR "/tests/parity/fixtures/") + name + ".safetensors") {}

  Array array(const std::string& name) const {
    const FileTensor& tensor = file_.at(name);
    Array out{Shape(tensor.shape)};
    tensor.copy_to(out.mutable_data());
    return out;
  }
  Ids ids(const std::string& name) const {
    const FileTensor& tensor = file_.at(name);
    const std::vector<double> values = tensor.to_doubles();
    return Ids(Shape(tensor.shape), std::vector<int32_t>(values.begin(), values.end()));
  }
  /// Entry `index` of the first axis.
  Ids ids(const std::string& name, int64_t index) const {
    const Ids all = ids(name);
    return all.rows(index, index + 1).reshape(all.shape().without(0));
  }
  int64_t number(const std::string& key) const { return std::stoll(file_.metadata().at(key)); }
  size_t parameters() const {
    size_t count = 0;
    for (const FileTensor& tensor : file_.tensors()) count += tensor.name.rfind("parameter.", 0) == 0 ? 1 : 0;
    return count;
  }
  void load(ParamStore& store) const {
    CHECK(store.params().size() == parameters());
    for (const Param& param : store.params()) param.var.assign(array("parameter." + param.name));
  }
  Batch batch() const {
    const Ids tokens = ids("tokens");
    return {tokens, ids("segment_ids"), ids("labels"), Ids({tokens.dim(0)}, 0)};
  }

 private:
  SafetensorsFile file_;
};

void check_gradients(const Fixture& fixture, const Task& task, const ParamStore& store) {
  const Batch batch = fixture.batch();
  TapeScope scope;
  const TaskLoss loss = task.loss(batch, context_of(batch, true));
  CHECK(relative_error(loss.sum.value().reshape({1}), fixture.array("loss_sum")) <= parity_tolerance);
  scope.backward(loss.sum);
  for (const Param& param : store.params()) {
    INFO(param.name);
    CHECK(relative_error(param.var.grad(), fixture.array("gradient." + param.name)) <= parity_tolerance);
  }
}

template <class Config>
Config config_of(const Fixture& fixture, const MixerConfig& mixer) {
  LayerConfig layer;
  layer.mixer = mixer;
  layer.repeat = 2;
  layer.feed_forward.expansion = static_cast<double>(fixture.array("parameter.blocks.0.feed_forward.up.bias").size()) /
                                 static_cast<double>(fixture.array("parameter.final_norm.gain").size());
  Config config;
  config.width = fixture.array("parameter.final_norm.gain").size();
  config.max_length = fixture.array("parameter.positions.weight").dim(0);
  config.layers = {layer};
  config.positions = Positions::learned;
  return config;
}

Built<LanguageModel> language_model_of(const Fixture& fixture) {
  AftLocalConfig mixer;
  mixer.window = fixture.number("mixer.window");
  mixer.rank = fixture.array("parameter.blocks.0.mixer.position_u").dim(1);
  mixer.bias = true;
  Built<LanguageModel> built;
  built.model = std::make_unique<LanguageModel>(Scope(*built.store, 1), config_of<LanguageModelConfig>(fixture, mixer),
                                                fixture.array("parameter.embed.weight").dim(0));
  fixture.load(*built.store);
  return built;
}

TEST_CASE("language model: PyTorch's logits, loss and gradients") {
  const Fixture fixture("language_model");
  const auto built = language_model_of(fixture);
  const Batch batch = fixture.batch();
  const Segments segments(batch.segment_ids);
  Array logits = built.model->logits(batch.tokens, {segments}).value().clone();
  for (int64_t token = 0; token < batch.tokens.size(); ++token)  // nobody may ask for those of padding
    if (segments.ids()[token] == 0) std::fill_n(logits.mutable_data() + token * logits.dim(2), logits.dim(2), real{0});
  CHECK(relative_error(logits, fixture.array("logits")) <= parity_tolerance);
  check_gradients(fixture, *built.model, *built.store);
}

TEST_CASE("language model: PyTorch's loss curve over 20 steps of AdamW") {
  const Fixture fixture("language_model");
  const auto built = language_model_of(fixture);
  ParamStore& store = *built.store;
  store.finalize();
  Array m = Array::zeros({store.flat_size()}), v = m.clone();
  const std::vector<real> expected = fixture.array("curve.losses_positions_undecayed").to_vector();
  REQUIRE(expected.size() == 20);
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const Ids tokens = fixture.ids("curve.tokens", at);
    const Batch batch{tokens, fixture.ids("curve.segment_ids", at), fixture.ids("curve.labels", at),
                      Ids({tokens.dim(0)}, 0)};
    TapeScope scope;
    const TaskLoss loss = built.model->loss(batch, context_of(batch, true));
    const double mean = static_cast<double>(loss.sum.value().item()) / static_cast<double>(loss.targets);
    CHECK_MESSAGE(
        std::abs(mean - static_cast<double>(expected[i])) <= parity_tolerance * static_cast<double>(expected[i]),
        "step ", i, ": ", mean, " instead of ", expected[i]);
    scope.backward(loss.sum, static_cast<real>(1.0 / static_cast<double>(loss.targets)));
    kernels::adamw({store.values(), store.grads(), store.flat_size(), store.decay_size(), 1}, m.mutable_data(),
                   v.mutable_data(), {1e-2, 0.9, 0.999, 1e-8, 0.1, at + 1});
  }
}

TEST_CASE("classifier: PyTorch's logits, loss and gradients") {
  const Fixture fixture("classifier");
  AftSimpleConfig mixer;
  mixer.bias = true;
  Built<TextClassifier> built;
  built.model = std::make_unique<TextClassifier>(
      Scope(*built.store, 1), config_of<TextClassifierConfig>(fixture, mixer),
      fixture.array("parameter.embed.weight").dim(0), fixture.array("parameter.head.bias").size());
  fixture.load(*built.store);
  const Batch batch = fixture.batch();
  CHECK(relative_error(built.model->logits(batch.tokens, context_of(batch)).value(), fixture.array("logits")) <=
        parity_tolerance);
  check_gradients(fixture, *built.model, *built.store);
}

}  // namespace
}  // namespace testing
CAPSTAN_END
