// Every way in which a configuration can be wrong, with the message that says so.
#include <doctest/doctest.h>

#include <algorithm>

#include "sample_config.hpp"
#include "tests/support/texts.hpp"
#include "train/configuration/train_config.hpp"

using namespace capstan;
using namespace capstan::sample;

namespace {

struct TextCase {
  std::string text, message;
};

std::string error_in_text(const std::string& text) {
  return error_of([&] { load_config_text<Run>(text, "a.yaml"); });
}

void check_texts(const std::vector<TextCase>& cases) {
  for (const auto& c : cases) {
    INFO(c.text);
    CHECK(error_in_text(c.text) == c.message);
  }
}

/// A valid text followed by `more`.
std::string with(const std::string& more) { return "data: {train: x.txt}\n" + more; }

/// Texts below a valid one, and the messages behind the name of the file.
void check_additions(std::vector<TextCase> cases) {
  for (TextCase& c : cases) c = {with(c.text), "a.yaml:" + c.message};
  check_texts(cases);
}

}  // namespace

TEST_CASE("a wrong value is reported with its place, its key, what was expected and what was given") {
  check_additions({
      {"model: {width: abc}", "2:16: model.width: expected a whole number (from 1 to 4096), got \"abc\""},
      {"model: {width: 3.5}", "2:16: model.width: expected a whole number (from 1 to 4096), got 3.5"},
      {"model: {width: 1e3}", "2:16: model.width: expected a whole number (from 1 to 4096), got 1e3"},
      {"model: {width: 1_000}", "2:16: model.width: expected a whole number (from 1 to 4096), got \"1_000\""},
      {"model: {width: -4}", "2:16: model.width: expected a whole number (from 1 to 4096), got -4"},
      {"model: {width: 4097}", "2:16: model.width: expected a whole number (from 1 to 4096), got 4097"},
      {"seed: 9223372036854775808",
       "2:7: seed: expected a whole number, got 9223372036854775808: out of range for this type"},
      {"seed: \"64\"", "2:7: seed: expected a whole number, got \"64\" in quotes: remove them"},
      {"seed: 0x10", "2:7: seed: expected a whole number, got \"0x10\""},
      {"seed: [1]", "2:7: seed: expected a whole number, got a list"},
      {"seed:", "2:1: seed: expected a whole number, got nothing"},
      {"seed: +-1", "2:7: seed: expected a whole number, got \"+-1\""},
      {"train: {lr: fast}", "2:13: train.lr: expected a number (greater than 0), got \"fast\""},
      {"train: {lr: 0}", "2:13: train.lr: expected a number (greater than 0), got 0"},
      {"train: {lr: .inf}", "2:13: train.lr: expected a number (greater than 0 and at most 1000000000000), got .inf"},
      {"train: {lr: 1e300}", "2:13: train.lr: expected a number (greater than 0 and at most 1000000000000), got 1e300"},
      {"train: {offset: -.inf}",
       "2:17: train.offset: expected a number (from -1000000000000 to 1000000000000), got -.inf"},
      {"train: {offset: .nan}",
       "2:17: train.offset: expected a number (from -1000000000000 to 1000000000000), got .nan"},
      {"train: {lr: nan}", "2:13: train.lr: expected a number (greater than 0 and at most 1000000000000), got nan"},
      {"train: {offset: 1e999}", "2:17: train.offset: expected a number, got 1e999: out of range for this type"},
      {"train: {lr: 1e-3x}", "2:13: train.lr: expected a number (greater than 0), got \"1e-3x\""},
      {"train:\n  lr: 0,1", "3:7: train.lr: expected a number (greater than 0), got \"0,1\""},
      {"model: {mixer: {type: local, dropout: 1}}",
       "2:39: model.mixer.dropout: expected a number (at least 0 and below 1), got 1"},
      {"train: {ema: yes}", "2:14: train.ema: expected true or false, got \"yes\": write true"},
      {"train: {ema: Off}", "2:14: train.ema: expected true or false, got \"Off\": write false"},
      {"train: {ema: 1}", "2:14: train.ema: expected true or false, got 1: write true"},
      {"train: {ema: 'true'}", "2:14: train.ema: expected true or false, got \"true\": write true"},
      {"train: {ema: maybe}", "2:14: train.ema: expected true or false, got \"maybe\""},
      {"name: [a]", "2:7: name: expected text (not empty), got a list"},
      {"name: {a: 1}", "2:7: name: expected text (not empty), got a map"},
      {"name: ''", "2:7: name: expected text (not empty), got \"\""},
      {"name:", "2:1: name: expected text (not empty), got nothing"},
      {"model: {pooling: Mean}", "2:18: model.pooling: expected one of (mean, cls), got \"Mean\", did you mean mean?"},
      {"model: {layers: {mixer: simple}}", "2:17: model.layers: expected a list (not empty), got a map"},
      {"train: 5", "2:8: train: expected a map of keys, got 5"},
      {"train:", "2:1: train: expected a map of keys, got nothing"},
      {"model: {layers: [5]}", "2:18: model.layers.0: expected a map of keys, got 5"},
      {"model: {mixer: locl}",
       "2:16: model.mixer: expected one of (simple, local, conv), got \"locl\", did you mean local?"},
      {"model: {mixer: {type: gru}}", "2:23: model.mixer.type: expected one of (simple, local, conv), got \"gru\""},
      {"model: {mixer: [local]}",
       "2:16: model.mixer: expected one of (simple, local, conv), or a map with one of them as its type, got a "
       "list"},
      {"seed: " + std::string(100, 'x'), "2:7: seed: expected a whole number, got \"" + std::string(60, 'x') + "...\""},
      {"seed: \"a\\x07\\n\\\"\"", "2:7: seed: expected a whole number, got \"a\\x07\\n\\\"\""},
  });
  check_texts({
      {with(""), "no error"},
      {"data: {train: x.txt, valid: ''}", "a.yaml:1:29: data.valid: expected text (not empty), got \"\""},
      {"data: {train: x.txt, encoding: utf8}",
       "a.yaml:1:32: data.encoding: expected one of (utf-8, latin-1), got \"utf8\", did you mean utf-8?"},
      {"data: {train: x.txt, encoding: ebcdic}",
       "a.yaml:1:32: data.encoding: expected one of (utf-8, latin-1), got \"ebcdic\""},
      {"data: {train: x.txt, betas: 0.9}", "a.yaml:1:29: data.betas: expected a list (length exactly 2), got 0.9"},
      {"data: {train: x.txt, betas: [0.9]}",
       "a.yaml:1:29: data.betas: expected a list (length exactly 2), got a list of 1"},
      {"data: {train: x.txt, betas: [0.9, b]}", "a.yaml:1:35: data.betas.1: expected a number, got \"b\""},
      {"data: {train: []}", "a.yaml:1:15: data.train: expected a list (not empty), got an empty list"},
      {"data: {train: [a, '']}", "a.yaml:1:19: data.train.1: expected text (not empty), got \"\""},
  });
}

