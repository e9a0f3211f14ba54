// What a search tries, and for how much of the training.
#include "run/training/search_space.hpp"

#include <doctest/doctest.h>

#include "run/training/search.hpp"
#include "tests/support/texts.hpp"

using namespace capstan;

TEST_CASE("short runs are a third of the training, or a ninth; none where all fit") {
  CHECK(divisor_for(10, 10, 100) == 1);
  CHECK(divisor_for(10, 10, 99) == 3);
  CHECK(divisor_for(10, 10, 67) == 3);
  CHECK(divisor_for(10, 10, 66) == 9);
  CHECK(divisor_for(10, 10, -1) == 9);
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
  CHECK(contains(fixed.text(), "train.init_from"));
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
  b.data = labelled;
  CHECK(incomparable_key(a, b) == "data.fold");
  labelled = std::get<LabelledSourceConfig>(a.data);
  labelled.train = {"other.tsv"};
  b.data = labelled;
  CHECK(incomparable_key(a, b) == "data.train");
}
