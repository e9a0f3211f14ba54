// One rule for the probability of a token: what eval counts, score prints, and generate and predict choose by.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>

#include "core/io/log.hpp"
#include "data/batches/batcher.hpp"
#include "models/generation/generate.hpp"
#include "models/masked_language_model.hpp"
#include "run/run.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/texts.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

constexpr int64_t positions = 12;  // of every model

class Folder : public TemporaryFolder {
 public:
  Folder() {
    std::string pairs;
    for (int i = 0; i < 40; ++i) pairs += std::to_string(i) + "\t" + std::to_string(i * 37 % 1000) + "\n";
    write("text.txt", numbered_lines(40, {"the tape turns a drum, and wire runs out slow "}));
    write("pairs.tsv", pairs);
  }
  Run trained(const std::string& name, const std::string& data, const std::string& model,
              const std::vector<std::string>& overrides = {}) const {
    set_log_sink([](LogLevel, std::string_view) {});
    write(name + ".yaml", "folder: " + path() + "\nname: " + name + "\ndata: {" + data + "}\nmodel: {" + model +
                              ", max_length: " + std::to_string(positions) +
                              ", positions: learned, width: 16}\ntrain: {steps: 20, batch_size: 4, lr: 5e-3}\n");
    Run run = train(ConfigOptions{{path(name + ".yaml")}, overrides});
    set_log_sink({});
    return run;
  }
  /// The run, whose test split is one file.
  Run judged(const Run& run, const std::string& file, const std::vector<std::string>& overrides = {}) const {
    std::vector<std::string> all = {"data.test=[" + path(file) + "]"};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return Run::open(run.folder, all);
  }
};

const Folder& folder() {
  static const Folder one;
  return one;
}

std::string text_data(const std::string& more = "") {
  return "type: text, train: [" + folder().path("text.txt") + "], sequence_length: " + std::to_string(positions) +
         ", tokenizer: char" + more;
}

const char* const causal = "type: language-model, layers: [{mixer: {type: attention, heads: 2}, repeat: 2}]";

/// ln p of the last token of a sequence; `prefix` of its tokens are read as a whole, the others from left to right.
double last_of(const Model& model, const std::vector<int32_t>& sequence, int64_t prefix = 0) {
  const auto length = static_cast<int64_t>(sequence.size()) - 1;
  Context context = Context::evaluation(1, length);
  if (prefix > 0) {
    Ids ids = Ids::zeros({1, length});
    std::fill_n(ids.mutable_data(), prefix, 1);
    context.prefixes = Segments(ids);
  }
  const Array logits = model.logits(Ids({1, length}, {sequence.begin(), sequence.end() - 1}), context).value();
  return log_probability(logits.reshape({length, model.vocabulary()}).rows(length - 1, length), sequence.back());
}

/// What eval sums over the test split.
double loss_sum(const Run& run) { return -run.evaluate(Split::test).total.loss_sum; }

TEST_CASE(
    "text without documents: the start token is in front, and later windows begin with half as many tokens as there "
    "are positions") {
  const Run run = folder().trained("plain", text_data(), causal);
  const Model& model = run.model->model();
  const std::string text = "a drum turns the wire, and tape runs out slow";
  folder().write("one.txt", text);
  const TextScore score = run.score({text}).front();
  CHECK(score.tokens == static_cast<int64_t>(text.size()));
  // By hand: 12 positions, so token 13 is the first of a window that begins with the last 6.
  std::vector<int32_t> sequence = run.tokenizer->encode(text), window;
  sequence.insert(sequence.begin(), run.tokenizer->start_token());
  double sum = 0;
  for (const int32_t token : sequence) {
    window.push_back(token);
    if (window.size() == 1) continue;
    sum += last_of(model, window);
    if (window.size() > positions) window.erase(window.begin(), window.end() - positions / 2);
  }
  CHECK(score.log_probability == doctest::Approx(sum).epsilon(1e-5));
  CHECK(loss_sum(folder().judged(run, "one.txt", {"data.overlap=" + std::to_string(positions / 2 - 1)})) ==
        doctest::Approx(sum).epsilon(1e-5));
  // Greedy text is that to which score gives most, wherever the prompt ends.
  CompletionOptions options;
  options.max_tokens = 1;
  options.sampling.temperature = 0;
  for (const size_t length : {0, 1, 11, 12, 13, 14, 20, 40}) {
    INFO("after ", length);
    const std::string prompt = text.substr(0, length);
    std::string likeliest;
    double most = -HUGE_VAL;
    for (const char c : std::string("abcdefghijklmnopqrstuvwxyz ,0123456789\n")) {
      const std::string next = prompt + c;
      if (next.back() == 'b' || next.back() == 'j' || next.back() == 'q' || next.back() == 'z') continue;  // unknown
      const double now = run.score({next}).front().log_probability;
      if (now > most) likeliest = std::string(1, c);
      most = std::max(most, now);
    }
    CHECK(run.generate(prompt, options).front().text == likeliest);
  }
}

