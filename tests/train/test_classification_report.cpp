// The classification report: against counts done by hand, and one pass with the loss of evaluate().
#include <doctest/doctest.h>

#include "train/evaluation/classification_report.hpp"

namespace capstan {
namespace {

/// Adds an example that is labelled `predicted` with the probability `confidence`.
void add(ClassificationReport& report, int64_t truth, int64_t predicted, float confidence) {
  const auto classes = static_cast<size_t>(report.classes());
  std::vector<float> probabilities(classes, (1 - confidence) / static_cast<float>(classes - 1));
  probabilities[static_cast<size_t>(predicted)] = confidence;
  report.add(probabilities.data(), truth);
}

}  // namespace

TEST_CASE("classification report: what is answered, and right, from a probability on") {
  ClassificationReport report(2);
  add(report, 0, 0, 0.97F);
  add(report, 0, 0, 0.75F);
  add(report, 1, 0, 0.72F);
  add(report, 1, 1, 0.6F);
  for (const CoveragePoint& point : report.coverage()) {
    CAPTURE(point.probability);
    const double least = point.probability;
    CHECK(point.coverage == (least <= 0.5 ? 1 : least <= 0.7 ? 0.75 : least <= 0.95 ? 0.25 : 0));
    CHECK(point.accuracy == doctest::Approx(least <= 0.5 ? 0.75 : least <= 0.7 ? 2.0 / 3 : least <= 0.95 ? 1 : 0));
  }
}

TEST_CASE("classification report: precision, recall, f1 and their mean, counted by hand") {
  ClassificationReport report(4);  // class 3 never occurs
  for (int i = 0; i < 3; ++i) add(report, 0, 0, 0.9F);
  add(report, 0, 1, 0.6F);
  for (int i = 0; i < 2; ++i) add(report, 1, 1, 0.8F);
  add(report, 2, 0, 0.7F);

  CHECK(report.examples() == 7);
  CHECK(report.count(0, 0) == 3);
  CHECK(report.count(0, 1) == 1);
  CHECK(report.count(2, 0) == 1);
  CHECK(report.count(0, 2) == 0);
  CHECK(report.of_class(0) == 4);
  CHECK(report.predicted_as(0) == 4);
  CHECK(report.accuracy() == doctest::Approx(5.0 / 7));
  CHECK(report.precision(0) == doctest::Approx(3.0 / 4));
  CHECK(report.recall(0) == doctest::Approx(3.0 / 4));
  CHECK(report.precision(1) == doctest::Approx(2.0 / 3));
  CHECK(report.recall(1) == doctest::Approx(1.0));
  CHECK(report.f1(1) == doctest::Approx(0.8));
  CHECK(report.precision(2) == 0);  // never predicted
  CHECK(report.f1(2) == 0);
  CHECK(report.f1(3) == 0);
  CHECK(report.occurring() == 3);
  CHECK(report.macro_f1() == doctest::Approx((0.75 + 0.8 + 0) / 3));
}

TEST_CASE("classification report: classes that the model does not have are wrong, and count in the mean") {
  ClassificationReport report(2, {}, 1);
  const float likely[] = {0.9F, 0.1F};
  for (const int64_t truth : {0, 0, 2}) report.add(likely, truth);
  CHECK(report.classes() == 3);
  CHECK(report.accuracy() == doctest::Approx(2.0 / 3));
  CHECK(report.f1(0) == doctest::Approx(0.8));
  CHECK(report.recall(2) == 0);
  CHECK(report.macro_f1() == doctest::Approx(0.4));  // as scikit-learn has it
  CHECK_THROWS_AS(report.add(likely, 3), std::invalid_argument);
}

TEST_CASE("classification report: calibration error") {
  SUBCASE("as often right as it says") {
    ClassificationReport report(2);
    for (int i = 0; i < 10; ++i) add(report, i < 8 ? 0 : 1, 0, 0.8F);
    CHECK(report.calibration_error() == doctest::Approx(0).epsilon(1e-6));
  }
  SUBCASE("two bins, each by its share of the examples") {
    ClassificationReport report(2);
    for (int i = 0; i < 6; ++i) add(report, i < 3 ? 0 : 1, 0, 0.9F);  // 0.9 said, 0.5 true
    for (int i = 0; i < 2; ++i) add(report, 1, 1, 0.75F);             // 0.75 said, 1 true
    CHECK(report.calibration_error() == doctest::Approx((6 * 0.4 + 2 * 0.25) / 8));
  }
  SUBCASE("always right and certain") {
    ClassificationReport report(2);
    add(report, 1, 1, 1.0F);
    CHECK(report.calibration_error() == doctest::Approx(0));
  }
}

TEST_CASE("classification report: memory is in proportion to what occurs, not to the square of the classes") {
  ClassificationReport report(200'000);  // squared: 320 GB of counts
  add(report, 0, 199'999, 0.9F);
  add(report, 0, 199'999, 0.9F);
  add(report, 7, 7, 0.9F);
  add(report, 8, 7, 0.9F);
  CHECK(report.counts().size() == 3);
  CHECK(report.of_class(0) == 2);
  CHECK(report.predicted_as(7) == 2);
  CHECK(report.macro_f1() == doctest::Approx((2.0 / 3) / 4));  // of classes 0, 7, 8 and 199,999
  const std::vector<Confusion> frequent = most_frequent_confusions(report, 5);
  REQUIRE(frequent.size() == 2);
  CHECK(frequent[0].count == 2);
  CHECK(frequent[0].predicted == 199'999);
  CHECK(frequent[1].truth == 8);
}

TEST_CASE("classification report: nothing seen, and a class that is not there") {
  ClassificationReport report(2);
  CHECK(report.accuracy() == 0);
  CHECK(report.macro_f1() == 0);
  CHECK(report.calibration_error() == 0);
  const float probabilities[] = {0.5F, 0.5F};
  CHECK_THROWS_WITH_AS(report.add(probabilities, 2), doctest::Contains("class 2 is outside [0, 2)"),
                       std::invalid_argument);
  CHECK_THROWS_AS(ClassificationReport(0), std::invalid_argument);
}

}  // namespace capstan
