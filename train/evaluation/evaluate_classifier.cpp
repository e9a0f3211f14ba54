#include "train/evaluation/evaluate_classifier.hpp"

#include <algorithm>
#include <atomic>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/fused/loss.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

/// Texts whose losses are summed in float, and groups of them whose logits are in memory at once.
constexpr int64_t group_size = 64, groups_at_once = 64;

struct Group {
  Ids labels;
  Array logits;
};

Group read(const Model& classifier, const LabelledTexts& texts, int64_t begin, int64_t end) {
  Group group{Ids(Shape{end - begin}), {}};
  std::vector<std::string> lines;
  for (int64_t i = begin; i < end; ++i) {
    lines.push_back(texts.text(i));
    group.labels.mutable_data()[i - begin] = texts.label(i);
  }
  group.logits = classifier.text_logits(lines);
  return group;
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
      result.report.add(probabilities.data() + row * classifier.classes(), labels[row]);
}

void check_examples(int64_t count) {
  if (count == 0) throw Error("evaluation: the split has no examples: give more data");
}

}  // namespace

ClassifierEvaluation evaluate_classifier(const Model& classifier, const BatchSource& split) {
  const TapePause no_tape;
  ClassifierEvaluation result{{}, ClassificationReport(classifier.classes())};
  for (int64_t index = 0; index < split.batches_per_epoch(0); ++index) {
    const Batch batch = split.batch(0, index);
    add(classifier, classifier.logits(batch.tokens, Context{Segments(batch.segment_ids)}), batch.labels, result);
  }
  check_examples(result.total.targets);
  return result;
}

std::optional<ClassifierEvaluation> evaluate_classifier(const Model& classifier, const LabelledTexts& texts,
                                                        const std::function<bool()>& stop) {
  const TapePause no_tape;
  check_examples(texts.size());
  ClassifierEvaluation result{{}, ClassificationReport(classifier.classes())};
  std::atomic<bool> stopped{false};
  for (int64_t begin = 0; begin < texts.size(); begin += group_size * groups_at_once) {
    const int64_t end = std::min(begin + group_size * groups_at_once, texts.size());
    std::vector<Group> groups(static_cast<size_t>((end - begin + group_size - 1) / group_size));
    parallel_units(static_cast<int64_t>(groups.size()), [&](int64_t i) {
      if (stopped || (stop && stop())) {
        stopped = true;
        return;
      }
      const int64_t first = begin + i * group_size;
      groups[static_cast<size_t>(i)] = read(classifier, texts, first, std::min(first + group_size, end));
    });
    if (stopped) return std::nullopt;
    for (const Group& group : groups) add(classifier, Var(group.logits), group.labels, result);
  }
  return result;
}

}  // namespace capstan
