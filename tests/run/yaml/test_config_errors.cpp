// Every way in which a configuration can be wrong, with the message that says so.
#include <doctest/doctest.h>

#include <algorithm>

#include "sample_config.hpp"
#include "train/configuration/train_config.hpp"

using namespace capstan;
using namespace capstan::sample;

namespace {

struct TextCase {
  std::string what, text;
  std::string message;
};

std::string error_in_text(const std::string& text) {
  return error_of([&] { load_config_text<Run>(text, "a.yaml"); });
}

void check_cases(const std::vector<TextCase>& cases) {
  for (const auto& c : cases) {
    INFO(c.what);
    CHECK(error_in_text(c.text) == c.message);
  }
}

/// A valid text followed by `more`.
std::string with(const std::string& more) { return "data: {train: x.txt}\n" + more; }

}  // namespace

TEST_CASE("a wrong value is reported with its place, its key, what was expected and what was given") {
  check_cases({
      {"valid", with(""), "no error"},
      {"integer: text", with("model: {width: abc}"),
       "a.yaml:2:16: model.width: expected a whole number (from 1 to 4096), got \"abc\""},
      {"integer: fraction", with("model: {width: 3.5}"),
       "a.yaml:2:16: model.width: expected a whole number (from 1 to 4096), got 3.5"},
      {"integer: exponent", with("model: {width: 1e3}"),
       "a.yaml:2:16: model.width: expected a whole number (from 1 to 4096), got 1e3"},
      {"integer: separator", with("model: {width: 1_000}"),
       "a.yaml:2:16: model.width: expected a whole number (from 1 to 4096), got \"1_000\""},
      {"integer: below", with("model: {width: -4}"),
       "a.yaml:2:16: model.width: expected a whole number (from 1 to 4096), got -4"},
      {"integer: above", with("model: {width: 4097}"),
       "a.yaml:2:16: model.width: expected a whole number (from 1 to 4096), got 4097"},
      {"integer: overflow", with("seed: 9223372036854775808"),
       "a.yaml:2:7: seed: expected a whole number, got 9223372036854775808: out of range for this type"},
      {"integer: quoted", with("seed: \"64\""),
       "a.yaml:2:7: seed: expected a whole number, got \"64\" in quotes: remove them"},
      {"integer: hexadecimal", with("seed: 0x10"), "a.yaml:2:7: seed: expected a whole number, got \"0x10\""},
      {"integer: list", with("seed: [1]"), "a.yaml:2:7: seed: expected a whole number, got a list"},
      {"integer: empty", with("seed:"), "a.yaml:2:1: seed: expected a whole number, got nothing"},
      {"integer: two signs", with("seed: +-1"), "a.yaml:2:7: seed: expected a whole number, got \"+-1\""},
      {"number: text", with("train: {lr: fast}"),
       "a.yaml:2:13: train.lr: expected a number (greater than 0), got \"fast\""},
      {"number: limit excluded", with("train: {lr: 0}"),
       "a.yaml:2:13: train.lr: expected a number (greater than 0), got 0"},
      {"number: inf", with("train: {lr: .inf}"),
       "a.yaml:2:13: train.lr: expected a number (greater than 0 and at most 1000000000000), got .inf"},
      {"number: huge", with("train: {lr: 1e300}"),
       "a.yaml:2:13: train.lr: expected a number (greater than 0 and at most 1000000000000), got 1e300"},
      {"number: without limits of its own", with("train: {offset: -.inf}"),
       "a.yaml:2:17: train.offset: expected a number (from -1000000000000 to 1000000000000), got -.inf"},
      {"number: nan", with("train: {offset: .nan}"),
       "a.yaml:2:17: train.offset: expected a number (from -1000000000000 to 1000000000000), got .nan"},
      {"number: nan", with("train: {lr: nan}"),
       "a.yaml:2:13: train.lr: expected a number (greater than 0 and at most 1000000000000), got nan"},
      {"number: too large", with("train: {offset: 1e999}"),
       "a.yaml:2:17: train.offset: expected a number, got 1e999: out of range for this type"},
      {"number: trailing text", with("train: {lr: 1e-3x}"),
       "a.yaml:2:13: train.lr: expected a number (greater than 0), got \"1e-3x\""},
      {"number: decimal comma", with("train:\n  lr: 0,1"),
       "a.yaml:3:7: train.lr: expected a number (greater than 0), got \"0,1\""},
      {"number: upper limit excluded", with("model: {mixer: {type: local, dropout: 1}}"),
       "a.yaml:2:39: model.mixer.dropout: expected a number (at least 0 and below 1), got 1"},
      {"bool: yes", with("train: {ema: yes}"),
       "a.yaml:2:14: train.ema: expected true or false, got \"yes\": write true"},
      {"bool: off", with("train: {ema: Off}"),
       "a.yaml:2:14: train.ema: expected true or false, got \"Off\": write false"},
      {"bool: 1", with("train: {ema: 1}"), "a.yaml:2:14: train.ema: expected true or false, got 1: write true"},
      {"bool: quoted", with("train: {ema: 'true'}"),
       "a.yaml:2:14: train.ema: expected true or false, got \"true\": write true"},
      {"bool: text", with("train: {ema: maybe}"), "a.yaml:2:14: train.ema: expected true or false, got \"maybe\""},
      {"text: list", with("name: [a]"), "a.yaml:2:7: name: expected text (not empty), got a list"},
      {"text: map", with("name: {a: 1}"), "a.yaml:2:7: name: expected text (not empty), got a map"},
      {"text: empty", with("name: ''"), "a.yaml:2:7: name: expected text (not empty), got \"\""},
      {"text: nothing", with("name:"), "a.yaml:2:1: name: expected text (not empty), got nothing"},
      {"optional text: empty", "data: {train: x.txt, valid: ''}",
       "a.yaml:1:29: data.valid: expected text (not empty), got \"\""},
      {"choice", "data: {train: x.txt, encoding: utf8}",
       "a.yaml:1:32: data.encoding: expected one of (utf-8, latin-1), got \"utf8\", did you mean utf-8?"},
      {"choice: nothing near", "data: {train: x.txt, encoding: ebcdic}",
       "a.yaml:1:32: data.encoding: expected one of (utf-8, latin-1), got \"ebcdic\""},
      {"enum", with("model: {pooling: Mean}"),
       "a.yaml:2:18: model.pooling: expected one of (mean, cls), got \"Mean\", did you mean mean?"},
      {"list: scalar", "data: {train: x.txt, betas: 0.9}",
       "a.yaml:1:29: data.betas: expected a list (length exactly 2), got 0.9"},
      {"list: length", "data: {train: x.txt, betas: [0.9]}",
       "a.yaml:1:29: data.betas: expected a list (length exactly 2), got a list of 1"},
      {"list: element", "data: {train: x.txt, betas: [0.9, b]}",
       "a.yaml:1:35: data.betas.1: expected a number, got \"b\""},
      {"list: empty", "data: {train: []}", "a.yaml:1:15: data.train: expected a list (not empty), got an empty list"},
      {"list: empty text within", "data: {train: [a, '']}",
       "a.yaml:1:19: data.train.1: expected text (not empty), got \"\""},
      {"list: map", with("model: {layers: {mixer: simple}}"),
       "a.yaml:2:17: model.layers: expected a list (not empty), got a map"},
      {"struct: scalar", with("train: 5"), "a.yaml:2:8: train: expected a map of keys, got 5"},
      {"struct: nothing", with("train:"), "a.yaml:2:1: train: expected a map of keys, got nothing"},
      {"struct in list: scalar", with("model: {layers: [5]}"),
       "a.yaml:2:18: model.layers.0: expected a map of keys, got 5"},
      {"variant: unknown name", with("model: {mixer: locl}"),
       "a.yaml:2:16: model.mixer: expected one of (simple, local, conv), got \"locl\", did you mean local?"},
      {"variant: unknown type", with("model: {mixer: {type: gru}}"),
       "a.yaml:2:23: model.mixer.type: expected one of (simple, local, conv), got \"gru\""},
      {"variant: list", with("model: {mixer: [local]}"),
       "a.yaml:2:16: model.mixer: expected one of (simple, local, conv), or a map with one of them as its type, got a "
       "list"},
      {"long text is cut", with("seed: " + std::string(100, 'x')),
       "a.yaml:2:7: seed: expected a whole number, got \"" + std::string(60, 'x') + "...\""},
      {"control characters are shown as escapes", with("seed: \"a\\x07\\n\\\"\""),
       "a.yaml:2:7: seed: expected a whole number, got \"a\\x07\\n\\\"\""},
  });
}

