// Masked language models and pairs from training to prediction, and what predict, score, embed and generate read and
// print.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

constexpr const char* masked_yaml = R"(name: masked
data: {type: text, train: [text], valid_fraction: 0.2, sequence_length: 16, documents: line,
       tokenizer: {type: word, min_count: 1}}
model:
  type: masked-language-model
  width: 16
  max_length: 16
  layers:
    - {mixer: {type: aft-simple}, feed_forward: {type: gelu, expansion: 2}}
train: {steps: 6, batch_size: 4, valid_every: 3, log_every: 1, save_every: 2, keep_last: 2, keep_optimizer: true, progress: plain,
        schedule: {shape: constant}}
)";

constexpr const char* pairs_yaml = R"(name: pairs
data: {type: pairs, train: [pairs.tsv], valid: [pairs.tsv], max_length: 24, max_source: 8, tokenizer: word}
model:
  type: language-model
  prefix: bidirectional
  width: 32
  max_length: 24
  positions: learned
  layers:
    - mixer: {type: gau, key_dim: 16, position_bias: rotary}
      feed_forward: {type: none}
      norm: scale
      repeat: 2
train: {steps: 300, batch_size: 8, lr: 5e-3, valid_every: 100, log_every: 100, progress: plain}
)";

/// The first two of three words: a task that is learnt in a second.
std::string doubled_pairs() {
  const Words names = "red blue green grey";
  std::string rows;
  for (const std::string& a : names)
    for (const std::string& b : names)
      for (const std::string& c : names) rows += a + " " + b + " " + c + "\t" + a + " " + b + "\n";
  return rows;
}

const Workplace& trained() {
  return made_once([](const Workplace& place) {
    write_samples(place);
    place.write("masked.yaml", masked_yaml);
    place.write("pairs.yaml", pairs_yaml);
    place.write("pairs.tsv", doubled_pairs());
    for (const char* const config : {"masked.yaml", "pairs.yaml", "classifier.yaml", "lm.yaml"})
      succeed(place, {"train", "--config", config});
  });
}

TEST_CASE("masked language model: eval and predict") {
  const Workplace& place = trained();
  const std::string text = succeed(place, "eval runs/masked").out;
  CHECK(number_of(text, "targets") > 10);
  CHECK(number_of(text, "perplexity") == doctest::Approx(std::exp(number_of(text, "loss"))).epsilon(1e-3));
  CHECK(!contains(text, "bits_per_byte"));
  // The blanks are the same whatever the batch size.
  const std::string other = succeed(place, "eval runs/masked --set train.batch_size=1").out;
  CHECK(number_of(other, "targets") == number_of(text, "targets"));
  CHECK(std::abs(number_of(other, "loss") - number_of(text, "loss")) <= 2e-6);

  const Words lines =
      lines_of(succeed(place, "predict runs/masked -k 2 --echo", "the <mask> and a <mask>\n<mask>\n").out);
  REQUIRE(lines.size() == 2);
  const Words row = cells(lines[0]);
  REQUIRE(row.size() == 1 + 2 * 2 * 2 + 1);
  CHECK(row[0] == "the " + row[1] + " and a " + row[5]);
  CHECK(std::stod(row[2]) >= std::stod(row[4]));
  CHECK(row.back() == "the <mask> and a <mask>");
  const std::string json = succeed(place, "predict runs/masked --format jsonl --blank ___", "the ___ <mask>\n").out;
  const auto line = nlohmann::json::parse(json);
  REQUIRE(line["blanks"].size() == 1);
  CHECK(line["filled"] == "the " + line["blanks"][0][0]["token"].get<std::string>() + " <mask>");
  check_refused(place, "no blank", "predict runs/masked", "stdin:1 ... --blank", 1, "the tape\n");
  check_refused(place, "labels for blanks", "predict runs/masked --errors pairs.tsv", "--errors", 2);
  check_refused(place, "generate", "generate runs/masked", "needs a language-model ... capstan predict");
}

TEST_CASE("masked language model: blanks of a text of any length are filled from the tokens around them") {
  const Workplace& place = trained();
  const auto blanks = [&](const std::string& text) {
    return nlohmann::json::parse(succeed(place, "predict runs/masked --format jsonl", text + "\n").out)["blanks"];
  };
  std::string words;  // more than a window of 16 tokens
  for (int i = 0; i < 3000; ++i) words += "the sea and a tape ";
  CHECK(blanks("the <mask> " + words).size() == 1);
  const auto three = blanks("the <mask> " + words + "<mask> " + words + " <mask>");
  REQUIRE(three.size() == 3);
  // Three blanks are one batch. With OPENBLAS_CORETYPE=Haswell, products of other numbers of rows are rounded
  // otherwise, here by less than 1e-7 (version 0.1, too); with the kernels for AVX-512 the results were equal.
  const auto same = [](const nlohmann::json& a, const nlohmann::json& b) {
    return a[0]["token"] == b[0]["token"] &&
           std::abs(a[0]["probability"].get<double>() - b[0]["probability"].get<double>()) < 1e-7;
  };
  CHECK(same(three[0], blanks("the <mask> " + words)[0]));
  CHECK(same(three[1], blanks(words + "<mask> " + words)[0]));
  CHECK(same(three[2], blanks(words + " <mask>")[0]));
}