TEST_CASE("unknown, duplicate and missing keys") {
  check_additions({
      {"train: {warmup_step: 5}", "2:9: train.warmup_step: unknown key, did you mean warmup_steps?"},
      {"train: {warmup: 5}", "2:9: train.warmup: unknown key, did you mean warmup_steps?"},
      {"modle: {}", "2:1: modle: unknown key, did you mean model?"},
      {"train: {batch: 5}", "2:9: train.batch: unknown key, known here: lr, offset, steps, warmup_steps, ema"},
      {"model: {mixer: {type: simple, window: 3}}",
       "2:31: model.mixer.window: unknown key for type simple, known here: type; the types are simple, local, "
       "conv"},
      {"\"a\\nb\": 1", "2:1: \"a\\nb\": unknown key, known here: name, seed, data, model, train"},
      {"train: {lr: 1, ema: true, lr: 2}", "2:27: train.lr: duplicate key (first given in line 2)"},
      {"seed: 1\nname: b\nseed: 2", "4:1: seed: duplicate key (first given in line 2)"},
      {"model: {layers: [{scale: 1, scale: 2}]}", "2:29: model.layers.0.scale: duplicate key (first given in line 2)"},
      {"model:\n  mixer: conv", "3:10: model.mixer.kernel: must be given: expected a whole number (at least 1)"},
      {"model:\n  layers:\n  - mixer: {type: conv}",
       "4:12: model.layers.0.mixer.kernel: must be given: expected a whole number (at least 1)"},
  });
  check_texts({
      {"seed: 1", "a.yaml: data.train: must be given: expected a list (not empty)"},
      {"seed: 1\ndata: {encoding: utf-8}", "a.yaml:2:7: data.train: must be given: expected a list (not empty)"},
  });
}