TEST_CASE("unknown, duplicate and missing keys") {
  check_cases({
      {"misspelt", with("train: {warmup_step: 5}"),
       "a.yaml:2:9: train.warmup_step: unknown key, did you mean warmup_steps?"},
      {"shortened", with("train: {warmup: 5}"), "a.yaml:2:9: train.warmup: unknown key, did you mean warmup_steps?"},
      {"letters swapped", with("modle: {}"), "a.yaml:2:1: modle: unknown key, did you mean model?"},
      {"nothing near", with("train: {batch: 5}"),
       "a.yaml:2:9: train.batch: unknown key, known here: lr, offset, steps, warmup_steps, ema"},
      {"for this type", with("model: {mixer: {type: simple, window: 3}}"),
       "a.yaml:2:31: model.mixer.window: unknown key for type simple, known here: type; the types are simple, local, "
       "conv"},
      {"not a word", with("\"a\\nb\": 1"),
       "a.yaml:2:1: \"a\\nb\": unknown key, known here: name, seed, data, model, train"},
      {"duplicate", with("train: {lr: 1, ema: true, lr: 2}"),
       "a.yaml:2:27: train.lr: duplicate key (first given in line 2)"},
      {"duplicate at the top", with("seed: 1\nname: b\nseed: 2"),
       "a.yaml:4:1: seed: duplicate key (first given in line 2)"},
      {"duplicate in a list", with("model: {layers: [{scale: 1, scale: 2}]}"),
       "a.yaml:2:29: model.layers.0.scale: duplicate key (first given in line 2)"},
      {"not given at all", "seed: 1", "a.yaml: data.train: must be given: expected a list (not empty)"},
      {"not given in its section", "seed: 1\ndata: {encoding: utf-8}",
       "a.yaml:2:7: data.train: must be given: expected a list (not empty)"},
      {"not given in a variant", with("model:\n  mixer: conv"),
       "a.yaml:3:10: model.mixer.kernel: must be given: expected a whole number (at least 1)"},
      {"not given in a list", with("model:\n  layers:\n  - mixer: {type: conv}"),
       "a.yaml:4:12: model.layers.0.mixer.kernel: must be given: expected a whole number (at least 1)"},
  });
}