TEST_CASE("masked language model of labelled data: eval and predict") {
  const Workplace& place = trained();
  place.write("masked-labelled.yaml", R"(name: masked-labelled
data: {type: labelled, train: [train.tsv], valid_fraction: 0.2, max_length: 16, tokenizer: {type: word, min_count: 1}}
model: {type: masked-language-model, width: 16, max_length: 16, layers: [{mixer: {type: aft-simple}}]}
train: {steps: 4, batch_size: 4, progress: plain}
)");
  succeed(place, "train --config masked-labelled.yaml");
  CHECK(number_of(succeed(place, "eval runs/masked-labelled").out, "targets") >= 1);
  CHECK(lines_of(succeed(place, "predict runs/masked-labelled", "the <mask>\n").out).size() == 1);
  succeed(place, "inspect runs/masked-labelled");
}

TEST_CASE("masked language model of labelled data: one label, or none, is enough") {
  const Workplace place;
  std::string texts, rows;
  for (int i = 0; i < 40; ++i) texts += "\tthe old tape turns " + std::to_string(i % 7) + "\n";
  for (const std::string& line : lines_of(texts)) rows += "news" + line + "\n";
  place.write("one.tsv", rows);
  place.write("none.tsv", texts);
  place.write("masked.yaml", R"(name: one
data: {type: labelled, train: [one.tsv], valid: [one.tsv], max_length: 16, tokenizer: {type: word, min_count: 1}}
model: {type: masked-language-model, width: 16, max_length: 16, layers: [{mixer: {type: aft-simple}}]}
train: {steps: 2, batch_size: 4, progress: plain}
)");
  const Words check{"data", "check", "--config", "masked.yaml"}, train{"train", "--config", "masked.yaml", "--set"};
  succeed(place, check);
  succeed(place, train + "name=one");
  succeed(place, train + "name=named data.classes=[news,sport]");
  succeed(place, train + "name=several data.multi_label=true");
  succeed(place, train + "name=none data.multi_label=true data.train=[none.tsv] data.valid=[none.tsv]");
  for (const char* const run : {"runs/one", "runs/none"}) {
    CHECK(number_of(succeed(place, {"eval", run}).out, "targets") >= 1);
    succeed(place, {"predict", run}, "the <mask>\n");
  }
  for (const Words& command : {check, Words{"train", "--config", "masked.yaml"}})
    check_refused(place, "a classifier",
                  command + Words{"--set", "model={type: text-classifier, layers: [{mixer: aft-simple}]}"},
                  "one.tsv ... 'news' ... a classifier needs at least two classes");
}

TEST_CASE("masked language model: an interrupted run ends as one that was not") {
  const Workplace& place = trained();
  succeed(place, "train --config masked.yaml --set name=parts --set train.steps=4");
  succeed(place, "train --config masked.yaml --set name=parts");
  CHECK(place.read(model_of("parts", "step-6")) == place.read(model_of("masked", "step-6")));
  // The texts of labelled data serve as well, with the tokenizer that a classifier on them has.
  place.write("labelled.yaml", R"(name: on-labelled
data: {type: labelled, train: [train.tsv], valid_fraction: 0.2, max_length: 16, tokenizer: char}
model: {type: masked-language-model, width: 16, max_length: 16, layers: [{mixer: {type: fastformer}}]}
train: {steps: 2, batch_size: 4, progress: none}
)");
  succeed(place, "train --config labelled.yaml");
  CHECK(place.read("runs/on-labelled/tokenizer.json") == place.read("runs/classifier/tokenizer.json"));
}

