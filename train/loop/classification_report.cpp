#include "train/loop/classification_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/ops/loss.hpp"
#include "core/ops/softmax.hpp"
#include "data/batches/prefetch.hpp"

namespace capstan {
namespace {

double quotient(double part, int64_t whole) { return whole > 0 ? part / static_cast<double>(whole) : 0; }

}  // namespace

ClassificationReport::ClassificationReport(int64_t classes)
    : classes_(classes), counts_(static_cast<size_t>(classes * classes)) {
  check(classes > 0, "classification report: {} classes", classes);
}

void ClassificationReport::add(const float* probabilities, int64_t truth) {
  const int64_t predicted = std::max_element(probabilities, probabilities + classes_) - probabilities;
  add({static_cast<int32_t>(predicted), static_cast<int32_t>(truth), probabilities[predicted]});
}

void ClassificationReport::add(const Answer& answer) {
  check(answer.truth >= 0 && answer.truth < classes_, "classification report: class {} is outside [0, {})",
        answer.truth, classes_);
  const double confidence = answer.confidence;
  ++examples_;
  ++counts_[static_cast<size_t>(answer.truth * classes_ + answer.predicted)];
  const auto bin = std::clamp<int64_t>(static_cast<int64_t>(confidence * bin_count), 0, bin_count - 1);
  Bin& entry = bins_[static_cast<size_t>(bin)];
  ++entry.examples;
  entry.correct += answer.predicted == answer.truth ? 1 : 0;
  entry.confidence += confidence;
}

int64_t ClassificationReport::of_class(int64_t truth) const {
  int64_t sum = 0;
  for (int64_t predicted = 0; predicted < classes_; ++predicted) sum += count(truth, predicted);
  return sum;
}

int64_t ClassificationReport::predicted_as(int64_t predicted) const {
  int64_t sum = 0;
  for (int64_t truth = 0; truth < classes_; ++truth) sum += count(truth, predicted);
  return sum;
}

double ClassificationReport::accuracy() const {
  int64_t correct = 0;
  for (int64_t c = 0; c < classes_; ++c) correct += count(c, c);
  return quotient(static_cast<double>(correct), examples_);
}

double ClassificationReport::precision(int64_t c) const {
  return quotient(static_cast<double>(count(c, c)), predicted_as(c));
}

double ClassificationReport::recall(int64_t c) const { return quotient(static_cast<double>(count(c, c)), of_class(c)); }

double ClassificationReport::f1(int64_t c) const {
  return quotient(2 * static_cast<double>(count(c, c)), of_class(c) + predicted_as(c));
}

double ClassificationReport::macro_f1() const {
  double sum = 0;
  int64_t occurring = 0;
  for (int64_t c = 0; c < classes_; ++c) {
    if (of_class(c) + predicted_as(c) == 0) continue;
    sum += f1(c);
    ++occurring;
  }
  return quotient(sum, occurring);
}

double ClassificationReport::calibration_error() const {
  double sum = 0;
  for (const Bin& bin : bins_) sum += std::abs(static_cast<double>(bin.correct) - bin.confidence);
  return quotient(sum, examples_);
}

std::vector<Confusion> most_frequent_confusions(const ClassificationReport& report, size_t limit) {
  std::vector<Confusion> all;
  for (int64_t truth = 0; truth < report.classes(); ++truth)
    for (int64_t predicted = 0; predicted < report.classes(); ++predicted)
      if (truth != predicted && report.count(truth, predicted) > 0)
        all.push_back({report.count(truth, predicted), truth, predicted});
  std::stable_sort(all.begin(), all.end(), [](const Confusion& a, const Confusion& b) { return a.count > b.count; });
  if (all.size() > limit) all.resize(limit);
  return all;
}

namespace {

/// Of one batch.
struct Answers {
  Evaluation sums;
  std::vector<ClassificationReport::Answer> rows;
};

Answers answers_to(const TextClassifier& classifier, int64_t classes, const Batch& batch) {
  CrossEntropyOptions options;
  options.ignored = ignored_target;
  options.count_correct = true;
  const Var logits = classifier.logits(batch.tokens, Context{Segments(batch.segment_ids)});
  const CrossEntropy loss = softmax_cross_entropy(logits, batch.labels, options);
  Answers answers{{static_cast<double>(loss.sum.value().item()), loss.targets, loss.correct}, {}};
  const Array probabilities = softmax(logits).value();
  for (int64_t row = 0; row < batch.labels.size(); ++row) {
    if (batch.labels[row] == ignored_target) continue;
    const float* const of_row = probabilities.data() + row * classes;
    const int64_t predicted = std::max_element(of_row, of_row + classes) - of_row;
    answers.rows.push_back({static_cast<int32_t>(predicted), batch.labels[row], of_row[predicted]});
  }
  return answers;
}

template <class T>
void append_bytes_of(std::string& text, const T& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <class T>
T take_bytes_of(std::string_view& text) {
  T value;
  std::memcpy(&value, text.data(), sizeof(value));
  text.remove_prefix(sizeof(value));
  return value;
}

std::string text_of(const Answers& answers) {
  std::string text;
  append_bytes_of(text, answers.sums);
  append_bytes_of(text, static_cast<uint64_t>(answers.rows.size()));
  for (const ClassificationReport::Answer& row : answers.rows) append_bytes_of(text, row);
  return text;
}

Answers take_answers(std::string_view& text) {
  Answers answers{take_bytes_of<Evaluation>(text), {}};
  answers.rows.resize(take_bytes_of<uint64_t>(text));
  for (ClassificationReport::Answer& row : answers.rows) row = take_bytes_of<ClassificationReport::Answer>(text);
  return answers;
}

}  // namespace

ClassifierEvaluation evaluate_classifier(const TextClassifier& classifier, int64_t classes, const BatchSource& split,
                                         Communicator* ranks) {
  const TapePause no_tape;
  Communicator one_process;
  if (ranks == nullptr) ranks = &one_process;
  // Ranks take batches in turn; all of them add up what all have found, in the order of the batches.
  const SomeBatches own(split, std::vector<int64_t>(static_cast<size_t>(ranks->size()), 1),
                        static_cast<size_t>(ranks->rank()));
  std::string found;
  if (own.batches_per_epoch(0) > 0) {
    Prefetcher::Options one_epoch;
    one_epoch.end_epoch = 1;
    Prefetcher batches(own, one_epoch);
    while (const auto prepared = batches.next()) found += text_of(answers_to(classifier, classes, prepared->batch));
  }
  const Communicator::Patience others(*ranks);
  const std::vector<std::string> all = ranks->gather(found);
  std::vector<std::string_view> rest(all.begin(), all.end());
  ClassifierEvaluation result{{}, ClassificationReport(classes)};
  for (int64_t index = 0; index < split.batches_per_epoch(0); ++index) {
    const Answers answers = take_answers(rest[static_cast<size_t>(index) % rest.size()]);
    result.total.add(answers.sums);
    for (const ClassificationReport::Answer& row : answers.rows) result.report.add(row);
  }
  if (result.total.targets == 0) throw Error("evaluation: the split has no examples: give more data");
  return result;
}

}  // namespace capstan
