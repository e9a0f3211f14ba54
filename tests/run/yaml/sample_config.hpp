// A config with every kind of field that core/config/schema.hpp allows.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/error.hpp"
#include "core/config/schema.hpp"
#include "run/yaml/config.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/texts.hpp"

namespace capstan::sample {

enum class Pooling { mean, cls };
inline std::vector<EnumName<Pooling>> enum_names(Pooling) { return {{Pooling::mean, "mean"}, {Pooling::cls, "cls"}}; }

struct SimpleMixer {
  static constexpr const char* type_name = "simple";
};
template <class Fields>
void describe(Fields&, SimpleMixer&) {}

struct LocalMixer {
  static constexpr const char* type_name = "local";
  std::int64_t window = 32;
  std::optional<double> dropout = std::nullopt;
};
template <class Fields>
void describe(Fields& f, LocalMixer& c) {
  f("window", c.window, at_least(1), "tokens seen to each side");
  f("dropout", c.dropout, between_below(0, 1), "share of weights dropped");
}

struct ConvMixer {
  static constexpr const char* type_name = "conv";
  std::int64_t kernel = 0;
};
template <class Fields>
void describe(Fields& f, ConvMixer& c) {
  f("kernel", c.kernel, at_least(1), "kernel length");  // no sensible default: must be given
}

using Mixer = std::variant<SimpleMixer, LocalMixer, ConvMixer>;

struct Layer {
  Mixer mixer = SimpleMixer{};
  double scale = 1;
};
template <class Fields>
void describe(Fields& f, Layer& c) {
  f("mixer", c.mixer, any(), "token mixer");
  f("scale", c.scale, any(), "residual scale");
}

/// A struct, not a variant's alternative, that happens to have a field called `type`.
struct Norm {
  std::string type = "layer";
  double eps = 0.5;
};
template <class Fields>
void describe(Fields& f, Norm& c) {
  f("type", c.type, one_of({"layer", "rms"}), "which statistics");
  f("eps", c.eps, greater(0), "added to them");
}

struct Model {
  std::int64_t width = 64;
  Pooling pooling = Pooling::mean;
  Mixer mixer = LocalMixer{8, std::nullopt};
  std::vector<Layer> layers = {Layer{}, Layer{LocalMixer{}, 0.5}};
  std::optional<Layer> head = std::nullopt;
  Norm norm;
};
template <class Fields>
void describe(Fields& f, Model& c) {
  f("width", c.width, between(1, 4096), "model width D");
  f("pooling", c.pooling, any(), "how tokens become one vector");
  f("mixer", c.mixer, any(), "mixer of all layers");
  f("layers", c.layers, not_empty(), "layers one by one");
  f("head", c.head, any(), "a last layer");
  f("norm", c.norm, any(), "normalisation");
}

struct Data {
  std::vector<std::string> train = {};
  std::string encoding = "utf-8";
  std::optional<std::string> valid = std::nullopt;
  std::vector<double> betas = {0.9, 0.999};
};
template <class Fields>
void describe(Fields& f, Data& c) {
  f("train", c.train, not_empty(), "files | folders");
  f("encoding", c.encoding, one_of({"utf-8", "latin-1"}), "how bytes become text");
  f("valid", c.valid, not_empty(), "held-out file");
  f("betas", c.betas, between(2, 2), "decay rates");
}

struct Train {
  double lr = 1e-3;
  double offset = 0;
  std::int64_t steps = 1000;
  std::int64_t warmup_steps = 10;
  bool ema = false;
};
template <class Fields>
void describe(Fields& f, Train& c) {
  f("lr", c.lr, greater(0), "peak learning rate");
  f("offset", c.offset, any(), "added to everything");
  f("steps", c.steps, at_least(1), "updates");
  f("warmup_steps", c.warmup_steps, at_least(0), "linear warm-up");
  f("ema", c.ema, any(), "average the weights");
}
inline void validate(const Train& c, Problems& problems) {
  if (c.warmup_steps > c.steps) problems.add("warmup_steps", "more than train.steps");
}

struct Run {
  std::string name = "run";
  std::int64_t seed = 1;
  Data data;
  Model model;
  Train train;
};
template <class Fields>
void describe(Fields& f, Run& c) {
  f("name", c.name, not_empty(), "name of the run folder");
  f("seed", c.seed, any(), "seed of all randomness");
  f("data", c.data, any(), "what to train on");
  f("model", c.model, any(), "what to train");
  f("train", c.train, any(), "how to train");
}
inline void validate(const Run& c, Problems& problems) {
  for (std::size_t i = 0; i < c.model.layers.size(); ++i)
    if (const auto* local = std::get_if<LocalMixer>(&c.model.layers[i].mixer); local && local->window > 512)
      problems.add("model.layers." + std::to_string(i) + ".mixer.window", "longer than the context");
  if (c.seed == 13) problems.add("", "no luck");
}

/// A configuration in a file.
class TextFile : public TemporaryFolder {
 public:
  explicit TextFile(const std::string& text) { write("config.yaml", text); }
  std::string path() const { return TemporaryFolder::path("config.yaml"); }
};

/// The message of the ConfigError that `action` throws, or "no error".
template <class Action>
std::string error_of(const Action& action) {
  return message_of<ConfigError>(action);
}

}  // namespace capstan::sample
