// Multi-label figures: against scikit-learn (tests/parity/make_label_metrics.py), and by hand.
#include "core/fused/loss.hpp"
#include "train/evaluation/label_report.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/io/file.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/train/rank_threads.hpp"
#include "train/evaluation/evaluate.hpp"

namespace capstan {
namespace {

struct Example {
  nlohmann::json json;
  std::vector<std::vector<float>> probabilities;
  std::vector<std::vector<int32_t>> truth;
  int64_t labels = 0;

  Example() : json(nlohmann::json::parse(read_file(source_path("tests/parity/fixtures/label_metrics.json")))) {
    json.at("probabilities").get_to(probabilities);
    json.at("truth").get_to(truth);
    labels = static_cast<int64_t>(truth.front().size());
  }
  LabelReport report(size_t begin, size_t end) const {
    LabelReport result(labels);
    for (size_t i = begin; i < end; ++i) result.add(probabilities[i].data(), truth[i].data());
    return result;
  }
};

bool same(double value, const nlohmann::json& expected) { return std::abs(value - expected.get<double>()) < 1e-12; }

TEST_CASE("label report: the numbers of scikit-learn at every threshold") {
  const Example example;
  const LabelReport report = example.report(0, example.truth.size());
  double best_f1 = 0;
  for (const auto& scores : example.json.at("scores")) {
    const LabelFigures figures = report.at(scores.at("threshold").get<double>());
    INFO(scores.dump());
    CHECK(same(figures.all.precision(), scores.at("micro_precision")));
    CHECK(same(figures.all.recall(), scores.at("micro_recall")));
    CHECK(same(figures.all.f1(), scores.at("micro_f1")));
    CHECK(same(figures.macro_f1(), scores.at("macro_f1")));
    CHECK(same(figures.accuracy(), scores.at("accuracy")));
    for (size_t c = 0; c < figures.of_label.size(); ++c) {
      CHECK(same(figures.of_label[c].precision(), scores.at("label_precision")[c]));
      CHECK(same(figures.of_label[c].recall(), scores.at("label_recall")[c]));
      CHECK(same(figures.of_label[c].f1(), scores.at("label_f1")[c]));
    }
    best_f1 = std::max(best_f1, figures.all.f1());
    REQUIRE(figures.precision_at.size() == 3);
    for (const PrecisionAt& at : figures.precision_at)
      CHECK(same(at.precision, example.json.at("precision_at").at(std::to_string(at.k))));
  }
  CHECK(report.at(report.best_threshold()).all.f1() == best_f1);
}

TEST_CASE("sigmoid cross-entropy: the sum of scikit-learn's log_loss over the labels") {
  const Example example;
  std::vector<float> logits;
  std::vector<int32_t> labels;
  for (size_t i = 0; i < example.truth.size(); ++i)
    for (size_t c = 0; c < example.truth[i].size(); ++c) {
      const double p = static_cast<double>(example.probabilities[i][c]);
      logits.push_back(static_cast<float>(std::log(p / (1 - p))));
      labels.push_back(example.truth[i][c]);
    }
  const auto texts = static_cast<int64_t>(example.truth.size());
  const Shape shape{texts, example.labels};
  const Var loss = sigmoid_cross_entropy(Var(Array(shape, logits)), Ids(shape, labels));
  CHECK(static_cast<double>(loss.value().item()) / static_cast<double>(texts) ==
        doctest::Approx(example.json.at("log_loss").get<double>()).epsilon(1e-6));
}

TEST_CASE("label report: parts add up, in any order") {
  const Example example;
  const LabelReport whole = example.report(0, example.truth.size());
  LabelReport sum = example.report(40, example.truth.size());
  sum.add(example.report(0, 13).bytes());
  sum.add(example.report(13, 40).bytes());
  CHECK(sum.bytes() == whole.bytes());
  CHECK(sum.texts() == 60);
  CHECK_THROWS_AS(sum.add(LabelReport(2).bytes()), std::invalid_argument);
}

/// Has the labels of Example, and its probabilities.
class ExampleTask final : public Task {
 public:
  explicit ExampleTask(const Example& example) : example_(example) {}
  TaskLoss loss(const Batch& batch, const Context&) const override {
    TaskLoss loss;
    loss.targets = batch.tokens.dim(0);
    loss.sum = Var(Array::scalar(static_cast<real>(loss.targets)));
    loss.probabilities = Array(Shape{loss.targets, example_.labels});
    for (int64_t row = 0; row < loss.targets; ++row)
      std::copy_n(example_.probabilities[static_cast<size_t>(batch.examples[row])].begin(), example_.labels,
                  loss.probabilities.mutable_data() + row * example_.labels);
    return loss;
  }
  int64_t label_columns() const override { return example_.labels; }