TEST_CASE("rules across fields name the place of the key they blame") {
  check_cases({
      {"given", with("train:\n  steps: 10\n  warmup_steps: 20"),
       "a.yaml:4:17: train.warmup_steps: more than train.steps"},
      {"a default is blamed at its section", with("train:\n  steps: 5"),
       "a.yaml:3:3: train.warmup_steps: more than train.steps"},
      {"deep path", with("model:\n  layers:\n  - simple_\n"),
       "a.yaml:4:5: model.layers.0: expected a map of keys, got \"simple_\""},
      {"deep path in a list", with("model:\n  layers:\n  - mixer:\n      type: local\n      window: 1000"),
       "a.yaml:6:15: model.layers.0.mixer.window: longer than the context"},
      {"the struct itself", with("seed: 13"), "a.yaml: no luck"},
      {"not asked about broken values", with("train:\n  steps: 0\n  warmup_steps: 20"),
       "a.yaml:3:10: train.steps: expected a whole number (at least 1), got 0"},
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
  CHECK(error_of_optimizer("{type: muon, beta1: 0.9}").find("optimizer.beta1: unknown key") != std::string::npos);
  CHECK(error_of_optimizer("{type: muonn}").find("muon") != std::string::npos);
}

TEST_CASE("text that is no configuration") {
  std::string deep_map, deep_list = "a: ", bomb = "a: &a0 [x, x]\n";
  for (int i = 0; i < 200; ++i) deep_map += "{a: ", deep_list += "[";
  deep_map += std::string(200, '}'), deep_list += std::string(200, ']');
  for (int i = 1; i < 40; ++i)
    bomb += "k" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) + ", *a" +
            std::to_string(i - 1) + "]\n";
  check_cases({
      {"empty", "", "a.yaml: contains no configuration: expected keys such as \"model:\""},
      {"comments only", "# nothing\n", "a.yaml: contains no configuration: expected keys such as \"model:\""},
      {"null", "~", "a.yaml: contains no configuration: expected keys such as \"model:\""},
      {"list", "- a\n", "a.yaml:1:1: expected keys such as \"model:\" at the top, got a list"},
      {"scalar", "model", "a.yaml:1:1: expected keys such as \"model:\" at the top, got \"model\""},
      {"two documents", with("---\nseed: 1"), "a.yaml:2:1: a second document begins here; only one is allowed"},
      {"tab", "train:\n\tlr: 1\n",
       "a.yaml:2:4: not valid YAML: illegal map value: line 2 is indented with a tab, use spaces"},
      {"bracket not closed", "data: {train: [a, b}\n", "a.yaml:1:20: not valid YAML: illegal flow end"},
      {"bracket not closed at the end", "a: [0.9, 0.8\n", "a.yaml:3:1: not valid YAML: end of sequence flow not found"},
      {"quote not closed", "seed: 1\nname: \"a\nmodel: {}\n",
       "a.yaml:2:1: not valid YAML: a quote opened here, or later, is never closed"},
      {"quote not closed in a list", "model:\n  layers: ['a, b]",
       "a.yaml:2:11: not valid YAML: a quote opened here, or later, is never closed"},
      {"no space after the colon", "seed:1",
       "a.yaml:1:1: expected keys such as \"model:\" at the top, got \"seed:1\": a key's colon must be followed by a "
       "space"},
      {"no space after a nested colon", with("model:\n  width:64"),
       "a.yaml:3:3: model: expected a map of keys, got \"width:64\": a key's colon must be followed by a space"},
      {"zero character", "name: \"a\\0b\"", "a.yaml:1:7: text must not contain the character \\0"},
      {"star", "data: {train: *.txt}",
       "a.yaml:1:15: not valid YAML: the referenced anchor is not defined: text that starts with * must be in quotes"},
      {"unknown alias", "seed: *one",
       "a.yaml:1:7: not valid YAML: the referenced anchor is not defined: text that starts with * must be in quotes"},
      {"at sign", "name: @me",
       "a.yaml:1:7: not valid YAML: unknown token: text that starts with @, ` or % must be in quotes"},
      {"tag", "seed: !!int 3", "a.yaml:1:7: tags (!name) are not supported; text that starts with ! must be in quotes"},
      {"tagged map", "train: !t {lr: 1}",
       "a.yaml:1:8: tags (!name) are not supported; text that starts with ! must be in quotes"},
      {"merge key", "base: &b {lr: 1}\ntrain: {<<: *b}",
       "a.yaml:2:9: merge keys (<<) are not supported; give several files to --config instead"},
      {"alias of itself", "a: &a [*a]", "a.yaml:1:8: an alias inside its own value"},
      {"alias bomb", bomb, "a.yaml:12:12: more than 20000 values"},
      {"deep maps", deep_map, "a.yaml:1:257: nested deeper than 64 levels"},
      {"deep lists", deep_list, "a.yaml:1:67: nested deeper than 64 levels"},
      {"key is a list", "? [a]\n: b\n",
       "a.yaml:1:3: expected a key, got a list or map (text with braces or brackets must be in quotes)"},
      {"key is nothing", ": b\n", "a.yaml:1:1: expected a key, got nothing"},
      {"not UTF-8", "name: caf\xE9\n", "a.yaml:1:10: byte 0xe9 is not UTF-8 text"},
      {"overlong UTF-8", "seed: 1\nname: \xE0\x80\x80\n", "a.yaml:2:7: byte 0xe0 is not UTF-8 text"},
      {"UTF-8 surrogate", "name: \xED\xA0\x80\n", "a.yaml:1:7: byte 0xed is not UTF-8 text"},
      {"UTF-8 cut off", "name: \xC3", "a.yaml:1:7: byte 0xc3 is not UTF-8 text"},
      {"UTF-16", std::string("\xFF\xFEn\0", 4), "a.yaml:1:1: byte 0xff is not UTF-8 text"},
      {"binary", std::string("name: a\0b", 9), "a.yaml:1:8: byte 0x00 is not allowed in YAML"},
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