TEST_CASE("rules across fields name the place of the key they blame") {
  check_additions({
      {"train:\n  steps: 10\n  warmup_steps: 20", "4:17: train.warmup_steps: more than train.steps"},
      {"train:\n  steps: 5", "3:3: train.warmup_steps: more than train.steps"},
      {"model:\n  layers:\n  - simple_\n", "4:5: model.layers.0: expected a map of keys, got \"simple_\""},
      {"model:\n  layers:\n  - mixer:\n      type: local\n      window: 1000",
       "6:15: model.layers.0.mixer.window: longer than the context"},
      {"seed: 13", " no luck"},
      {"train:\n  steps: 0\n  warmup_steps: 20", "3:10: train.steps: expected a whole number (at least 1), got 0"},
  });
}

TEST_CASE("the settings of an optimizer: limits, unknown keys, those of the AdamW within Muon") {
  const auto error_of_optimizer = [](const std::string& settings) {
    return error_of([&] { load_config_text<TrainConfig>("steps: 1\noptimizer: " + settings, "a.yaml"); });
  };
  CHECK(error_of_optimizer("{type: muon, weight_decay: 0.2, adamw: {beta2: 0.99}}") == "no error");
  CHECK(error_of_optimizer("muon") == "no error");
  CHECK(error_of_optimizer("{type: muon, adamw: {beta1: 1}}") ==
        "a.yaml:2:40: optimizer.adamw.beta1: expected a number (at least 0 and below 1), got 1");
  CHECK(contains(error_of_optimizer("{type: muon, beta1: 0.9}"), "optimizer.beta1: unknown key"));
  CHECK(contains(error_of_optimizer("{type: muonn}"), "muon"));
}

TEST_CASE("text that is no configuration") {
  std::string deep_map, deep_list = "a: ", bomb = "a: &a0 [x, x]\n";
  for (int i = 0; i < 200; ++i) deep_map += "{a: ", deep_list += "[";
  deep_map += std::string(200, '}'), deep_list += std::string(200, ']');
  for (int i = 1; i < 40; ++i)
    bomb += "k" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + ", *a" +
            std::to_string(i - 1) + "]\n";
  check_additions({
      {"---\nseed: 1", "2:1: a second document begins here; only one is allowed"},
      {"model:\n  width:64",
       "3:3: model: expected a map of keys, got \"width:64\": a key's colon must be followed by a space"},
  });
  check_texts({
      {"", "a.yaml: contains no configuration: expected keys such as \"model:\""},
      {"# nothing\n", "a.yaml: contains no configuration: expected keys such as \"model:\""},
      {"~", "a.yaml: contains no configuration: expected keys such as \"model:\""},
      {"- a\n", "a.yaml:1:1: expected keys such as \"model:\" at the top, got a list"},
      {"model", "a.yaml:1:1: expected keys such as \"model:\" at the top, got \"model\""},
      {"train:\n\tlr: 1\n", "a.yaml:2:4: not valid YAML: illegal map value: line 2 is indented with a tab, use spaces"},
      {"data: {train: [a, b}\n", "a.yaml:1:20: not valid YAML: illegal flow end"},
      {"a: [0.9, 0.8\n", "a.yaml:3:1: not valid YAML: end of sequence flow not found"},
      {"seed: 1\nname: \"a\nmodel: {}\n", "a.yaml:2:1: not valid YAML: a quote opened here, or later, is never closed"},
      {"model:\n  layers: ['a, b]", "a.yaml:2:11: not valid YAML: a quote opened here, or later, is never closed"},
      {"seed:1",
       "a.yaml:1:1: expected keys such as \"model:\" at the top, got \"seed:1\": a key's colon must be followed by a "
       "space"},
      {"name: \"a\\0b\"", "a.yaml:1:7: text must not contain the character \\0"},
      {"data: {train: *.txt}",
       "a.yaml:1:15: not valid YAML: the referenced anchor is not defined: text that starts with * must be in quotes"},
      {"seed: *one",
       "a.yaml:1:7: not valid YAML: the referenced anchor is not defined: text that starts with * must be in quotes"},
      {"name: @me", "a.yaml:1:7: not valid YAML: unknown token: text that starts with @, ` or % must be in quotes"},
      {"seed: !!int 3", "a.yaml:1:7: tags (!name) are not supported; text that starts with ! must be in quotes"},
      {"train: !t {lr: 1}", "a.yaml:1:8: tags (!name) are not supported; text that starts with ! must be in quotes"},
      {"base: &b {lr: 1}\ntrain: {<<: *b}",
       "a.yaml:2:9: merge keys (<<) are not supported; give several files to --config instead"},
      {"a: &a [*a]", "a.yaml:1:8: an alias inside its own value"},
      {bomb, "a.yaml:12:12: more than 20000 values"},
      {deep_map, "a.yaml:1:257: nested deeper than 64 levels"},
      {deep_list, "a.yaml:1:67: nested deeper than 64 levels"},
      {"? [a]\n: b\n",
       "a.yaml:1:3: expected a key, got a list or map (text with braces or brackets must be in quotes)"},
      {": b\n", "a.yaml:1:1: expected a key, got nothing"},
      {"name: caf\xE9\n", "a.yaml:1:10: byte 0xe9 is not UTF-8 text"},
      {"seed: 1\nname: \xE0\x80\x80\n", "a.yaml:2:7: byte 0xe0 is not UTF-8 text"},
      {"name: \xED\xA0\x80\n", "a.yaml:1:7: byte 0xed is not UTF-8 text"},
      {"name: \xC3", "a.yaml:1:7: byte 0xc3 is not UTF-8 text"},
      {std::string("\xFF\xFEn\0", 4), "a.yaml:1:1: byte 0xff is not UTF-8 text"},
      {std::string("name: a\0b", 9), "a.yaml:1:8: byte 0x00 is not allowed in YAML"},
  });
}

