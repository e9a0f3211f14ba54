// The written config, the table of keys and the difference of two configs.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "run/yaml/config_writer.hpp"
#include "sample_config.hpp"

using namespace capstan;
using namespace capstan::sample;

namespace {

Run valid_run() {
  Run run;
  run.data.train = {"x.txt"};
  return run;
}

Run round_trip(const Run& run) { return load_config_text<Run>(to_yaml(run), "written"); }

}  // namespace

TEST_CASE("a written config is complete, in the order of describe(), and commented on demand") {
  Run run = valid_run();
  run.model.layers.push_back({ConvMixer{3}, 2});
  CHECK(to_yaml(run) ==
        "name: run\n"
        "seed: 1\n"
        "data:\n"
        "  train: [x.txt]\n"
        "  encoding: utf-8\n"
        "  valid: null\n"
        "  betas: [0.9, 0.999]\n"
        "model:\n"
        "  width: 64\n"
        "  pooling: mean\n"
        "  mixer:\n"
        "    type: local\n"
        "    window: 8\n"
        "    dropout: null\n"
        "  layers:\n"
        "    - mixer:\n"
        "        type: simple\n"
        "      scale: 1\n"
        "    - mixer:\n"
        "        type: local\n"
        "        window: 32\n"
        "        dropout: null\n"
        "      scale: 0.5\n"
        "    - mixer:\n"
        "        type: conv\n"
        "        kernel: 3\n"
        "      scale: 2\n"
        "  head: null\n"
        "  norm:\n"
        "    type: layer\n"
        "    eps: 0.5\n"
        "train:\n"
        "  lr: 0.001\n"
        "  offset: 0\n"
        "  steps: 1000\n"
        "  warmup_steps: 10\n"
        "  ema: false\n");
  CHECK(to_yaml(SimpleMixer{}) == "{}\n");
}

