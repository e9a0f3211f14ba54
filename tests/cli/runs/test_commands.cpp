// What predict, generate, inspect and config print, and how they behave in pipes.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/io/json.hpp"
#include "tests/cli/support/samples.hpp"
#include "tests/support/source_dir.hpp"

namespace capstan::testing {
namespace {

TEST_CASE("the help says what a newcomer wants to know") {
  const Workplace place;
  check_contains(succeed(place, "--help").out, {"capstan train --config", "75 interrupted"});
}

TEST_CASE("help, help COMMAND and version say what --help and --version say") {
  const Workplace place;
  CHECK(succeed(place, "help").out == succeed(place, "--help").out);
  CHECK(succeed(place, "help config check").out == succeed(place, "config check --help").out);
  CHECK(succeed(place, "version").out == succeed(place, "--version").out);
}

TEST_CASE("a recipe is found by name, from any folder; a file of that name is taken first") {
  const Workplace place;
  for (const char* const name : {"enwik8", "enwik8.yaml", "configs/enwik8.yaml"})
    CHECK(succeed(place, {"config", "check", "--config", name}).out == "enwik8: the configuration is valid\n");
  CHECK(succeed(place, "config check --config compare/imdb-bytes compare/tiny-flash").code == 0);
  CHECK(contains(succeed(place, "inspect enwik8").out, "aft-local"));
  const std::string linear = succeed(place, "inspect classify --classes 3").out;
  CHECK(contains(linear,
                 "classes     3\nn-grams of  words, lengths chosen for the texts; 2, 3, 4, 5 characters\nbuckets  "
                 "   chosen"));
  CHECK_FALSE(contains(linear, "FLOP"));
  write_samples(place);
  fs::copy_file(place / "lm.yaml", place / "enwik8");
  CHECK(succeed(place, "config check --config enwik8").out == "lm: the configuration is valid\n");
  fs::copy_file(place / "lm.yaml", place / "classify.yaml");
  CHECK(succeed(place, "config check --config classify").out == "lm: the configuration is valid\n");
  check_refused(place, "no folder but configs", "config check --config ../lm", "../lm", 2);
}

TEST_CASE_FIXTURE(Trained, "predict writes a header and, per text, a label and probabilities that sum to 1") {
  const std::string very_long(1 << 20, 'x');
  const std::string input = "a fine day\n\nsad night\r\n\xe6\x97\xa5\xe6\x9c\xac\n" + very_long + "\ndull";
  const std::vector<std::string> lines = lines_of(succeed(place, "predict runs/classifier", input).out);
  REQUIRE(lines.size() == 7);
  const std::vector<std::string> header = cells(lines[0]);
  CHECK(header == Words{"label", "bad", "good", "so so"});
  for (size_t i = 1; i < lines.size(); ++i) {
    INFO(lines[i]);
    const std::vector<std::string> row = cells(lines[i]);
    REQUIRE(row.size() == 4);
    double sum = 0, largest = 0;
    std::string likeliest;
    for (size_t c = 1; c < row.size(); ++c) {
      const double probability = std::stod(row[c]);
      sum += probability;
      if (probability > largest) likeliest = header[c];
      largest = std::max(largest, probability);
    }
    CHECK(std::abs(sum - 1) < 2e-4);
    CHECK(likeliest == row[0]);
  }
}

namespace {

/// The largest difference of numbers in two tables; infinite where words or lines differ.
double max_different(const std::string& a, const std::string& b) {
  std::istringstream left(a), right(b);
  double most = 0;
  for (std::string x, y; left >> x;) {
    if (!(right >> y)) return INFINITY;
    if (x == y) continue;
    char *end_x = nullptr, *end_y = nullptr;
    const double difference = std::abs(std::strtod(x.c_str(), &end_x) - std::strtod(y.c_str(), &end_y));
    if (*end_x != '\0' || *end_y != '\0') return INFINITY;
    most = std::max(most, difference);
  }
  std::string rest;
  return right >> rest ? INFINITY : most;
}

}  // namespace

TEST_CASE_FIXTURE(Trained, "predict writes JSON lines that parse, in the order of the texts, whatever the batch size") {
  std::string texts;
  for (int i = 0; i < 150; ++i) texts += "a \"fine\" day\\ " + std::to_string(i) + "\n";
  place.write("texts.txt", texts);
  const std::string all = succeed(place, "predict runs/classifier texts.txt --format jsonl").out;
  const std::vector<std::string> lines = lines_of(all);
  REQUIRE(lines.size() == 150);
  for (size_t i = 0; i < lines.size(); ++i) {
    const nlohmann::json line = parse_json(lines[i]);
    CHECK(line.at("text") == "a \"fine\" day\\ " + std::to_string(i));
    double sum = 0, largest = 0;
    for (const auto& [name, probability] : line.at("probabilities").items()) {
      sum += probability.get<double>();
      largest = std::max(largest, probability.get<double>());
    }
    CHECK(std::abs(sum - 1) < 1e-5);
    CHECK(line.at("probability").get<double>() == largest);
    CHECK(line.at("probabilities").at(line.at("label").get<std::string>()).get<double>() == largest);
  }
  // TSV: four decimals, of which the last bits of a float, which depend on the batch, can change the last one.
  const std::string together = succeed(place, "predict runs/classifier texts.txt").out;
  CHECK(max_different(succeed(place, "predict runs/classifier texts.txt --batch-size 1").out, together) < 1.5e-4);
  CHECK(succeed(place, "predict runs/classifier", texts).out == together);
  const std::string best = checkpoint_name(place / "runs/classifier/checkpoints/best");
  CHECK(succeed(place, {"predict", "runs/classifier/checkpoints/" + best, "texts.txt"}).out == together);
}

TEST_CASE_FIXTURE(Trained, "predict reads a slow pipe to its end and answers line by line") {
  const Outcome slow =
      run_shell(place,
                "(for i in $(seq 90); do echo a fine day; done; sleep 0.2; echo dull; sleep 0.2; printf 'sad night') | "
                "$capstan predict runs/classifier");
  CHECK(slow.code == 0);
  CHECK(lines_of(slow.out).size() == 93);
  // The answer to the first line comes before the second line is written.
  const Outcome talk = run_shell(
      place,
      "coproc $capstan predict runs/classifier; echo a fine day >&${COPROC[1]}; read -t 60 header <&${COPROC[0]}; "
      "read -t 60 first <&${COPROC[0]}; echo dull >&${COPROC[1]}; read -t 60 second <&${COPROC[0]}; "
      "echo \"$header\"; echo \"$first\"; echo \"$second\"");
  CHECK(lines_of(talk.out).size() == 3);
  CHECK(cells(talk.out).size() == 3 * 3 + 1);
}

TEST_CASE_FIXTURE(Trained, "predict answers for every text before the one it cannot read, and names that one") {
  place.write("texts.txt", text_of(Words(70, "a fine day")) + "na\xefve\ndull\n");
  for (const Words& command : {Words("predict runs/classifier texts.txt"), Words{"predict", "runs/classifier"}}) {
    const std::string name = command.size() == 3 ? "texts.txt" : "stdin";
    const Outcome outcome =
        check_refused(place, "invalid UTF-8", command, {name + ":71:3", "0xef", "UTF-8"}, 1, place.read("texts.txt"));
    CHECK(lines_of(outcome.out).size() == 71);
  }
  place.write("none.txt", "");
  for (const Refusal& row :
       {Refusal{"empty file", "predict runs/classifier none.txt", "none.txt ... empty"},
        Refusal{"absent file", "predict runs/classifier absent.txt", "absent.txt: no such file"},
        Refusal{"binary", "predict runs/classifier", "stdin:1: ... UTF-8", 1, {}, std::string("\x00\xff\x01", 3)},
        Refusal{"no such format", "predict runs/classifier --format xml", "--format ... xml ... {tsv,jsonl}", 2}})
    check_refused(place, row);
  CHECK(lines_of(succeed(place, "predict runs/classifier", "").out).size() == 1);
  CHECK(lines_of(succeed(place, "predict runs/classifier", "\n").out).size() == 2);
  CHECK(lines_of(succeed(place, "predict runs/classifier", std::string("\x00\x01\n", 3)).out).size() == 2);
}

TEST_CASE_FIXTURE(Samples, "predict reads text pairs separated by a tab, with n-grams, and agrees with eval") {
  std::string rows, texts;
  std::vector<std::string> labels;
  for (int i = 0; i < 40; ++i) {
    const bool same = i % 2 == 0;
    const std::string a = "day " + std::to_string(i % 5), b = same ? a : "night " + std::to_string(i % 7);
    rows += (same ? "same\t" : "other\t") + a + "\t" + b + "\n";
    texts += a + "\t" + b + "\n";
    labels.emplace_back(same ? "same" : "other");
  }
  place.write("pairs.tsv", rows);
  succeed(place,
          "train --config classifier.yaml --set name=pairs data.train=[pairs.tsv] data.text_columns=[\"2\",\"3\"] "
          "data.separator=true data.tokenizer=word train.steps=30 model.ngrams.orders=[1,2] model.ngrams.buckets=1000 "
          "train.valid_every=0 data.valid=[pairs.tsv]");
  const double accuracy = number_of(succeed(place, "eval runs/pairs").out, "accuracy");
  const std::vector<std::string> lines = lines_of(succeed(place, "predict runs/pairs", texts).out);
  REQUIRE(lines.size() == 41);
  int right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += cells(lines[i + 1])[0] == labels[i] ? 1 : 0;
  CHECK(right == std::lround(40 * accuracy));
  CHECK(right > 30);  // the words of the second column tell
  const std::string inspected = succeed(place, "inspect runs/pairs").out;
  CHECK(contains(inspected, "ngrams"));
  const std::string counts = lines_of(inspected).back();  // tables of n-grams are apart
  CHECK(contains(counts, " in tables of n-grams"));
  CHECK(contains(place.read("runs/pairs/train.log"), "model: text-classifier of " + counts + ", "));
  check_refused(place, "one text", "predict runs/pairs", "stdin:2 ... found 1 texts ... 2 ... tab", 1, "a\tb\nc\n");
}

TEST_CASE_FIXTURE(Samples, "predict says which text is too long where the run was trained to stop at such texts") {
  succeed(place, "train --config classifier.yaml --set data.truncate=error train.steps=1");
  check_refused(place, "too long", "predict runs/classifier", "stdin:2 ... 17 tokens ... 16 ... truncate", 1,
                "dull\n" + std::string(17, 'a') + "\n");
}

TEST_CASE_FIXTURE(Trained, "generate: the same seed gives the same text, another one another") {
  const Words command{"generate", "runs/lm", "--prompt", "the tape", "-n", "100", "--seed", "5"};
  const std::string text = succeed(place, command).out;
  CHECK(text.rfind("the tape", 0) == 0);
  CHECK(text.back() == '\n');
  CHECK(succeed(place, command).out == text);
  Words other = command;
  other.back() = "6";
  CHECK(succeed(place, other).out != text);
  const std::string from_rounded = succeed(place, command + "--weights bf16").out;
  CHECK(from_rounded.rfind("the tape", 0) == 0);
  CHECK(succeed(place, command + "--weights bf16").out == from_rounded);
  CHECK(succeed(place, command + "--weights float32").out == text);
  CHECK(succeed(place, command + "--temperature 0").out == succeed(place, other + "--temperature 0").out);
  CHECK(succeed(place, {"generate", "runs/lm", "--prompt", "the tape", "-n", "0"}).out == "the tape\n");
  CHECK(lines_of(succeed(place, "generate runs/lm -n 200").err).size() == 1);  // says once that the window slides
}

TEST_CASE_FIXTURE(Trained, "generate takes any prompt there is, and none") {
  const std::string unseen = "\xe6\x97\xa5\xe6\x9c\xac";
  CHECK(succeed(place, {"generate", "runs/lm", "-n", "5", "--prompt", unseen}).out.rfind(unseen, 0) == 0);
  CHECK(succeed(place, {"generate", "runs/lm", "-n", "5", "--prompt", ""}).out.size() > 1);
  const std::string long_prompt(1000, 'a');
  CHECK(succeed(place, {"generate", "runs/lm", "-n", "5", "--prompt", long_prompt}).out.rfind(long_prompt, 0) == 0);
  check_refused(place, "no UTF-8", "generate runs/lm --prompt na\xefve", "--prompt:1:3 ... 0xef ... UTF-8");
  check_refused(place, "empty stop", {"generate", "runs/lm", "--stop", ""}, "--stop ... must not be empty", 2);
}

TEST_CASE_FIXTURE(Trained, "generate: the end of the last line of a prompt file is no part of it, as LF or CRLF") {
  place.write("lf.txt", "the tape\n");
  place.write("crlf.txt", "the tape\r\n");
  const std::string text = succeed(place, "generate runs/lm -n 20 --seed 3 --prompt-file lf.txt").out;
  CHECK(text.rfind("the tape", 0) == 0);
  CHECK(succeed(place, "generate runs/lm -n 20 --seed 3 --prompt-file crlf.txt").out == text);
}

TEST_CASE("text that is not UTF-8: training warns of it, and a pipe gets the bytes that the model wrote") {
  const SamplePlace place;
  place.write("book.txt", text_of(Words(200, "Le caf\xe9 \xe9tait ferm\xe9")));
  const Outcome trained =
      succeed(place, "train --config lm.yaml --set name=latin train.steps=1 data.train=[book.txt] data.tokenizer=byte");
  check_contains(trained.err, {"book.txt: 600 bytes not UTF-8; convert"});
  const Outcome written = run(place, "generate runs/latin -n 200 --seed 3");
  CHECK(written.code == 0);
  CHECK_FALSE(contains(written.out, "\xef\xbf\xbd"));  // U+FFFD
  CHECK(std::any_of(written.out.begin(), written.out.end(), [](char c) { return (c & 0x80) != 0; }));
}

TEST_CASE_FIXTURE(Samples, "generate: a model without a position limit reads the end of a prompt of any length") {
  succeed(place, {"train", "--config", "lm.yaml", "--set", "name=rotary", "train.steps=2", "model.positions=none",
                  "model.layers=[{mixer: {type: attention, heads: 2, rotary: true}}]"});
  std::string line;
  for (int i = 0; line.size() < 1'000'000; ++i) line += i % 3 * i % 7 < 3 ? "the tape " : "turns ";
  const Outcome all = succeed(place, "generate runs/rotary --interactive -n 20", line + "\n");
  check_contains(all.err, {"stdin:1: of 1000", "tokens, the last 16384 are read"});
  const std::string end = line.substr(line.size() - 16384);
  const Outcome last = succeed(place, "generate runs/rotary --prompt-file - -n 20", end);
  CHECK(all.out.substr(line.size()) == last.out.substr(end.size()));
}

TEST_CASE("generate ends at a stop string, which is not shown, and at the last position when told so") {
  const TrainedPlace place;
  const Words command = "generate runs/lm --prompt the -n 200 --seed 3";
  const std::string text = succeed(place, command).out.substr(3);
  for (const std::string& stop : {text.substr(20, 1), text.substr(37, 2), text.substr(60, 3)}) {
    INFO("stop at \"", stop, "\"");
    CHECK(succeed(place, command + Words{"--stop", "never said", "--stop", stop}).out ==
          "the" + text.substr(0, text.find(stop)) + "\n");
  }
  const std::string lines = succeed(place, command + Words{"--stop", "\\n"}).out;
  CHECK(lines == "the" + text.substr(0, text.find('\n')) + "\n");
  const Outcome outcome = succeed(place, command + "--no-slide");
  CHECK(outcome.out.size() < 100);
  CHECK(contains(outcome.err, "last position"));
}

TEST_CASE_FIXTURE(Trained, "generate streams: text is there before the end, and a reader that leaves ends it quietly") {
  const Outcome piped =
      run_shell(place, "$capstan generate runs/lm --prompt 'the ' -n -1 | head -c 200; echo \" ${PIPESTATUS[0]}\"");
  CHECK(piped.out.rfind("the ", 0) == 0);
  CHECK(contains(piped.out, std::to_string(128 + SIGPIPE)));
  CHECK(lines_of(piped.err).size() <= 1);  // that the window slides
  for (const std::string& line : lines_of(piped.err))
    CHECK(line.rfind("info: the model has only 32 positions", 0) == 0);
  const Outcome labels = run_shell(place, "yes a fine day | $capstan predict runs/classifier | head -3");
  CHECK(lines_of(labels.out).size() == 3);
  CHECK(labels.err == "");
}

TEST_CASE_FIXTURE(Trained, "an output that cannot be written is an error") {
  for (const char* const command : {"eval runs/lm", "predict runs/classifier train.tsv", "generate runs/lm",
                                    "inspect runs/lm", "config print --config lm.yaml"}) {
    INFO(command);
    const Outcome outcome = run_shell(place, "$capstan " + std::string(command) + " > /dev/full");
    CHECK(outcome.code == 1);
    CHECK(contains(outcome.err, "standard output"));
  }
}

TEST_CASE_FIXTURE(Trained, "inspect refuses files that are not what it wants") {
  place.write("cut.safetensors", place.read(model_of("lm")).substr(0, 2000));
  const std::string fixture = source_path("tests/parity/fixtures/classifier.safetensors");
  check_refused(place, "truncated tensors", "inspect cut.safetensors", "cut.safetensors ... damaged");
  check_refused(place, "absent tensors", "inspect absent.safetensors",
                "absent.safetensors ... no such file ... check the path");
  check_refused(place, "absent configuration", "inspect absent.yaml", "absent.yaml ... no such file", 2);
  const std::string tensors = succeed(place, "inspect " + fixture).out;
  check_contains(tensors, {"parameter.embed.weight", "metadata classes"});
  CHECK(contains(succeed(place, "inspect runs/lm").out, "aft-local"));
  CHECK(contains(succeed(place, "inspect runs/lm --tensors").out, "embed.weight"));
  CHECK(contains(succeed(place, "inspect lm.yaml --set model.width=32").out, "total"));
}

TEST_CASE_FIXTURE(Trained, "the configuration that a run saves is the one it ran with") {
  const std::string printed = succeed(place, "config print --config lm.yaml").out;
  CHECK(place.read("runs/lm/config.yaml") == printed);
  place.write("again.yaml", printed);
  CHECK(succeed(place, "config print --config again.yaml").out == printed);
  CHECK(contains(succeed(place, "config check --config runs/lm/config.yaml").out, "is valid"));
  // From anywhere, with paths that are relative to where one stands.
  fs::create_directory(place / "below");
  const Outcome outcome = run_shell(
      place,
      "cd below && $capstan train --config ../lm.yaml --set data.train=../text folder=../elsewhere train.steps=2");
  CHECK(outcome.code == 0);
  CHECK(fs::exists(place / "elsewhere/lm/checkpoints/last/model.safetensors"));
}

}  // namespace
}  // namespace capstan::testing