TEST_CASE("everything wrong is reported at once, in the order of the text") {
  CHECK(error_in_text("train:\n"
                      "  lr: fast\n"
                      "  warmup: 3\n"
                      "  steps: 0\n"
                      "  steps: 1\n"
                      "name: []\n") ==
        "a.yaml: data.train: must be given: expected a list (not empty)\n"
        "a.yaml:2:7: train.lr: expected a number (greater than 0), got \"fast\"\n"
        "a.yaml:3:3: train.warmup: unknown key, did you mean warmup_steps?\n"
        "a.yaml:4:10: train.steps: expected a whole number (at least 1), got 0\n"
        "a.yaml:5:3: train.steps: duplicate key (first given in line 4)\n"
        "a.yaml:6:7: name: expected text (not empty), got an empty list");
  std::string many;
  for (int i = 0; i < 150; ++i) many += "unknown" + std::to_string(i) + ": 1\n";
  const std::string message = error_in_text(with(many));
  CHECK(std::count(message.begin(), message.end(), '\n') == 100);
  CHECK(message.substr(message.rfind('\n') + 1) == "... and 50 more");
}

TEST_CASE("problems of several files and overrides come in the order of the command line") {
  const TextFile first("train:\n  lr: fast\ndata: {train: x}\n"), second("seed: a\nmodel: {width: 0}\n");
  const auto message = error_of([&] {
    load_config<Run>({second.path(), first.path()}, {"train.steps=0", "model.wdith=3", "train.ema=on"});
  });
  CHECK(message == second.path() + ":1:7: seed: expected a whole number, got \"a\"\n" +  //
                       second.path() + ":2:16: model.width: expected a whole number (from 1 to 4096), got 0\n" +
                       first.path() + ":2:7: train.lr: expected a number (greater than 0), got \"fast\"\n" +
                       "--set train.steps=0: expected a whole number (at least 1), got 0\n"
                       "--set model.wdith=3: unknown key, did you mean width?\n"
                       "--set train.ema=on: expected true or false, got \"on\": write true");
}

TEST_CASE("a map that an override merges into a value is blamed on that override") {
  const TextFile file("name: a\ntrain: {lr: 1}\ndata: {train: x}\n");
  const auto message = [&](const std::vector<std::string>& overrides) {
    return error_of([&] { load_config<Run>({file.path()}, overrides); });
  };
  CHECK(message({"name=zz", "name={a: b}"}) == "--set name={a: b}: expected text (not empty), got a map");
  CHECK(message({"train.lr={a: b}", "seed=1"}) ==
        "--set train.lr={a: b}: expected a number (greater than 0), got a map");
  CHECK(message({"train.lr.a.b=1", "train.lr.c=2"}) ==
        "--set train.lr.c=2: train.lr: expected a number (greater than 0), got a map");
  CHECK(message({"name={a: b}", "name=zz"}) == "no error");
}