TEST_CASE("pairs: eval and predict") {
  const Workplace& place = trained();
  const std::string text = succeed(place, "eval runs/pairs").out;
  CHECK(number_of(text, "pairs") == 64);
  CHECK(number_of(text, "targets") == 192);  // two words and the end
  CHECK(number_of(text, "exact_match") > 0.5);
  const std::string beam = succeed(place, "eval runs/pairs --beam 4").out;
  CHECK(number_of(beam, "log_probability") >= number_of(text, "log_probability") - 1e-4);

  const std::string input = "red blue green\ngrey red\n\nblue blue blue blue blue blue blue blue blue blue\n";
  const Words greedy = lines_of(succeed(place, "predict runs/pairs --echo", input).out);
  REQUIRE(greedy.size() == 4);
  CHECK(cells(greedy[0]) == Words{"red blue", "red blue green"});
  // Results do not depend on the batch.
  CHECK(lines_of(succeed(place, "predict runs/pairs --echo --batch-size 1", input).out) == greedy);
  const auto best =
      nlohmann::json::parse(succeed(place, "predict runs/pairs --beam 3 -k 3 --format jsonl", "red blue green\n").out);
  CHECK(best["completion"] == "red blue");
  REQUIRE(best["completions"].size() == 3);
  CHECK(best["completions"][1]["log_probability"] <= best["completions"][0]["log_probability"]);
  check_refused(place, "more than the beam", "predict runs/pairs -k 3", "--beam to 3", 2, "red\n");
  check_refused(place, "sources read in both directions", "eval runs/pairs --cache 9", "--cache ... left to right");
  const Outcome wrong = succeed(place, "predict runs/pairs --errors pairs.tsv");
  CHECK(contains(wrong.err, "of 64 texts"));
  for (const std::string& line : lines_of(wrong.out)) CHECK(cells(line)[0] != cells(line)[1]);
}

TEST_CASE("pairs: what does not fit is refused") {
  const Workplace& place = trained();
  check_refused(place, "classifier",
                {"config", "check", "--config", "pairs.yaml", "--set",
                 "model={type: text-classifier, layers: [{mixer: {type: gau}}], max_length: 24}"},
                "data.type", 2);
  check_refused(place, "masked",
                {"config", "check", "--config", "masked.yaml", "--config", "pairs.yaml", "--set",
                 "model={type: masked-language-model, layers: [{mixer: {type: gau}}], max_length: 24}"},
                "data.type ... language-model", 2);
  check_refused(place, "prefix without pairs", "config check --config lm.yaml --set model.prefix=bidirectional",
                "model.prefix ... pairs", 2);
  check_refused(place, "prefix and aft-conv",
                {"config", "check", "--config", "pairs.yaml", "--set", "model.layers=[{mixer: aft-conv}]"},
                "model.prefix ... aft-conv", 2);
}

TEST_CASE("predict: tables, the likeliest classes, the text, and errors") {
  const Workplace& place = trained();
  place.write("texts.csv", "label,text\ngood,\"a fine,\nday\"\nbad,sad night\n");
  place.write("texts.jsonl", "{\"text\": \"a fine,\\nday\"}\n{\"text\": \"sad night\"}\n");
  const auto labels = [&](const Words& arguments, const std::string& input = "") {
    Words first;
    for (const std::string& line : lines_of(succeed(place, Words("predict runs/classifier") + arguments, input).out))
      first.push_back(cells(line)[0]);
    return first;
  };
  const Words from_json = labels({"texts.jsonl"});
  REQUIRE(from_json.size() == 3);
  const Words from_csv = labels({"texts.csv"});
  CHECK(from_csv == from_json);
  CHECK(labels({"--input", "jsonl"}, "{\"text\": \"sad night\"}\n")[1] == from_json[2]);
  const Words top = lines_of(succeed(place, "predict runs/classifier -k 2 --echo", "sad night\n").out);
  CHECK(cells(top[0]) == Words("predicted probability predicted_2 probability_2 text"));
  const Words row = cells(top[1]);
  REQUIRE(row.size() == 5);
  CHECK(std::stod(row[1]) >= std::stod(row[3]));
  CHECK(row[4] == "sad night");
  const Outcome wrong = succeed(place, "predict runs/classifier --errors train.tsv");
  const Words errors = lines_of(wrong.out);
  CHECK(contains(wrong.err, std::to_string(errors.size() - 1) + " of "));
  for (size_t i = 1; i < errors.size(); ++i) {
    CHECK(cells(errors[i])[0] != cells(errors[i])[1]);
    CHECK(contains(cells(errors[i])[3], "train.tsv:"));
  }
  check_refused(place, "lines have no labels", "predict runs/classifier --errors", "--errors ... --input", 2,
                "sad night\n");
  place.write("odd.jsonl", "{\"text\": 3}\n");
  check_refused(place, "an unreadable row", "predict runs/classifier odd.jsonl", "odd.jsonl:1 ... must be a string");
}