TEST_CASE("text with documents: each begins after the end of another, and its end counts") {
  const Run run = folder().trained("documents", text_data(", documents: line"), causal);
  folder().write("three.txt", "the tape\na drum\nwire runs out slow and slower\n");
  const std::vector<TextScore> scores = run.score({"the tape", "a drum", "wire runs out slow and slower"});
  double sum = 0, tokens = 0;
  for (const TextScore& score : scores) {
    sum += score.log_probability;
    tokens += static_cast<double>(score.tokens);
  }
  const Run judged = folder().judged(run, "three.txt", {"data.overlap=" + std::to_string(positions / 2 - 1)});
  CHECK(judged.evaluate(Split::test).figure("targets") == tokens);
  CHECK(loss_sum(judged) == doctest::Approx(sum).epsilon(1e-5));
}

TEST_CASE("pairs, packed or one to a row, prefix or not: score, eval and completions agree, the end included") {
  for (const std::string prefix : {"causal", "bidirectional"}) {
    INFO(prefix);
    const Run run = folder().trained("pairs-" + prefix,
                                     "type: pairs, train: [" + folder().path("pairs.tsv") +
                                         "], tokenizer: char, max_source: 4, max_length: " + std::to_string(positions),
                                     std::string(causal) + ", prefix: " + prefix);
    const Model& model = run.model->model();
    const auto pair = [](const std::string& source, const std::string& target) {
      InputText text(source);
      text.label = target;
      return text;
    };
    // The first fills a row; the others share one.
    folder().write("few.tsv", "1234\t567890\n1\t2\n3\t45\n");
    const std::vector<TextScore> scores = run.score({pair("1234", "567890"), pair("1", "2"), pair("3", "45")});
    double sum = 0;
    for (const TextScore& score : scores) sum += score.log_probability;
    for (const char* const rows : {"train.batch_size=4", "train.batch_size=1"}) {
      const Run judged = folder().judged(run, "few.tsv", {rows});
      CHECK(judged.evaluate(Split::test).figure("targets") == 12);
      CHECK(loss_sum(judged) == doctest::Approx(sum).epsilon(1e-5));
    }
    const std::vector<int32_t> prompt = prompt_of(run, "1234", "text");
    REQUIRE(prompt.size() == 6);
    std::vector<int32_t> sequence = prompt;
    double by_hand = 0;
    std::vector<int32_t> rest = run.tokenizer->encode("567890");
    rest.push_back(prompt.front());
    for (const int32_t token : rest) {
      sequence.push_back(token);
      by_hand += last_of(model, sequence, prefix == "causal" ? 0 : 6);
    }
    CHECK(scores[0].log_probability == doctest::Approx(by_hand).epsilon(1e-5));
    CHECK_THROWS_WITH_AS(run.score({pair("1234", "5678901")}),
                         "text: the pair has 13 tokens, but this model has 12 positions; shorten it", TextError);
    // What is written, greedily or by a beam, and its log probability.
    for (const int64_t beam : {1, 3}) {
      PredictOptions options;
      options.beam = beam;
      options.max_tokens = 2;
      const PairCompletion written = run.predict({"12"}, options).front().completions.front();
      CHECK(written.tokens.size() <= 2);
      std::vector<int32_t> text = prompt_of(run, "12", "text");
      const auto source = static_cast<int64_t>(text.size());
      double expected = 0;
      std::vector<int32_t> all = written.tokens;
      if (written.finished) all.push_back(prompt.front());
      for (const int32_t token : all) {
        text.push_back(token);
        expected += last_of(model, text, prefix == "causal" ? 0 : source);
      }
      CHECK(written.log_probability == doctest::Approx(expected).epsilon(1e-5));
      if (beam > 1) continue;
      CompletionOptions same;
      same.sampling.temperature = 0;
      same.max_tokens = 2;
      CHECK(run.generate("12", same).front().text == written.text);
    }
  }
}

