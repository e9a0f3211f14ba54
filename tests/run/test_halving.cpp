// Successive halving against candidates whose cost and time are known.
#include "run/training/halving.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "run/training/autotune.hpp"

using namespace capstan;

namespace {

/// Candidates that take ten seconds as a whole, and cost what `cost` says; INFINITY: they fail.
class Candidates {
 public:
  std::function<double(const Trial&)> cost = [](const Trial& trial) { return static_cast<double>(trial.candidate); };
  std::vector<Trial> tried;
  std::vector<std::string> rungs;
  double left = 0;
  size_t stop_after = 1000;

  SearchEnd search(size_t count, double seconds, uint64_t seed = 1) {
    return search_by_halving(
        count, seconds, seed,
        [this](const Trial& trial, double seconds_left) {
          tried.push_back(trial);
          left = seconds_left;
          return TrialOutcome{!std::isinf(cost(trial)), cost(trial), 10.0 / static_cast<double>(trial.divisor)};
        },
        {[this] { return tried.size() >= stop_after; },
         [this](const HalvingPlan& rung) {
           rungs.push_back(std::to_string(rung.candidates) + "/" + std::to_string(rung.divisor));
         }});
  }
};

using Rungs = std::vector<std::string>;

}  // namespace

TEST_CASE("the plan shortens trials as much as the time demands, and then draws some") {
  const auto plan = [](size_t candidates, double seconds) {
    const HalvingPlan p = plan_halving(candidates, 10, seconds);
    return std::to_string(p.candidates) + "/" + std::to_string(p.divisor);
  };
  CHECK(plan(9, 90) == "9/1");
  CHECK(plan(9, 89) == "9/3");   // two rungs of 30 seconds
  CHECK(plan(9, 59) == "9/9");   // three of 10
  CHECK(plan(9, 29) == "9/27");  // four of 3.3
  CHECK(plan(9, 13) == "3/9");
  CHECK(plan(9, 3) == "0/9");
  CHECK(plan(0, 3) == "0/1");
  CHECK(plan_halving(5, 0, 1).divisor == 1);
}

TEST_CASE("every rung keeps the best third") {
  Candidates candidates;
  candidates.cost = [](const Trial& trial) { return trial.candidate == 5 ? NAN : 10.0 - double(trial.candidate); };
  CHECK(candidates.search(10, 40) == SearchEnd::complete);
  CHECK(candidates.rungs == Rungs{"9/9", "3/3", "1/1"});
  REQUIRE(candidates.tried.size() == 1 + 9 + 3 + 1);
  CHECK(candidates.tried.front().candidate == 0);  // the given configuration, as a whole
  CHECK(candidates.tried.front().divisor == 1);
  CHECK(candidates.tried[10].candidate == 9);
  CHECK(candidates.tried[12].candidate == 7);
  CHECK(candidates.tried[13].candidate == 9);
  CHECK(candidates.left == doctest::Approx(40 - 10 - 10 - 10));
}

TEST_CASE("NAN is worse than any number, and of equals the earlier goes on") {
  Candidates candidates;
  candidates.cost = [](const Trial& trial) { return trial.candidate == 1 ? NAN : 3.0; };
  CHECK(candidates.search(7, 50) == SearchEnd::complete);
  CHECK(candidates.rungs == Rungs{"6/3", "2/1"});
  CHECK(candidates.tried[7].candidate == 2);
  CHECK(candidates.tried[8].candidate == 3);
}

TEST_CASE("failed trials are left out; without the given configuration the search has failed") {
  Candidates candidates;
  candidates.cost = [](const Trial& trial) { return trial.candidate == 2 ? INFINITY : 9.0 - double(trial.candidate); };
  CHECK(candidates.search(4, 35) == SearchEnd::complete);
  CHECK(candidates.rungs == Rungs{"3/3", "1/1"});
  CHECK(candidates.tried.back().candidate == 3);
  candidates.cost = [](const Trial&) { return INFINITY; };
  CHECK(candidates.search(4, 1000) == SearchEnd::failed);
  CHECK(candidates.search(0, 1000) == SearchEnd::failed);
}

TEST_CASE("no trial begins that would not end in time, and a stop ends the search") {
  Candidates candidates;
  CHECK(candidates.search(4, 10) == SearchEnd::time);
  CHECK(candidates.tried.size() == 1);
  Candidates slow;  // short trials take as long as whole ones
  size_t count = 0;
  const SearchEnd end = search_by_halving(10, 60, 1,
                                          [&](const Trial&, double) {
                                            ++count;
                                            return TrialOutcome{true, 1, 10};
                                          },
                                          {});
  CHECK(end == SearchEnd::time);
  CHECK(count == 6);
  Candidates stopped;
  stopped.stop_after = 3;
  CHECK(stopped.search(10, 1000) == SearchEnd::stopped);
  CHECK(stopped.tried.size() == 3);
}

