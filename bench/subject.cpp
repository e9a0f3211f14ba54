#include "bench/subject.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "bench/measure.hpp"
#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/io/safetensors.hpp"
#include "core/products/gemm_backend.hpp"
#include "models/language_model.hpp"
#include "models/summary.hpp"
#include "nn/layers/feed_forward.hpp"
#include "nn/params/bf16_weights.hpp"
#include "nn/params/param_store.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/optimizers/optimizer.hpp"
#include "train/steps/lanes.hpp"

namespace capstan::bench {
namespace {

constexpr int64_t vocabulary = 256;
constexpr int64_t head_width = 64;  // of attention
constexpr double learning_rate = 1e-4, clip = 1;

MixerConfig mixer_called(const std::string& name) {
  for (const MixerConfig& mixer : default_mixers())
    if (name == mixer_name(mixer)) return mixer;
  throw std::invalid_argument("bench: this build has no system " + name);
}

/// A gated unit takes the place of attention and of half a feed-forward network, so that two are a Transformer layer.
bool is_gated_unit(const MixerConfig& config) {
  return std::visit([](const auto& mixer) { return std::is_base_of_v<GatedUnitConfig, std::decay_t<decltype(mixer)>>; },
                    config);
}

/// The model of a setup: byte-level, with as many layers of the system as make a Transformer of `layers` layers.
LanguageModelConfig model_config(const Setup& setup) {
  LanguageModelConfig config;
  config.width = setup.width;
  config.max_length = setup.max_length > 0 ? setup.max_length : setup.length;
  config.positions = Positions::learned;
  LayerConfig layer;
  layer.mixer = mixer_called(setup.system);
  if (auto* const attention = std::get_if<AttentionConfig>(&layer.mixer)) attention->heads = setup.width / head_width;
  layer.repeat = setup.layers;
  if (is_gated_unit(layer.mixer)) {
    layer.repeat *= 2;
    layer.feed_forward.type = FeedForwardKind::none;
  }
  config.layers = {layer};
  return config;
}

/// Random ids, the same in every run.
Ids random_ids(const Shape& shape) {
  RandomStream random({7, 7});
  Ids ids(shape);
  std::generate_n(ids.mutable_data(), ids.size(), [&] { return static_cast<int32_t>(random.below(vocabulary)); });
  return ids;
}

Ids ids_of(const FileTensor& tensor, const Shape& shape) {
  check(tensor.size == shape.size(), "bench: {} has {} numbers where {} is needed", tensor.name, tensor.size, shape);
  const std::vector<double> numbers = tensor.to_doubles();
  return Ids(shape, std::vector<int32_t>(numbers.begin(), numbers.end()));
}

/// The model and its weights, for all kinds of work.
class ModelSubject : public Subject {
 public:
  explicit ModelSubject(const Setup& setup) : setup_(setup), model_(Scope(store_, 1), model_config(setup), vocabulary) {
    store_.finalize();
    if (!setup.weights.empty()) load_model(SafetensorsFile(setup.weights), store_);
  }
  int64_t weights_read() const override { return store_.flat_size() - store_.find("positions.weight").var.size(); }
  const float* weights() const override { return store_.values(); }
  double tokens() const override { return static_cast<double>(setup_.batch * setup_.length); }

 protected:
  ModelSummary summary() const { return summarize(model_, store_, setup_.length); }
  Ids read_or_random(const std::string& name, const Shape& shape) const {
    return setup_.data.empty() ? random_ids(shape) : ids_of(SafetensorsFile(setup_.data).at(name), shape);
  }

  Setup setup_;
  ParamStore store_;
  LanguageModel model_;
};

/// Training steps: loss, gradients, clipping and AdamW.
class TrainingStep final : public ModelSubject {
 public:
  explicit TrainingStep(const Setup& setup) : ModelSubject(setup), optimizer_(AdamWConfig{}, store_) {
    capstan::check(!setup.bf16 || bf16_obstacle().empty(), "bench: no bf16 here: {}", bf16_obstacle());
    const Shape shape{setup.batch, setup.length};
    data_ = {read_or_random("tokens", shape), Ids(shape, 1), read_or_random("labels", shape),
             Ids(Shape{setup.batch}, 0)};
  }
  Outcome check() override {
    const double loss = gradients();
    const double norm = gradient_norm(store_, 1 / tokens());
    store_.clear_grads();
    return {loss, norm};
  }
  double run(int64_t repeats) override {
    return seconds_of([&] {
      for (int64_t i = 0; i < repeats; ++i) {
        gradients();
        const double norm = gradient_norm(store_, 1 / tokens());
        optimizer_.step(store_, clip_factor(norm, clip) / tokens(), learning_rate);
      }
    });
  }
  double flops() const override { return 3 * summary().flops() * tokens(); }

 private:
  /// Adds up gradients and returns the mean loss.
  double gradients() {
    StepSums sums;
    std::optional<Bf16Weights> copies;
    if (setup_.bf16) copies.emplace(store_);
    lanes_.add_gradients(data_, {setup_.lanes, setup_.micro, /*step=*/1, /*fresh=*/true}, sums);
    return sums.loss / tokens();
  }

