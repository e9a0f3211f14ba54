#include "train/linear/evaluate_texts.hpp"

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

Group read(const LinearClassifier& classifier, const LabelledTexts& texts, int64_t begin, int64_t end) {
  Group group{Ids(Shape{end - begin}), {}};
  std::vector<std::string> lines;
  for (int64_t i = begin; i < end; ++i) {
    lines.push_back(texts.text(i));
    group.labels.mutable_data()[i - begin] = texts.label(i);
  }
  group.logits = classifier.logits(lines);
  return group;
}

void add(const LinearClassifier& classifier, const Group& group, ClassifierEvaluation& result) {
  CrossEntropyOptions options;
  options.count_correct = true;
  const CrossEntropy loss = softmax_cross_entropy(Var(group.logits), group.labels, options);
  result.total.add({static_cast<double>(loss.sum.value().item()), loss.targets, loss.correct});
  const Array probabilities = classifier.probabilities(group.logits);
  for (int64_t row = 0; row < group.labels.size(); ++row)
    result.report.add(probabilities.data() + row * classifier.classes(), group.labels[row]);
}

}  // namespace

std::optional<ClassifierEvaluation> evaluate_texts(const LinearClassifier& classifier, const LabelledTexts& texts,
                                                   const std::function<bool()>& stop) {
  const TapePause no_tape;
  if (texts.size() == 0) throw Error("evaluation: the split has no examples: give more data");
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
    for (const Group& group : groups) add(classifier, group, result);
  }
  return result;
}

}  // namespace capstan