TEST_CASE("where not all fit, candidates are drawn by the seed") {
  const auto drawn = [](uint64_t seed) {
    Candidates candidates;
    candidates.search(100, 23, seed);
    REQUIRE(candidates.rungs.front() == "3/9");
    return std::vector<size_t>{candidates.tried[1].candidate, candidates.tried[2].candidate,
                               candidates.tried[3].candidate};
  };
  CHECK(drawn(1) == drawn(1));
  CHECK(drawn(1) != drawn(2));
  CHECK(drawn(1)[0] < drawn(1)[1]);
  CHECK(drawn(1)[0] > 0);
}

TEST_CASE("a trial is shortened by its steps, or by its labelled examples") {
  RunConfig config;
  config.train.steps = 100;
  config.train.schedule.warmup_steps = 30;
  CHECK(shortened(config, 9).train.steps == 11);
  CHECK(shortened(config, 9).train.schedule.warmup_steps == 3);
  CHECK(shortened(config, 1000).train.steps == 1);
  config.train.steps = 0;
  config.data = LabelledSourceConfig{};
  CHECK(std::get<LabelledSourceConfig>(shortened(config, 4).data).train_fraction == 0.25);
  CHECK(std::get<LabelledSourceConfig>(shortened(config, 1).data).train_fraction == 1);
}

TEST_CASE("the usual search has the given values and others, and refuses what cannot be compared or shortened") {
  RunConfig config;
  config.train.lr = 2e-3;
  CHECK(default_search_space(config)[0] == "sweep.train.lr=[0.002, 0.001, 0.004, 0.0005, 0.008]");
  config.model = LinearClassifierConfig();
  std::get<LinearClassifierConfig>(config.model).words = {1};
  CHECK(default_search_space(config)[0] == "sweep.model.words=[[1, 2], [1], [1, 2, 3]]");
  LabelledSourceConfig labelled;
  labelled.valid_fraction = 0;
  config.data = labelled;
  ProblemText linear("config"), stack("config"), text("config");
  check_tunable(config, linear);  // cross-validation
  CHECK(linear.text() == "");
  config.train.init_from = "runs/reviews";
  ProblemText fixed("config");
  check_tunable(config, fixed);
  CHECK(fixed.text().find("train.init_from") != std::string::npos);
  config.train.init_from.clear();
  config.model = TextClassifierConfig{};
  check_tunable(config, stack);
  CHECK(stack.text().rfind("config.data.valid_fraction: ", 0) == 0);
  config.data = TextSourceConfig{};
  check_tunable(config, text);
  CHECK(text.text().rfind("config.train.steps: ", 0) == 0);
}

TEST_CASE("the configured dropout is among the usual values, once") {
  RunConfig config;
  LanguageModelConfig model;
  model.dropout = 0.7;
  config.model = model;
  CHECK(default_search_space(config)[1] == "sweep.model.dropout=[0.7, 0, 0.1, 0.3]");
  model.dropout = 0.1;
  config.model = model;
  CHECK(default_search_space(config)[1] == "sweep.model.dropout=[0.1, 0, 0.3]");
}

TEST_CASE("runs with other data or seeds are not compared") {
  RunConfig a, b;
  CHECK(incomparable_key(a, b) == "");
  b.train.lr = 1;
  CHECK(incomparable_key(a, b) == "");
  b.seed = 2;
  CHECK(incomparable_key(a, b) == "seed");
  TextSourceConfig characters;
  characters.tokenizer = CharTokenizerConfig{};
  a.data = TextSourceConfig{};
  b = a;
  b.data = characters;
  CHECK(incomparable_key(a, b) == "data.tokenizer");
  LabelledSourceConfig labelled;
  labelled.folds = 5;
  a.data = labelled;
  b = a;
  labelled.tokenizer = CharTokenizerConfig{};
  b.data = labelled;
  CHECK(incomparable_key(a, b) == "");
  labelled = std::get<LabelledSourceConfig>(a.data);
  labelled.fold = 1;
  b = a;
  b.data = labelled;
  CHECK(incomparable_key(a, b) == "data.fold");
  labelled = std::get<LabelledSourceConfig>(a.data);
  labelled.train = {"other.tsv"};
  b.data = labelled;
  CHECK(incomparable_key(a, b) == "data.train");
}