  Optimizer optimizer_;
  Lanes lanes_{model_, store_};
  Batch data_;
};

/// All blocks of a model, without embedding and output, forward or forward and backward.
class BlockPass final : public ModelSubject {
 public:
  explicit BlockPass(const Setup& setup) : ModelSubject(setup) {
    const Shape shape{setup.batch, setup.length, setup.width};
    Array x(shape);
    if (setup.data.empty()) {
      RandomStream random({7, 8});
      std::generate_n(x.mutable_data(), x.size(), [&] { return static_cast<float>(random.normal()); });
    } else {
      const SafetensorsFile file(setup.data);
      capstan::check(file.at("x").size == x.size(), "bench: x has {} numbers where {} is needed", file.at("x").size,
                     shape);
      file.at("x").copy_to(x.mutable_data());
    }
    x_ = Var::leaf(x);
    context_ = Context::evaluation(setup.batch, setup.length);
  }
  Outcome check() override {
    const Array y = pass();
    double sum = 0;
    for (int64_t i = 0; i < y.size(); ++i) sum += static_cast<double>(y[i]) * static_cast<double>(y[i]);
    const double norm = setup_.work == Work::both ? gradient_norm(store_, 1) : 0;
    store_.clear_grads();
    return {sum / 2 / static_cast<double>(y.size()), norm};
  }
  double run(int64_t repeats) override {
    return seconds_of([&] {
      for (int64_t i = 0; i < repeats; ++i) pass();
      store_.clear_grads();
    });
  }
  double flops() const override {
    double flops = 0;
    for (const LayerSummary& layer : summary().layers)
      if (!layer.mixer.empty()) flops += layer.flops;
    return flops * tokens() * (setup_.work == Work::both ? 3 : 1);
  }

 private:
  Array pass() {
    x_.clear_grad();
    const auto forward = [&] {
      Var y = x_;
      for (const Block& block : model_.stack().blocks()) y = block.forward(y, context_);
      return y;
    };
    if (setup_.work == Work::forward) {
      const TapePause pause;
      return forward().value();
    }
    TapeScope tape;
    const Var y = forward();
    tape.tape().backward(std::vector<Var>{y}, {y.value()});
    return y.value();
  }

  Var x_;
  Context context_;
};

/// Decodes token by token.
class Decoding final : public ModelSubject {
 public:
  explicit Decoding(const Setup& setup)
      : ModelSubject(setup),
        state_(model_.make_state(setup.batch, setup.int8   ? DecodeWeights::int8
                                              : setup.bf16 ? DecodeWeights::bf16
                                                           : DecodeWeights::float32)),
        longest_(model_config(setup).max_length) {
    tokens_ = read_or_random("tokens", Shape{setup.batch, longest_});
  }
  /// Mean loss of predicting every token of the longest text from those before it, step by step.
  Outcome check() override {
    state_.reset();
    double loss = 0;
    for (int64_t t = 0; t + 1 < longest_; ++t) {
      const Array logits = model_.step(column(t), state_);
      for (int64_t row = 0; row < setup_.batch; ++row)
        loss += surprise(logits.data() + row * vocabulary, tokens_[row * longest_ + t + 1]);
    }
    return {loss / static_cast<double>(setup_.batch * (longest_ - 1)), 0};
  }
  double run(int64_t repeats) override {
    capstan::check(setup_.length + repeats <= longest_, "bench: {} tokens do not fit behind {} of {}", repeats,
                   setup_.length, longest_);
    state_.reset();
    model_.prefill(column(0, setup_.length), state_);
    return seconds_of([&] {
      for (int64_t i = 0; i < repeats; ++i) model_.step(column(setup_.length + i), state_);
    });
  }
  double flops() const override { return summary().decode_flops() * tokens(); }
  double tokens() const override { return static_cast<double>(setup_.batch); }
  int64_t weights_read() const override {
    return ModelSubject::weights_read() / (setup_.int8 ? 4 : setup_.bf16 ? 2 : 1);
  }
  int64_t states_read() const override {
    return setup_.batch * summary().state_bytes() / static_cast<int64_t>(sizeof(float));
  }

 private:
  Ids column(int64_t t) const { return column(t, 1).reshape(Shape{setup_.batch}); }
  Ids column(int64_t begin, int64_t count) const {
    Ids ids(Shape{setup_.batch, count});
    for (int64_t row = 0; row < setup_.batch; ++row)
      std::copy_n(tokens_.data() + row * longest_ + begin, count, ids.mutable_data() + row * count);
    return ids;
  }
  static double surprise(const float* logits, int32_t target) {
    const double largest = *std::max_element(logits, logits + vocabulary);
    double sum = 0;
    for (int64_t i = 0; i < vocabulary; ++i) sum += std::exp(logits[i] - largest);
    return largest + std::log(sum) - logits[target];
  }

  DecodeState state_;
  int64_t longest_;
  Ids tokens_;
};

}  // namespace

Work work_called(const std::string& name) {
  const std::pair<const char*, Work> names[] = {
      {"step", Work::step}, {"forward", Work::forward}, {"both", Work::both}, {"decode", Work::decode}};
  for (const auto& [known, work] : names)
    if (name == known) return work;
  throw std::invalid_argument("bench: unknown work " + name);
}

std::unique_ptr<Subject> make_subject(const Setup& setup) {
  switch (setup.work) {
    case Work::step:
      return std::make_unique<TrainingStep>(setup);
    case Work::forward:
    case Work::both:
      return std::make_unique<BlockPass>(setup);
    case Work::decode:
      return std::make_unique<Decoding>(setup);
  }
  throw std::logic_error("bench: unknown work");
}

}  // namespace capstan::bench