 private:
  const Example& example_;
};

class ExampleBatches final : public testing::DrawnBatches {
 public:
  explicit ExampleBatches(const Example& example) : example_(example) { count = 10; }
  Batch batch(int64_t epoch, int64_t index) const override {
    Batch batch = DrawnBatches::batch(epoch, index);
    batch.labels = Ids(Shape{rows, example_.labels});
    for (int64_t row = 0; row < rows; ++row)
      std::copy_n(example_.truth[static_cast<size_t>(batch.examples[row])].begin(), example_.labels,
                  batch.labels.mutable_data() + row * example_.labels);
    return batch;
  }

 private:
  const Example& example_;
};

TEST_CASE("label report: every rank gets the decisions of all") {
  const Example example;
  const std::string whole = example.report(0, example.truth.size()).bytes();
  for (const int count : {1, 2, 3})
    testing::run_ranks(count, [&](Communicator& ranks) {
      LabelReport report(example.labels);
      const auto total = evaluate(ExampleTask(example), ExampleBatches(example), 0, &ranks, {&report});
      const bool right = total.targets == 60 && report.bytes() == whole;
      if (!right) throw std::runtime_error("rank " + std::to_string(ranks.rank()) + " of " + std::to_string(count));
    });
}

TEST_CASE("label report: of equally good thresholds the nearest to 0.5") {
  LabelReport report(2);
  const auto add = [&](float first, float second, int32_t has_first, int32_t has_second) {
    const float probabilities[] = {first, second};
    const int32_t truth[] = {has_first, has_second};
    report.add(probabilities, truth);
  };
  CHECK(report.best_threshold() == 0.5);  // nothing seen
  CHECK(report.at(0.5).accuracy() == 0);
  CHECK(report.at(0.5).macro_f1() == 0);
  add(0.9F, 0.1F, 1, 0);
  CHECK(report.best_threshold() == 0.5);
  add(0.3F, 0.2F, 1, 0);  // perfect from 0.21 to 0.30
  CHECK(report.best_threshold() == 0.3);
  CHECK(report.at(0.3).accuracy() == 1);
  CHECK(report.at(0.31).accuracy() == 0.5);
  CHECK(report.at(0.2).all.predicted == 3);        // a probability equal to the threshold reaches it
  CHECK(report.at(0.3).precision_at.size() == 1);  // of two labels, only P@1
  CHECK_THROWS_AS(report.at(0.305), std::invalid_argument);
  CHECK_THROWS_AS(report.at(1), std::invalid_argument);
  CHECK_THROWS_AS(LabelReport(0), std::invalid_argument);
}

TEST_CASE("label report: a threshold for each label, that of all labels for one that is rare") {
  LabelReport report(3);
  const auto add = [](LabelReport& to, const std::vector<float>& probabilities, const std::vector<int32_t>& truth) {
    to.add(probabilities.data(), truth.data());
  };
  const auto add_all = [&](LabelReport& to) {
    for (int i = 0; i < 200; ++i) {
      add(to, {0.2F, 0.8F, 0.1F}, {1, 1, 0});
      add(to, {0.1F, 0.6F, 0.1F}, {0, 0, 0});
    }
    add(to, {0.1F, 0.1F, 0.95F}, {0, 0, 1});
  };
  add_all(report);
  const std::vector<double> thresholds = report.best_thresholds();
  REQUIRE(thresholds.size() == 3);
  CHECK(thresholds[0] == 0.2);
  CHECK(thresholds[1] > 0.6);
  CHECK(thresholds[1] <= 0.8);
  CHECK(thresholds[2] < 0.9);  // not just below the only text that has it
  LabelReport decided(3, thresholds);
  add_all(decided);
  const LabelFigures figures = decided.at(default_threshold);
  CHECK(figures.thresholds == thresholds);
  CHECK(figures.accuracy() == 1);
  CHECK(figures.macro_f1() == 1);
  CHECK(report.at(report.best_threshold()).accuracy() < 1);
  CHECK(LabelReport(2).best_thresholds() == std::vector<double>{0.5, 0.5});  // nothing seen
  CHECK_THROWS_AS(LabelReport(2, {0.5}), std::invalid_argument);
}

TEST_CASE("label report: probabilities that are no numbers reach no threshold") {
  LabelReport report(6);
  const std::vector<float> probabilities(6, std::nanf(""));
  const std::vector<int32_t> truth(6, 1);
  report.add(probabilities.data(), truth.data());
  CHECK(report.at(0.01).all.predicted == 0);
  CHECK(report.at(0.01).precision_at.size() == 3);
}

}  // namespace
}  // namespace capstan
