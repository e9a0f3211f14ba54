// Texts that are scored by a model that learns from them: as evaluation of the same text, in the order of the texts,
// with the same bits on any number of threads.
#include <doctest/doctest.h>

#include <cmath>

#include "core/io/log.hpp"
#include "core/machine/parallel.hpp"
#include "run/run.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/texts.hpp"

namespace capstan {
namespace {

class AdaptedRuns : public TemporaryFolder {
 public:
  AdaptedRuns() {
    std::string prose, pairs;
    for (int i = 0; i < 60; ++i) prose += "the tape turns a drum, and wire runs out slow " + std::to_string(i) + "\n";
    for (int i = 0; i < 60; ++i) pairs += std::to_string(i) + "\t" + std::to_string(i * 37 % 1000) + "\n";
    for (const char* const split : {"train", "valid"}) {
      write(split + std::string(".txt"), prose);
      write(split + std::string(".tsv"), pairs);
    }
  }
  Run trained(const std::string& name, const std::string& more_data, const std::string& more_model = "") const {
    const bool pairs = contains(more_data, "pairs");
    const std::string kind = pairs ? ".tsv" : ".txt";
    write(name + ".yaml", "folder: " + path() + "\nname: " + name + "\ndata: {train: [" + path("train" + kind) +
                              "], valid: [" + path("valid" + kind) + "], tokenizer: char, " + more_data +
                              "}\nmodel: {type: language-model, width: 16, max_length: 16, layers: [{mixer: "
                              "attention, repeat: 2}]" +
                              more_model + "}\ntrain: {steps: 20, batch_size: 4, lr: 5e-3}\n");
    set_log_sink([](LogLevel, std::string_view) {});
    return train(ConfigOptions{{path(name + ".yaml")}, {}});
  }
};

const AdaptedRuns& adapted_runs() {
  static const AdaptedRuns one;
  return one;
}

const Run& plain_text() {
  static const Run run = adapted_runs().trained("plain", "type: text, sequence_length: 12, overlap: 3");
  return run;
}

AdaptOptions adapting(int64_t cache, double rate, double decay = AdaptOptions().decay) {
  AdaptOptions options;
  options.cache = cache;
  options.rate = rate;
  options.decay = decay;
  return options;
}

const std::string novel = "a slow tape, a slow wire, a slow tape: the drum runs out and turns and turns and runs out";

/// The run, whose test split is this file, in rows without padding.
Run judged(const Run& run, const std::string& file) {
  return Run::open(run.saved().folder, {"data.test=[" + adapted_runs().path(file) + "]", "train.batch_size=1"});
}

/// The log probability that evaluation gives the test split.
double evaluated(const Run& run, const AdaptOptions& options) {
  return -run.evaluate(Split::test, {}, options).adapted->loss_sum;
}

TEST_CASE("a text has the score that evaluation gives it as a split, with a cache, learning weights and both") {
  const std::vector<AdaptOptions> all{adapting(20, 0), adapting(0, 1e-3), adapting(20, 1e-3), adapting(0, 1e-3, 0)};
  adapted_runs().write("novel.txt", novel);
  adapted_runs().write("pair.tsv", "1234\t567890\n");
  const Run plain = judged(plain_text(), "novel.txt"),
            documents = judged(adapted_runs().trained("documents", "type: text, sequence_length: 12, documents: line"),
                               "novel.txt"),
            pairs = judged(adapted_runs().trained("pairs", "type: pairs, max_source: 4, max_length: 16"), "pair.tsv");
  InputText pair("1234");
  pair.label = "567890";
  for (const AdaptOptions& options : all) {
    CAPTURE(options.cache);
    CAPTURE(options.rate);
    for (const Run* const run : {&plain, &documents}) {
      const TextScore score = AdaptedScorer(run->saved(), options).score(novel);
      CHECK(score.tokens == static_cast<int64_t>(novel.size()) + (run == &documents ? 1 : 0));
      CHECK(score.log_probability == doctest::Approx(evaluated(*run, options)).epsilon(1e-10));
      CHECK(score.log_probability != run->score({novel}).front().log_probability);
    }
    CHECK(AdaptedScorer(pairs.saved(), options).score(pair).log_probability ==
          doctest::Approx(evaluated(pairs, options)).epsilon(1e-10));
  }
  // A text that repeats itself becomes likelier.
  CHECK(AdaptedScorer(plain_text().saved(), all[2]).score(novel).log_probability >
        AdaptedScorer(plain_text().saved(), adapting(0, 1e-12, 0)).score(novel).log_probability);
}

TEST_CASE("what was learned from a text stays for the next; a text that cannot be used teaches nothing") {
  const SavedRun& saved = plain_text().saved();
  const auto scores = [&](const AdaptOptions& options, const std::vector<std::string>& texts) {
    AdaptedScorer scorer(saved, options);
    std::vector<double> found;
    for (const std::string& text : texts) found.push_back(scorer.score(text).log_probability);
    return found;
  };
  for (const AdaptOptions& options : {adapting(50, 0), adapting(0, 1e-3), adapting(50, 1e-3)}) {
    CAPTURE(options.cache);
    CAPTURE(options.rate);
    const std::vector<double> two = scores(options, {novel, novel}), other = scores(options, {"", "the tape", novel});
    CHECK(two == scores(options, {novel, novel}));
    CHECK(two[0] == scores(options, {novel})[0]);
    CHECK(two[1] > two[0]);
    CHECK(other[0] == 0);
    CHECK(other[2] != two[0]);
  }
  // Windows that are no longer than a text's score it as score() does, unless something is learned.
  const std::string brief = "the tape";
  CHECK(scores(adapting(0, 1e-12, 0), {brief, brief})[1] ==
        doctest::Approx(plain_text().score({brief}).front().log_probability).epsilon(1e-6));

  const Run pairs = adapted_runs().trained("refusing", "type: pairs, max_source: 4, max_length: 16");
  AdaptedScorer scorer(pairs.saved(), adapting(0, 1e-3)), same(pairs.saved(), adapting(0, 1e-3));
  InputText pair("12"), empty("34");
  pair.label = "567";
  for (AdaptedScorer* const one : {&scorer, &same}) one->score(pair);
  CHECK(contains(message_of<Error>([&] { scorer.score(empty); }), "the target is empty"));
  CHECK(scorer.score(pair).log_probability == same.score(pair).log_probability);
}

TEST_CASE("scores that learn have the same bits on one thread and on two, and the run's model stays as it is") {
  const double before = plain_text().score({novel}).front().log_probability;
  std::vector<double> found;
  for (const int threads : {1, 2}) {
    set_threads(threads);
    AdaptedScorer scorer(plain_text().saved(), adapting(30, 1e-3));
    for (int round = 0; round < 2; ++round) found.push_back(scorer.score(novel).log_probability);
  }
  set_threads(0);
  CHECK(found[0] == found[2]);
  CHECK(found[1] == found[3]);
  CHECK(plain_text().score({novel}).front().log_probability == before);
}

TEST_CASE("scores that learn are refused where the run or the options do not fit") {
  const auto refusal = [](const Run& run, const AdaptOptions& options) {
    return message_of<Error>([&] { AdaptedScorer(run.saved(), options).score(novel); });
  };
  for (const AdaptOptions& wrong : {adapting(-1, 0), adapting(max_cached_tokens + 1, 0), adapting(0, 2),
                                    adapting(0, -1), adapting(0, NAN), adapting(0, 1e-3, 1.5)})
    CHECK(contains(refusal(plain_text(), wrong), "from 0 to 1"));
  CHECK(contains(refusal(plain_text(), adapting(0, 1)), "--adapt: at a rate of 1 the loss is "));
  const auto opened = [](const std::vector<std::string>& overrides) {
    return Run::open(plain_text().saved().folder, overrides);
  };
  CHECK(contains(refusal(opened({"data.valid=[]", "data.valid_fraction=0"}), adapting(9, 0)),
                 "--cache: its rule is chosen on validation data"));
  CHECK(contains(refusal(opened({"data.train=[none.txt]"}), adapting(0, 1e-3)), "none.txt"));
  const Run both = adapted_runs().trained("both", "type: pairs, max_source: 4, max_length: 16",
                                          ", prefix: bidirectional, positions: learned");
  CHECK(contains(refusal(both, adapting(9, 0)), "--cache: is for models that read from left to right"));
  InputText pair("12");
  pair.label = "567";
  AdaptedScorer learning(both.saved(), adapting(0, 1e-3));
  CHECK(std::isfinite(learning.score(pair).log_probability));
}

}  // namespace
}  // namespace capstan
