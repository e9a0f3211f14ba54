// The face of the library: every kind of model is trained, opened and asked.
#include "run/run.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <map>
#include <thread>

#include "core/io/log.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/texts.hpp"

namespace capstan {
namespace {

/// A folder with data and one trained run of each kind, made once.
class TrainedRuns : public TemporaryFolder {
 public:
  TrainedRuns() {
    write("text.txt", numbered_lines(60, {"the tape turns a drum and wire runs out slow "}));
    write("train.tsv", numbered_lines(60, {"good\ta fine day ", "bad\tsad night "}));
    std::string pairs;
    for (int i = 0; i < 60; ++i) pairs += std::to_string(i) + " and one\t" + std::to_string(i + 1) + "\n";
    write("pairs.tsv", pairs);
    set_log_sink([this](LogLevel, std::string_view line) { log_ += std::string(line) + "\n"; });
    const std::string text = "data: {type: text, train: [" + path("text.txt") + "], sequence_length: 32, tokenizer: ";
    add("language-model", text + "char}", "aft-simple");
    add("masked-language-model", text + "word}", "fastformer");
    const auto of_file = [&](const std::string& type, const std::string& file) {
      return "data: {type: " + type + ", train: [" + path(file) + "], valid_fraction: 0.2";
    };
    add("text-classifier", of_file("labelled", "train.tsv") + "}", "gau");
    add("linear-classifier", of_file("labelled", "train.tsv") + ", tokenizer: byte}", "");
    add("language-model", of_file("pairs", "pairs.tsv") + ", tokenizer: char, max_source: 24, max_length: 32}",
        "attention", "pairs");
    set_log_sink({});
  }
  const Run& operator[](const std::string& name) const { return runs_.at(name); }
  const std::string& log() const { return log_; }

 private:
  void add(const std::string& type, const std::string& data, const std::string& mixer, std::string name = "") {
    if (name.empty()) name = type;
    const std::string model =
        mixer.empty() ? ", words: [1, 2]" : ", width: 16, layers: [{mixer: {type: " + mixer + "}}]";
    write(name + ".yaml", "folder: " + path() + "\nname: " + name + "\n" + data + "\nmodel: {type: " + type + model +
                              "}\ntrain: {steps: 8, batch_size: 4, valid_every: 4}\n");
    runs_.emplace(name, train(ConfigOptions{{path(name + ".yaml")}, {"seed=7"}}));
  }