TEST_CASE("overrides that cannot be applied") {
  struct OverrideCase {
    std::string override, message;
  };
  const TextFile base("data: {train: x.txt}\n");
  std::string deep = "a";
  for (int i = 0; i < 100; ++i) deep += ".a";
  for (const auto& c : std::vector<OverrideCase>{
           {"model.width=abc", "--set model.width=abc: expected a whole number (from 1 to 4096), got \"abc\""},
           {"model.width=", "--set model.width=: expected a whole number (from 1 to 4096), got nothing"},
           {"model={width: abc}",
            "--set model={width: abc}: model.width: expected a whole number (from 1 to 4096), got \"abc\""},
           {"modle.width=3", "--set modle.width=3: modle: unknown key, did you mean model?"},
           {"train.lr.x=3", "--set train.lr.x=3: train.lr: expected a number (greater than 0), got a map"},
           {"train={}", "no error"},
           {"train.steps=5", "--set train.steps=5: train.warmup_steps: more than train.steps"},
           {"model.width", "--set \"model.width\": expected path.to.key=value"},
           {"=3", "--set \"=3\": expected path.to.key=value"},
           {"", "--set \"\": expected path.to.key=value"},
           {"model..width=3", "--set \"model..width=3\": expected path.to.key=value"},
           {".model=3", "--set \".model=3\": expected path.to.key=value"},
           {deep + "=1", "--set \"" + deep.substr(0, 200) + "...\": expected path.to.key=value"},
           {"model.layers.2.scale=3",
            "--set model.layers.2.scale=3: there is no list element 2: the list has 2, counted from 0"},
           {"model.layers.-1.scale=3",
            "--set model.layers.-1.scale=3: there is no list element -1: the list has 2, counted from 0"},
           {"model.layers.x.scale=3", "--set model.layers.x.scale=3: expected a list index, got \"x\""},
           {"model.layers.0.scal=3", "--set model.layers.0.scal=3: unknown key, did you mean scale?"},
           {"model.layers.1.mixer.window=0",
            "--set model.layers.1.mixer.window=0: expected a whole number (at least 1), got 0"},
           {"model.layers.0.mixer.window=9",
            "--set model.layers.0.mixer.window=9: unknown key for type simple, known here: type; the types are simple, "
            "local, conv"},
           {"model.mixer.type=conv",
            "--set model.mixer.type=conv: model.mixer.kernel: must be given: expected a whole number (at least 1)"},
           {"data.train=*.txt",
            "--set data.train=*.txt: not valid YAML: the referenced anchor is not defined: text that starts with * "
            "must be in "
            "quotes"},
           {"name={a: 1, a: 2}",
            "--set name={a: 1, a: 2}: name.a: duplicate key\n--set name={a: 1, a: 2}: expected text (not empty), got a "
            "map"},
           {"name=\xFF", "--set name=\xFF: byte 0xff is not UTF-8 text"},
       }) {
    INFO(c.override);
    CHECK(error_of([&] { load_config<Run>({base.path()}, {c.override}); }) == c.message);
  }
}

TEST_CASE("files that cannot be read") {
  const TextFile good("data: {train: x.txt}\n"), huge(std::string((1 << 20) + 1, '#'));
  const TemporaryFolder place;
  const std::string folder = place.path();
  struct FileCase {
    std::string path, message;
  };
  for (const auto& c : std::vector<FileCase>{
           {"no-such.yaml", "no-such.yaml: cannot read this configuration file: no such file"},
           {folder, folder + ": cannot read this configuration file: is a folder"},
           {good.path() + "/below", good.path() + "/below: cannot read this configuration file: no such file"},
           {huge.path(), huge.path() + ": larger than 1048576 bytes: this is not a configuration file"},
           {"/dev/zero", "/dev/zero: cannot read this configuration file: is a device"},
           {"", ": cannot read this configuration file: no such file"},
       }) {
    INFO(c.path);
    CHECK(error_of([&] { load_config<Run>({good.path(), c.path}); }) == c.message);
  }
  CHECK(error_of([] { load_config<Run>({}); }) ==
        "configuration: data.train: must be given: expected a list (not empty)");
  CHECK(error_of([] {
          load_config<Run>({"a.none", "b.none"}, {"x"});
        }) ==
        "a.none: cannot read this configuration file: no such file\n"
        "b.none: cannot read this configuration file: no such file");
}
