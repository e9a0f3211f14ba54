// Texts are read and computed in groups on all threads, and added up in their order.
// tests/train/linear/test_linear.cpp.
#include "train/evaluation/classifier_evaluation.hpp"

#include <algorithm>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/fused/loss.hpp"
#include "core/machine/parallel.hpp"
#include "models/linear_classifier.hpp"

namespace capstan {
namespace {

/// Texts whose losses are summed in float, and groups of them whose logits are in memory at once.
constexpr int64_t group_size = 64, groups_at_once = 64;

/// Texts that one thread reads and computes.
struct Group {
  Ids labels;  // (texts), or sets of labels as (texts, classes)
  Array logits;
};

Group read(const Model& classifier, const LabelledTexts& texts, int64_t begin, int64_t end) {
  const int64_t columns = classifier.label_columns();
  Group group{columns > 0 ? Ids(Shape{end - begin, columns}) : Ids(Shape{end - begin}), {}};
  std::fill_n(group.labels.mutable_data(), group.labels.size(), 0);
  std::vector<std::string> lines;
  for (int64_t i = begin; i < end; ++i) {
    lines.push_back(texts.text(i));
    for (const int32_t label : texts.labels(i))
      if (columns > 0)
        group.labels.mutable_data()[(i - begin) * columns + label] = 1;
      else
        group.labels.mutable_data()[i - begin] = label;
  }
  group.logits = classifier.linear_classifier().text_logits(lines);
  return group;
}

/// The evaluation before the first text.
ClassifierEvaluation nothing_of(const Model& classifier, const DecisionRule& rule, int64_t unseen, int64_t texts) {
  ClassifierEvaluation result;
  result.ranked.emplace(classifier.classes(), texts);
  if (classifier.label_columns() > 0) return result;
  result.report.emplace(classifier.classes(), rule, unseen);
  if (!rule.empty()) result.plain.emplace(classifier.classes(), DecisionRule(), unseen);
  return result;
}

/// Adds a batch of texts with one label each.
void add(const Model& classifier, const Var& logits, const Ids& labels, ClassifierEvaluation& result) {
  CrossEntropyOptions options;
  options.ignored = ignored_target;
  Ids known(labels.shape());  // the labels without those of classes that the model does not have
  for (int64_t row = 0; row < labels.size(); ++row) {
    const bool unseen = labels[row] >= classifier.classes();
    known.mutable_data()[row] = unseen ? ignored_target : labels[row];
    result.total.unseen += unseen ? 1 : 0;
  }
  const CrossEntropy loss = softmax_cross_entropy(logits, known, options);
  result.total.add({static_cast<double>(loss.sum.value().item()), loss.targets, 0});
  const Array probabilities = classifier.probabilities(logits);
  for (int64_t row = 0; row < labels.size(); ++row) {
    const int32_t label = labels[row];
    if (label == ignored_target) continue;
    const float* const of_row = probabilities.data() + row * classifier.classes();
    result.report->add(of_row, label);
    if (result.plain) result.plain->add(of_row, label);
    result.ranked->add(of_row, [&](int64_t c) { return c == label; });
  }
}

/// Sets total.correct, which follows from the decisions of the report.
void count_correct(ClassifierEvaluation& result) {
  for (int64_t c = 0; c < result.report->classes(); ++c) result.total.correct += result.report->count(c, c);
}

/// Adds a batch of texts with any number of labels.
void add(const Model& classifier, const Var& logits, const Ids& labels, ClassifierEvaluation& result,
         LabelReport& report) {
  result.total.add({static_cast<double>(sigmoid_cross_entropy(logits, labels).value().item()), labels.dim(0), 0});
  const Array probabilities = classifier.probabilities(logits);
  for (int64_t at = 0; at < labels.size(); at += report.labels()) {
    report.add(probabilities.data() + at, labels.data() + at);
    result.ranked->add(probabilities.data() + at, [&](int64_t c) { return labels[at + c] != 0; });
  }
}

void check_examples(int64_t count) {
  if (count == 0) throw Error("evaluation: the split has no examples: give more data");
}

}  // namespace

ClassifierEvaluation evaluate_classifier(const Model& classifier, const BatchSource& split, const DecisionRule& rule,
                                         int64_t unseen) {
  const TapePause no_tape;
  ClassifierEvaluation result = nothing_of(classifier, rule, unseen, split.examples_per_epoch());
  for (int64_t index = 0; index < split.batches_per_epoch(0); ++index) {
    const Batch batch = split.batch(0, index);
    add(classifier, classifier.logits(batch.tokens, Context::evaluation(batch)), batch.labels, result);
  }
  check_examples(result.total.targets + result.total.unseen);
  count_correct(result);
  return result;
}

ClassifierEvaluation evaluate_classifier(const Model& classifier, const LabelledTexts& texts, const DecisionRule& rule,
                                         int64_t unseen) {
  const TapePause no_tape;
  check_examples(texts.size());
  ClassifierEvaluation result = nothing_of(classifier, rule, unseen, texts.size());
  std::optional<LabelReport> sets;
  if (texts.multi_label()) sets.emplace(classifier.label_columns(), classifier.linear_classifier().thresholds());
  for (int64_t begin = 0; begin < texts.size(); begin += group_size * groups_at_once) {
    const int64_t end = std::min(begin + group_size * groups_at_once, texts.size());
    std::vector<Group> groups(static_cast<size_t>((end - begin + group_size - 1) / group_size));
    parallel_units(static_cast<int64_t>(groups.size()), [&](int64_t i) {
      const int64_t first = begin + i * group_size;
      groups[static_cast<size_t>(i)] = read(classifier, texts, first, std::min(first + group_size, end));
    });
    for (const Group& group : groups)
      if (sets)
        add(classifier, Var(group.logits), group.labels, result, *sets);
      else
        add(classifier, Var(group.logits), group.labels, result);
  }
  if (sets) {
    result.labels = sets->at(default_threshold);
    result.total.correct = result.labels->exact;
  } else {
    count_correct(result);
  }
  return result;
}

}  // namespace capstan
