#include "train/evaluation/evaluate_classifier.hpp"

#include <algorithm>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/fused/fused.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

/// Texts whose losses are summed in float, and groups of them whose logits are in memory at once.
constexpr int64_t group_size = 64, groups_at_once = 64;

struct Group {
  Ids labels;  // as in a batch
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
  group.logits = classifier.text_logits(lines);
  return group;
}

ClassifierEvaluation nothing_of(const Model& classifier) {
  ClassifierEvaluation result;
  if (classifier.label_columns() == 0) result.report.emplace(classifier.classes());
  return result;
}

void add(const Model& classifier, const Var& logits, const Ids& labels, ClassifierEvaluation& result) {
  CrossEntropyOptions options;
  options.ignored = ignored_target;
  options.count_correct = true;
  const CrossEntropy loss = softmax_cross_entropy(logits, labels, options);
  result.total.add({static_cast<double>(loss.sum.value().item()), loss.targets, loss.correct});
  const Array probabilities = classifier.probabilities(logits);
  for (int64_t row = 0; row < labels.size(); ++row)
    if (labels[row] != ignored_target)
      result.report->add(probabilities.data() + row * classifier.classes(), labels[row]);
}

/// Adds a batch of texts with any number of labels.
void add(const Model& classifier, const Var& logits, const Ids& labels, Evaluation& total, LabelReport& report) {
  total.add({static_cast<double>(sigmoid_cross_entropy(logits, labels).value().item()), labels.dim(0), 0});
  const Array probabilities = classifier.probabilities(logits);
  for (int64_t at = 0; at < labels.size(); at += report.labels())
    report.add(probabilities.data() + at, labels.data() + at);
}

void check_examples(int64_t count) {
  if (count == 0) throw Error("evaluation: the split has no examples: give more data");
}

}  // namespace

ClassifierEvaluation evaluate_classifier(const Model& classifier, const BatchSource& split) {
  const TapePause no_tape;
  ClassifierEvaluation result = nothing_of(classifier);
  for (int64_t index = 0; index < split.batches_per_epoch(0); ++index) {
    const Batch batch = split.batch(0, index);
    add(classifier, classifier.logits(batch.tokens, Context{Segments(batch.segment_ids)}), batch.labels, result);
  }
  check_examples(result.total.targets);
  return result;
}

ClassifierEvaluation evaluate_classifier(const Model& classifier, const LabelledTexts& texts) {
  const TapePause no_tape;
  check_examples(texts.size());
  ClassifierEvaluation result = nothing_of(classifier);
  std::optional<LabelReport> sets;
  if (texts.multi_label()) sets.emplace(classifier.label_columns(), classifier.thresholds());
  for (int64_t begin = 0; begin < texts.size(); begin += group_size * groups_at_once) {
    const int64_t end = std::min(begin + group_size * groups_at_once, texts.size());
    std::vector<Group> groups(static_cast<size_t>((end - begin + group_size - 1) / group_size));
    parallel_units(static_cast<int64_t>(groups.size()), [&](int64_t i) {
      const int64_t first = begin + i * group_size;
      groups[static_cast<size_t>(i)] = read(classifier, texts, first, std::min(first + group_size, end));
    });
    for (const Group& group : groups)
      if (sets)
        add(classifier, Var(group.logits), group.labels, result.total, *sets);
      else
        add(classifier, Var(group.logits), group.labels, result);
  }
  if (sets) {
    result.labels = sets->at(usual_threshold);
    result.total.correct = result.labels->exact;
  }
  return result;
}

}  // namespace capstan