TEST_CASE("pairs: a completion of the full length has its end") {
  const std::string pairs = "1\t23456\n2\t34567\n3\t45678\n4\t56789\n";
  const std::string file = folder().write("full.tsv", pairs);
  const Run run = folder().trained(
      "full",
      "type: pairs, train: [" + file + "], valid: [" + file + "], tokenizer: char, max_source: 1, max_length: 8",
      "type: language-model, prefix: bidirectional, layers: [{mixer: {type: attention, heads: 2}}]",
      {"model.width=32", "model.max_length=8", "train.steps=150", "train.lr=1e-2"});
  REQUIRE(run.evaluate().figure("exact_match") == 1);
  InputText pair("2");
  pair.label = "34567";
  for (const int64_t beam : {1, 2}) {
    PredictOptions options;
    options.beam = beam;
    const PairCompletion written = run.predict({"2"}, options).front().completions.front();
    CHECK(written.text == "34567");
    CHECK(written.finished);
    CHECK(written.log_probability == doctest::Approx(run.score({pair}).front().log_probability).epsilon(1e-4));
  }
  const EvalReport report = run.evaluate();
  CHECK(report.figure("log_probability") * 4 == doctest::Approx(-report.total.loss_sum).epsilon(1e-4));
}

TEST_CASE("masked models: predict gives hidden tokens the probabilities whose logarithms eval sums") {
  for (const std::string documents : {"none", "line"})
    for (const std::string tied : {"true", "false"}) {
      INFO(documents, " ", tied);
      const Run run = folder().trained("masked-" + documents + tied, text_data(", documents: " + documents),
                                       "type: masked-language-model, tied_output: " + tied +
                                           ", mask_share: 0.5, layers: [{mixer: {type: attention, heads: 2}}]");
      // What is read of a text is all but its last token, after the start token.
      folder().write("short.txt", "the tape ru");
      const std::string text = documents == "none" ? "the tape r" : "the tape ru";
      const auto& model = dynamic_cast<const MaskedLanguageModel&>(run.model->model());
      std::vector<int32_t> tokens = run.tokenizer->encode(text);
      tokens.insert(tokens.begin(), start_token(run).value());
      Batch batch = pad_rows({tokens});
      batch.examples = Ids({1}, std::vector<int32_t>{0});
      const MaskedTokens masked = model.masking().apply(batch, Segments(batch.segment_ids), false, 0);
      const std::vector<int32_t>& places = masked.places;
      REQUIRE(places.size() > 2);
      REQUIRE(places.front() > 0);  // no blank of predict is the start token
      Ids all_masked = batch.tokens.clone();
      for (const int32_t place : places) all_masked.mutable_data()[place] = model.mask_token();
      const auto log_probability = [&](const Ids& read) {
        const Array logits = model.logits(read, Context::evaluation(batch)).value();
        double total = 0;
        for (size_t i = 0; i < places.size(); ++i) {
          const real* const row = logits.data() + places[i] * logits.dim(2);
          double all = 0;
          for (int64_t v = 0; v < logits.dim(2); ++v) all += std::exp(static_cast<double>(row[v]));
          total += static_cast<double>(row[masked.targets[i]]) - std::log(all);
        }
        return total;
      };
      std::string blanked;
      for (size_t t = 0, next = 0; t < text.size(); ++t) {
        const bool hidden = next < places.size() && places[next] == static_cast<int32_t>(t) + 1;
        next += hidden ? 1 : 0;
        blanked += hidden ? "<mask>" : text.substr(t, 1);
      }
      PredictOptions options;
      options.top_k = 1000;
      const Prediction prediction = run.predict({blanked}, options).front();
      REQUIRE(prediction.blanks.size() == places.size());
      double sum = 0;
      for (size_t i = 0; i < places.size(); ++i)
        for (const Guess& guess : prediction.blanks[i])
          if (guess.text == text.substr(static_cast<size_t>(places[i]) - 1, 1)) sum += std::log(guess.probability);
      CHECK(sum == doctest::Approx(log_probability(all_masked)).epsilon(1e-5));
      const Run judged = folder().judged(run, "short.txt");
      CHECK(judged.evaluate(Split::test).figure("targets") == static_cast<double>(places.size()));
      CHECK(loss_sum(judged) == doctest::Approx(log_probability(masked.tokens)).epsilon(1e-5));
    }
}

}  // namespace
}  // namespace capstan