TEST_CASE("score: log probabilities that are those of eval") {
  const Workplace& place = trained();
  const std::string texts =
      "the tape\n\na drum of rope that is far longer than the positions of this model are, by a factor\n";
  const Words lines = lines_of(succeed(place, "score runs/lm", texts).out);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "log_probability\tper_token\ttokens");
  CHECK(cells(lines[1])[2] == "8");  // characters
  CHECK(std::stod(cells(lines[1])[0]) == doctest::Approx(8 * std::stod(cells(lines[1])[1])).epsilon(1e-4));
  CHECK(std::stod(cells(lines[1])[0]) < 0);
  CHECK(cells(lines[2])[2] == "0");
  CHECK(std::stod(cells(lines[3])[1]) < -0.5);
  // The targets of the validation pairs, one by one: the loss of eval is their mean.
  place.write("six.tsv", "red blue grey\tred blue\nred blue\tblue\n");
  const std::string eval = succeed(place, "eval runs/pairs --split test --set data.test=[six.tsv]").out;
  const Outcome scored = succeed(place, "score runs/pairs six.tsv --input tsv --format jsonl");
  double sum = 0, tokens = 0;
  for (const std::string& line : lines_of(scored.out)) {
    const auto json = nlohmann::json::parse(line);
    sum -= json["log_probability"].get<double>();
    tokens += json["tokens"].get<double>();
  }
  CHECK(tokens == number_of(eval, "targets"));
  CHECK(sum / tokens == doctest::Approx(number_of(eval, "loss")).epsilon(1e-4));
  CHECK(contains(scored.err, "2 texts, 5 tokens"));
  check_refused(place, "a classifier", "score runs/classifier", "needs a language-model", 1, "x\n");
}

TEST_CASE("embed: a vector per text, printed or as .npy") {
  const Workplace& place = trained();
  for (const std::string run_folder : {"runs/lm", "runs/classifier", "runs/masked", "runs/pairs"}) {
    INFO(run_folder);
    const Words lines = lines_of(succeed(place, {"embed", run_folder}, "the tape\n\nred blue\n").out);
    REQUIRE(lines.size() == 3);
    const auto first = nlohmann::json::parse(lines[0])["vector"].get<std::vector<float>>();
    CHECK(first.size() == (run_folder == "runs/pairs" ? 32u : 16u));
    double norm = 0;
    for (const float value : first) norm += static_cast<double>(value * value);
    CHECK(norm > 1e-6);
    succeed(place, {"embed", run_folder, "--output", "v.npy"}, "the tape\n\nred blue\n");
    const std::string npy = place.read("v.npy");
    REQUIRE(npy.size() == 128 + 3 * first.size() * 4);
    CHECK(npy.substr(0, 8) == std::string("\x93NUMPY\x01\x00", 8));
    CHECK(contains(npy.substr(0, 128), "'shape': (3, " + std::to_string(first.size()) + ")"));
    CHECK(npy[127] == '\n');
    std::vector<float> values(3 * first.size());
    std::memcpy(values.data(), npy.data() + 128, values.size() * 4);
    CHECK(std::vector<float>(values.begin(), values.begin() + static_cast<long>(first.size())) == first);
  }
  check_refused(place, "another ending", "embed runs/lm -o v.txt", "--output ... .npy", 2, "x\n");
}

TEST_CASE("generate: prompts from files and lines, several samples, no unknown words") {
  const Workplace& place = trained();
  place.write("start.txt", "the tape\n");
  const std::string one = succeed(place, {"generate", "runs/lm", "--prompt", "the tape", "-n", "20"}).out;
  CHECK(succeed(place, "generate runs/lm --prompt-file start.txt -n 20").out == one);
  CHECK(succeed(place, "generate runs/lm --prompt-file - -n 20", "the tape\n").out == one);
  CHECK(succeed(place, "generate runs/lm --interactive -n 20", "the tape\nthe tape\n").out == one + one);
  const std::string several = succeed(place, "generate runs/lm --prompt-file start.txt -n 20 --num-samples 3").out;
  CHECK(several.substr(0, one.size()) == one);  // the first is the one that comes alone
  CHECK(several.substr(one.size(), 4) == "---\n");
  CHECK(several.find(one.substr(8), one.size()) == std::string::npos);
  CHECK(succeed(place, "generate runs/lm -p the --min-p 1 -n 9").out ==
        succeed(place, "generate runs/lm -p the --temperature 0 -n 9").out);
  const std::string words = succeed(place, "generate runs/pairs --temperature 50 -n 400 --num-samples 4").out;
  CHECK(!contains(words, "<unk>"));
  check_refused(place, "two prompts", "generate runs/lm --prompt a --prompt-file start.txt", "--prompt-file", 2);
  check_refused(place, "no file", "generate runs/lm --prompt-file none.txt", "none.txt");
  const Outcome endless = run_shell(place, "\"$capstan\" generate runs/lm --prompt-file - </dev/zero");
  CHECK(endless.code == 1);
  CHECK(contains(endless.err, "stdin: holds more than 64 million bytes"));
}

}  // namespace
}  // namespace capstan::testing
