// What a correct configuration means: defaults, files, overrides, and every kind of field.
#include <doctest/doctest.h>

#include <limits>
#include <memory>

#include "sample_config.hpp"

using namespace capstan;
using namespace capstan::sample;

namespace {

Run read(const std::string& text) { return load_config_text<Run>("data: {train: x.txt}\n" + text, "a.yaml"); }

Run read_files(const std::vector<std::string>& texts, const std::vector<std::string>& overrides) {
  std::vector<std::unique_ptr<TextFile>> files;
  std::vector<std::string> paths;
  for (const auto& text : texts) {
    files.push_back(std::make_unique<TextFile>(text));
    paths.push_back(files.back()->path());
  }
  return load_config<Run>(paths, overrides);
}

template <class T>
const T& as(const sample::Mixer& mixer) {
  REQUIRE(std::holds_alternative<T>(mixer));
  return std::get<T>(mixer);
}

}  // namespace

TEST_CASE("every kind of field is read") {
  const Run run = load_config_text<Run>(
      "\xEF\xBB\xBFname: my run  # a comment\n"
      "seed: -9223372036854775808\n"
      "data:\n"
      "  train: [a.txt, \"b c.txt\", 7]\n"
      "  encoding: latin-1\n"
      "  valid: 'null'\n"
      "  betas:\n"
      "  - .5\n"
      "  - +1E-3\n"
      "model:\n"
      "  width: 4096\n"
      "  pooling: cls\n"
      "  mixer: {type: conv, kernel: 3}\n"
      "  layers:\n"
      "  - mixer: local\n"
      "    scale: 2\n"
      "  - mixer: {type: local, window: 7, dropout: 0.1}\n"
      "  - {}\n"
      "  head: {scale: 3}\n"
      "train: {lr: 1e-3, offset: -2.5e3, ema: true}\n",
      "a.yaml");
  CHECK(run.name == "my run");
  CHECK(run.seed == std::numeric_limits<std::int64_t>::min());
  CHECK(run.data.train == std::vector<std::string>{"a.txt", "b c.txt", "7"});
  CHECK(run.data.encoding == "latin-1");
  CHECK(run.data.valid == "null");
  CHECK(run.data.betas == std::vector<double>{0.5, 0.001});
  CHECK(run.model.width == 4096);
  CHECK(run.model.pooling == Pooling::cls);
  CHECK(as<ConvMixer>(run.model.mixer).kernel == 3);
  REQUIRE(run.model.layers.size() == 3);
  CHECK(as<LocalMixer>(run.model.layers[0].mixer).window == 32);
  CHECK(run.model.layers[0].scale == 2);
  CHECK(as<LocalMixer>(run.model.layers[1].mixer).window == 7);
  CHECK(as<LocalMixer>(run.model.layers[1].mixer).dropout == 0.1);
  as<SimpleMixer>(run.model.layers[2].mixer);
  REQUIRE(run.model.head);
  CHECK(run.model.head->scale == 3);
  CHECK(run.train.lr == 1e-3);
  CHECK(run.train.offset == -2500);
  CHECK(run.train.ema);
}

TEST_CASE("what is not given keeps its default") {
  const Run run = read(""), defaults;
  CHECK(run.data.train == std::vector<std::string>{"x.txt"});  // one text serves as a list of one
  CHECK(run.name == defaults.name);
  CHECK(run.data.betas == defaults.data.betas);
  CHECK(as<LocalMixer>(run.model.mixer).window == 8);
  REQUIRE(run.model.layers.size() == 2);
  CHECK(as<LocalMixer>(run.model.layers[1].mixer).window == 32);
  CHECK(run.model.layers[1].scale == 0.5);
  CHECK_FALSE(run.model.head);
  CHECK_FALSE(run.data.valid);
}

TEST_CASE("null unsets what is optional, and quotes or plain words are text") {
  CHECK_FALSE(load_config_text<Run>("data: {train: x, valid: null}", "a").data.valid);
  CHECK_FALSE(load_config_text<Run>("data: {train: x, valid: ~}", "a").data.valid);
  for (const char* word : {"yes", "1e-3", "3", "true", "a:b", "C:\\x", "a b", "é"})
    CHECK(read(std::string("name: ") + word).name == word);
  CHECK(read("name: \"caf\\u00e9\\t\"").name == "café\t");
}