  std::string log_;
  std::map<std::string, Run> runs_;
};

const TrainedRuns& runs() {
  static const TrainedRuns all;
  return all;
}

TEST_CASE("train() opens the run, which has the given seed, and its log goes to the program") {
  CHECK(runs()["language-model"].config.seed == 7);
  CHECK(contains(runs().log(), "all 8 steps are done"));
  CHECK(Run::open(runs().path("language-model")).evaluate().figure("loss") ==
        runs()["language-model"].evaluate().figure("loss"));
  RunConfig wrong = runs()["language-model"].config;
  wrong.train.lr = -1;
  CHECK(contains(message_of<Error>([&] { train(wrong); }), "train.lr"));
  CHECK(contains(message_of<Error>([&] { Run::open(runs().path("none")); }), "there is no such folder"));
}

TEST_CASE("a language model scores, embeds and continues texts") {
  const Run& run = runs()["language-model"];
  const std::vector<TextScore> scores = run.score({"the tape turns", "zzzz"});
  REQUIRE(scores.size() == 2);
  CHECK(scores[0].tokens == 14);
  CHECK(scores[0].per_token() > scores[1].per_token());
  const auto vectors = run.embed({"the tape", ""});
  REQUIRE(vectors.size() == 2);
  CHECK(vectors[0].size() == 16);
  CHECK(run.embedding_size() == 16);
  CHECK(vectors[1] == std::vector<float>(16, 0.0F));
  CompletionOptions options;
  options.max_tokens = 12;
  options.samples = 2;
  std::vector<std::string> pieces(2);
  options.on_piece = [&](int64_t sample, std::string_view piece) {
    pieces[static_cast<size_t>(sample)] += piece;
    return true;
  };
  const std::vector<Completion> written = run.generate("the ", options);
  REQUIRE(written.size() == 2);
  CHECK(written[0].text == pieces[0]);
  CHECK(written[1].text == pieces[1]);
  CHECK(written[0].text != written[1].text);
  options.on_piece = [](int64_t, std::string_view) { return false; };
  CHECK(run.generate("the ", options).front().end == GenerateEnd::callback);
  CHECK(run.evaluate().figure("bits_per_byte") > 0);
  CHECK(contains(message_of<Error>([&] { run.evaluate().figure("f1"); }), "it has targets, loss"));
}

TEST_CASE("a classifier, a masked model and a model of pairs predict, each in its way") {
  const Run& classifier = runs()["text-classifier"];
  const Prediction label = classifier.predict({"a fine day"}).front();
  REQUIRE(label.labels.size() == 1);
  REQUIRE(label.probabilities.size() == classifier.classes.size());
  CHECK(label.probabilities[0] + label.probabilities[1] == doctest::Approx(1));
  CHECK(label.labels[0].probability >= 0.5);
  CHECK(classifier.embed({"a fine day"}).front().size() == 16);
  CHECK(classifier.evaluate().classification.has_value());
  const Run& linear = runs()["linear-classifier"];
  CHECK(linear.predict({"a fine day"}).front().labels.front().text == "good");
  CHECK(linear.evaluate().figure("accuracy") > 0.5);
  CHECK(contains(message_of<Error>([&] { linear.embed({"a fine day"}); }), "linear"));
  const Prediction filled = runs()["masked-language-model"].predict({"the <mask> turns"}).front();
  REQUIRE(filled.blanks.size() == 1);
  CHECK(filled.filled == "the " + filled.blanks[0][0].text + " turns");
  PredictOptions options;
  options.top_k = 2;
  options.beam = 3;
  CHECK(runs()["pairs"].predict({"4 and one"}, options).front().completions.size() == 2);
  CHECK(runs()["pairs"].evaluate().pairs.has_value());
}

TEST_CASE("what a model cannot do is refused with its type and what to use instead") {
  const auto refusal = [](const char* name, const auto& ask) { return message_of<Error>([&] { ask(runs()[name]); }); };
  const auto predict = [](const Run& run) { run.predict({"a"}); };
  const auto score = [](const Run& run) { run.score({"a"}); };
  const auto generate = [](const Run& run) { run.generate("a"); };
  for (const std::string& message :
       {refusal("language-model", predict), refusal("text-classifier", score), refusal("text-classifier", generate),
        refusal("masked-language-model", score), refusal("masked-language-model", generate)})
    check_contains(message, {"but this needs a ", "use "});
  PredictOptions beam;
  beam.beam = 4;
  CHECK_THROWS_AS(runs()["text-classifier"].predict({"a"}, beam), ConfigError);
}

TEST_CASE("a text that cannot be used is named by its number, over batches") {
  PredictOptions options;
  options.batch_size = 2;
  try {
    runs()["masked-language-model"].predict({"a <mask>", "<mask>", "b <mask>", "none"}, options);
    FAIL_CHECK("accepted");
  } catch (const TextError& error) {
    CHECK(error.index() == 3);
    CHECK(contains(error.what(), "text: there is no <mask>"));
  }
  CHECK_THROWS_AS(runs()["pairs"].score({"4 and one"}), TextError);  // without a target
}

TEST_CASE("several threads ask one run at the same time") {
  const Run& run = runs()["language-model"];
  const std::vector<InputText> texts(20, "the tape turns a drum");
  const double expected = run.score(texts).front().log_probability;
  std::vector<std::vector<TextScore>> found(4);
  std::vector<std::thread> threads;
  for (std::vector<TextScore>& mine : found) threads.emplace_back([&] { mine = run.score(texts); });
  for (std::thread& thread : threads) thread.join();
  for (const std::vector<TextScore>& scores : found)
    for (const TextScore& score : scores) CHECK(score.log_probability == expected);
}

}  // namespace
}  // namespace capstan