TEST_CASE("a written config reads back as exactly the same values") {
  SUBCASE("text") {
    std::vector<std::string> texts = {"plain", "two words", " leading", "trailing ", "null",  "Null",        "~",
                                      "true",  "yes",       "No",       "3",         "1e-3",  ".5",          ".inf",
                                      ".nan",  "inf",       "-",        "- a",       "a: b",  "a:",          "a #b",
                                      "#",     "'",         "\"",       "\\",        "a\\nb", "line\nbreak", "\n",
                                      "tab\t", "\r\n",      "[a]",      "{a}",       "*a",    "&a",          "!a",
                                      "%a",    "@a",        "`a",       "?",         "? a",   "---",         "...",
                                      "--- a", "a,b",       "C:\\data", "a/b.txt",   "../x",  "0x10",        "1_000",
                                      "-a",    "+1",        "<<",       "=",         "|",     ">",           "012"};
    texts.insert(texts.end(),
                 {"é", "日本語", "\xF0\x9F\x98\x80", "\xC2\x85", "\xE2\x80\xA8", "\xEF\xBB\xBF", "\x01\x7F\x1B"});
    for (const std::string& text : texts) {
      INFO(text);
      Run run = valid_run();
      run.name = text;
      run.data.valid = text;
      run.data.train = {text, text};
      const Run back = round_trip(run);
      CHECK(back.name == text);
      CHECK(back.data.valid == text);
      CHECK(back.data.train == run.data.train);
    }
    Run run = valid_run();
    run.name = std::string(5000, 'x') + "\n\"" + std::string(5000, ' ') + "y";
    CHECK(round_trip(run).name == run.name);
  }
  SUBCASE("numbers") {
    using limits = std::numeric_limits<double>;
    for (const double value :
         {0.1, 1.0 / 3, 1e-300, limits::denorm_min(), limits::min(), 1e12, -1e12, 123456789012.0, -0.0}) {
      INFO(value);
      Run run = valid_run();
      run.train.offset = value;
      const double back = round_trip(run).train.offset;
      CHECK(back == value);
      CHECK(std::signbit(back) == std::signbit(value));
    }
    Run run = valid_run();
    for (const std::int64_t seed :
         {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
      run.seed = seed;
      CHECK(round_trip(run).seed == seed);
    }
  }
  SUBCASE("structure") {
    Run run = valid_run();
    run.model.layers = {Layer{LocalMixer{3, 0.25}, 7}, Layer{ConvMixer{9}, -1}, Layer{}};
    run.model.head = Layer{ConvMixer{2}, 4};
    run.model.mixer = SimpleMixer{};
    run.model.pooling = Pooling::cls;
    run.train.ema = true;
    CHECK(to_yaml(round_trip(run)) == to_yaml(run));
    CHECK(diff_configs(round_trip(run), run).empty());
  }
  SUBCASE("maps in a list in a list are on one line") {
    ConfigNode map{NodeKind::map}, inner{NodeKind::list}, outer{NodeKind::list}, root{NodeKind::map};
    map.children.push_back(scalar_node("1"));
    map.children.back().key = "a";
    inner.children.push_back(map);
    outer.children.push_back(inner);
    outer.key = "outer";
    root.children.push_back(outer);
    CHECK(write_yaml(root) == "outer: [[{a: 1}]]\n");
  }
}

TEST_CASE("differences name the key and both values") {
  const Run a = valid_run();
  Run b = a;
  CHECK(diff_configs(a, b).empty());
  b.name = "other";
  b.data.train.push_back("y: z");
  b.model.mixer = ConvMixer{3};
  b.model.layers[1].mixer = LocalMixer{5, std::nullopt};
  b.model.head = Layer{};
  b.model.norm.type = "rms";
  b.train.lr = 0.5;
  std::string text;
  for (const auto& difference : diff_configs(a, b))
    text += difference.path + ": " + difference.a + " -> " + difference.b + "\n";
  CHECK(text ==
        "name: run -> other\n"
        "data.train.1: absent -> \"y: z\"\n"
        "model.mixer: {type: local, window: 8, dropout: null} -> {type: conv, kernel: 3}\n"
        "model.layers.1.mixer.window: 32 -> 5\n"
        "model.head: null -> {mixer: {type: simple}, scale: 1}\n"
        "model.norm.type: layer -> rms\n"
        "train.lr: 0.001 -> 0.5\n");
  REQUIRE(diff_configs(b, a).size() == 7);
  CHECK(diff_configs(b, a)[1].b == "absent");
}

TEST_CASE("the table of keys") {
  CHECK(markdown_table(shortened(config_rows<Run>())) ==
        "| Key | Values | Default | Meaning |\n"
        "|---|---|---|---|\n"
        "| `name` | text not empty | `run` | name of the run folder |\n"
        "| `seed` | integer | `1` | seed of all randomness |\n"
        "| `data` | map |  | what to train on |\n"
        "| `data.train` | list: text not empty | must be given | files \\| folders |\n"
        "| `data.encoding` | utf-8, latin-1 | `utf-8` | how bytes become text |\n"
        "| `data.valid` | text not empty, or null | `null` | held-out file |\n"
        "| `data.betas` | list: number length exactly 2 | `[0.9, 0.999]` | decay rates |\n"
        "| `model` | map |  | what to train |\n"
        "| `model.width` | integer 1…4096 | `64` | model width D |\n"
        "| `model.pooling` | mean, cls | `mean` | how tokens become one vector |\n"
        "| `model.mixer` | type: simple, local, conv | `local` | mixer of all layers |\n"
        "| `model.mixer(local).window` | integer ≥1 | `8` | tokens seen to each side |\n"
        "| `model.mixer(local).dropout` | number 0…\\<1, or null | `null` | share of weights dropped |\n"
        "| `model.mixer(conv).kernel` | integer ≥1 | must be given | kernel length |\n"
        "| `model.layers` | list: map not empty | `[{mixer: {type: simple}, scale: 1}, {mixer: {type: local, window: "
        "32, dropout: null}, scale: 0.5}]` | layers one by one |\n"
        "| `model.layers.N.mixer` | type: simple, local, conv | `simple` | token mixer; its keys are those of "
        "`model.mixer`, with other defaults: window 32 |\n"
        "| `model.layers.N.scale` | number | `1` | residual scale |\n"
        "| `model.head` | map, or null | `null` | a last layer |\n"
        "| `model.head.mixer` | type: simple, local, conv | `simple` | token mixer; its keys are those of "
        "`model.mixer`, with other defaults: window 32 |\n"
        "| `model.head.scale` | number | `1` | residual scale |\n"
        "| `model.norm` | map |  | normalisation |\n"
        "| `model.norm.type` | layer, rms | `layer` | which statistics |\n"
        "| `model.norm.eps` | number >0 | `0.5` | added to them |\n"
        "| `train` | map |  | how to train |\n"
        "| `train.lr` | number >0 | `0.001` | peak learning rate |\n"
        "| `train.offset` | number | `0` | added to everything |\n"
        "| `train.steps` | integer ≥1 | `1000` | updates |\n"
        "| `train.warmup_steps` | integer ≥0 | `10` | linear warm-up |\n"
        "| `train.ema` | boolean | `false` | average the weights |\n");
}

TEST_CASE("the table of keys names defaults that differ between types") {
  const auto row = [](const std::string& path, const std::string& value) {
    return TableRow{path, "number", value, "", "about " + path.substr(path.rfind('.') + 1)};
  };
  const std::vector<TableRow> rows = {row("by(a).decay", "0.1"),   row("by(a).rate", "2"),
                                      row("by(b).decay", "1"),     row("by(c).decay", "0.1"),
                                      row("by(c).inner", ""),      row("by(c).inner.decay", "0.1"),
                                      row("by(c).inner.rate", "5")};
  std::string said;
  for (const TableRow& kept : shortened(rows)) said += kept.path + " " + kept.default_value + ": " + kept.help + "\n";
  CHECK(said ==
        "by(a, b, c).decay 0.1; b: 1: about decay\n"
        "by(a).rate 2: about rate\n"
        "by(c).inner : about inner; its keys are those of `by(a)`, with other defaults: rate 5\n");
}

TEST_CASE("the table of keys has a row for a key that several types share, and one struct once") {
  const auto row = [](const std::string& path, const std::string& help) {
    return TableRow{path, "number", "1", "", help};
  };
  std::vector<TableRow> rows;
  for (const std::string model : {"a", "b"})
    for (const std::string key : {"", ".N.mixer(x).k", ".N.mixer(y).k", ".N.mixer(y).own"})
      rows.push_back(row("model(" + model + ").layers" + key, key));
  rows.push_back(row("model(b).layers2", "others"));
  std::string paths;
  for (const TableRow& kept : shortened(rows)) paths += kept.path + "\n";
  // The same help for .k of x and of y would join them; here it differs.
  CHECK(paths ==
        "model(a, b).layers\n"
        "model(a).layers.N.mixer(x).k\n"
        "model(a).layers.N.mixer(y).k\n"
        "model(a).layers.N.mixer(y).own\n"
        "model(b).layers2\n");
  for (TableRow& one : rows) one.help = "one";
  CHECK(shortened(rows)[1].path == "model(a).layers.N.mixer(x, y).k");
}

TEST_CASE("a key is explained by its whole name or its last parts, and an unknown one by the nearest") {
  const std::vector<TableRow> rows = config_rows<Run>();
  CHECK(explain_key(rows, "train.lr") ==
        "train.lr\n  peak learning rate\n  number >0; default 0.001\n  for example: --set train.lr=0.001\n");
  CHECK(explain_key(rows, "model.layers.7.mixer.kernel") ==
        "model.layers.0.mixer.kernel (of conv)\n  kernel length\n  integer ≥1; must be given\n"
        "  for example: --set model.layers.0.mixer.kernel=VALUE\n");
  const std::string both = explain_key(rows, "scale");
  CHECK(both.find("model.layers.0.scale\n") != std::string::npos);
  CHECK(both.find("model.head.scale\n") != std::string::npos);
  CHECK_THROWS_WITH_AS(explain_key(rows, "train.lrr"),
                       "config explain: no key is called train.lrr, did you mean train.lr?", ConfigError);
  // Of another section: not the nearest section, which is no key to set.
  CHECK_THROWS_WITH_AS(explain_key(rows, "train.kernle"),
                       "config explain: no key is called train.kernle, did you mean kernel?", ConfigError);
}