TEST_CASE("aliases stand for the values of their anchors") {
  const Run run = read(
      "model:\n"
      "  mixer: &m {type: local, window: 5}\n"
      "  layers: [{mixer: *m}, {mixer: *m, scale: &s 2}]\n"
      "  head: {mixer: *m, scale: *s}\n");
  CHECK(as<LocalMixer>(run.model.layers[1].mixer).window == 5);
  CHECK(as<LocalMixer>(run.model.head->mixer).window == 5);
  CHECK(run.model.head->scale == 2);
}

TEST_CASE("a variant keeps its defaults unless another type is named") {
  CHECK(as<LocalMixer>(read("model: {mixer: {dropout: 0.5}}").model.mixer).window == 8);
  CHECK(as<LocalMixer>(read("model: {mixer: {type: local, dropout: 0.5}}").model.mixer).window == 8);
  CHECK(as<LocalMixer>(read("model: {mixer: local}").model.mixer).window == 8);
  CHECK(as<ConvMixer>(read("model: {mixer: {type: conv, kernel: 2}}").model.mixer).kernel == 2);
  as<SimpleMixer>(read("model: {mixer: {}, layers: [{mixer: {}}]}").model.layers[0].mixer);
}

TEST_CASE("later files win key by key; lists and another type replace") {
  const std::string base =
      "data: {train: [a, b, c]}\n"
      "model: {mixer: {window: 3, dropout: 0.5}, head: {mixer: local, scale: 2}}\n"
      "train: {lr: 0.1, steps: 20}\n";
  SUBCASE("keys") {
    const Run run = read_files({base, "train: {lr: 0.2}\n", "train: {warmup_steps: 1}\n"}, {});
    CHECK(run.train.lr == 0.2);
    CHECK(run.train.steps == 20);
    CHECK(run.train.warmup_steps == 1);
  }
  SUBCASE("lists") {
    CHECK(read_files({base, "data: {train: [d]}\n"}, {}).data.train == std::vector<std::string>{"d"});
  }
  SUBCASE("same type") {
    const auto mixer = as<LocalMixer>(read_files({base, "model: {mixer: {type: local, window: 9}}\n"}, {}).model.mixer);
    CHECK(mixer.window == 9);
    CHECK(mixer.dropout == 0.5);
  }
  SUBCASE("another type") {
    as<SimpleMixer>(read_files({base, "model: {mixer: {type: simple}}\n"}, {}).model.mixer);
    as<SimpleMixer>(read_files({base, "model: {mixer: simple}\n"}, {}).model.mixer);
    CHECK_FALSE(
        as<LocalMixer>(
            read_files({base, "model: {mixer: {type: simple}}\n", "model: {mixer: {type: local, window: 4}}\n"}, {})
                .model.mixer)
            .dropout);
  }
  SUBCASE("a map laid on a name") {
    const Run run = read_files({base, "model: {head: {mixer: {window: 6}}}\n"}, {});
    CHECK(as<LocalMixer>(run.model.head->mixer).window == 6);
    CHECK(run.model.head->scale == 2);
  }
  SUBCASE("another type, in a list that a file has given") {
    const std::string list = "model: {layers: [{mixer: {type: local, window: 3, dropout: 0.5}}, {mixer: local}]}\n";
    const Run run = read_files({base, list}, {"model.layers.0.mixer.type=conv", "model.layers.0.mixer.kernel=5",
                                              "model.layers.1.mixer.type=conv", "model.layers.1.mixer.kernel=6"});
    CHECK(as<ConvMixer>(run.model.layers[0].mixer).kernel == 5);
    CHECK(as<ConvMixer>(run.model.layers[1].mixer).kernel == 6);
  }
  SUBCASE("a field called type is a field like any other") {
    const Run run = read_files({base, "model: {norm: {eps: 7}}\n", "model: {norm: {type: rms}}\n"}, {});
    CHECK(run.model.norm.type == "rms");
    CHECK(run.model.norm.eps == 7);
    CHECK(read_files({base, "model: {norm: {type: rms, eps: 7}}\n"}, {"model.norm.type=layer"}).model.norm.eps == 7);
  }
  SUBCASE("unset by null") { CHECK_FALSE(read_files({base, "model: {head: null}\n"}, {}).model.head); }
}

/// Alternatives that have a map of the same name, with other keys.
struct RoundSize {
  std::int64_t radius = 1, depth = 1;
};
template <class Fields>
void describe(Fields& f, RoundSize& c) {
  f("radius", c.radius, any(), "");
  f("depth", c.depth, any(), "");
}
struct SquareSize {
  std::int64_t side = 1, depth = 1;
};
template <class Fields>
void describe(Fields& f, SquareSize& c) {
  f("side", c.side, any(), "");
  f("depth", c.depth, any(), "");
}
struct RoundCutter {
  static constexpr const char* type_name = "round";
  RoundSize size;
};
template <class Fields>
void describe(Fields& f, RoundCutter& c) {
  f("size", c.size, any(), "");
}
struct SquareCutter {
  static constexpr const char* type_name = "square";
  SquareSize size;
};
template <class Fields>
void describe(Fields& f, SquareCutter& c) {
  f("size", c.size, any(), "");
}
struct Machine {
  std::variant<RoundCutter, SquareCutter> cutter;
};
template <class Fields>
void describe(Fields& f, Machine& c) {
  f("cutter", c.cutter, any(), "");
}

TEST_CASE("a map within a type has no keys of the type that was there before, and those that are given count") {
  const auto with = [](const std::vector<std::string>& overrides) {
    return std::get<SquareCutter>(load_config<Machine>({}, overrides).cutter).size;
  };
  const std::string round = "cutter={type: round, size: {radius: 3, depth: 3}}";
  CHECK(with({round, "cutter={type: square, size: {side: 2}}"}).side == 2);
  CHECK(with({round, "cutter={type: square, size: {side: 2}}"}).depth == 1);
  CHECK(with({round, "cutter.type=square", "cutter.size.side=2"}).side == 2);
  CHECK(with({round, "cutter.type=square"}).depth == 1);
  CHECK(with({"cutter={type: square, size: {side: 2}}", "cutter.size.depth=4"}).side == 2);
}

TEST_CASE("overrides") {
  const auto with = [](const std::vector<std::string>& overrides) {
    return read_files({"data: {train: x}\n"}, overrides);
  };
  CHECK(with({"train.lr=2", "train.lr=3"}).train.lr == 3);
  CHECK(with({"name=a=b"}).name == "a=b");
  CHECK(with({"data.train=[p, q]"}).data.train == std::vector<std::string>{"p", "q"});
  CHECK(with({"data.train=data/*.txt"}).data.train == std::vector<std::string>{"data/*.txt"});
  CHECK(with({"data.train=\"*.txt\""}).data.train == std::vector<std::string>{"*.txt"});
  CHECK(with({"data.valid=y", "data.valid="}).data.valid == std::nullopt);
  CHECK(with({"train={lr: 5, steps: 60}"}).train.steps == 60);
  CHECK(with({"train={lr: 5}", "train.steps=70"}).train.lr == 5);
  CHECK(with({"data.betas.1=0.5"}).data.betas == std::vector<double>{0.9, 0.5});
  CHECK(as<LocalMixer>(with({"model.mixer.window=4"}).model.mixer).window == 4);
  CHECK(as<ConvMixer>(with({"model.mixer.type=conv", "model.mixer.kernel=4"}).model.mixer).kernel == 4);
  CHECK(as<ConvMixer>(with({"model.mixer=conv", "model.mixer.kernel=5"}).model.mixer).kernel == 5);
  CHECK(as<LocalMixer>(with({"model.mixer.type=local"}).model.mixer).window == 8);
  CHECK(as<LocalMixer>(with({"model.layers.1.mixer.window=4"}).model.layers[1].mixer).window == 4);
  CHECK(with({"model.layers.1.mixer.window=4"}).model.layers[1].scale == 0.5);
  CHECK(with({"model.head.scale=4"}).model.head->scale == 4);
  CHECK(read_files({}, {"data.train=x"}).data.train == std::vector<std::string>{"x"});
}
