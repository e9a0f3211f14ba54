// tests/cli/runs/test_compare_models.cpp.
#include "run/predictions/compare_models.hpp"

#include <cmath>
#include <map>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "run/predictions/predictions.hpp"
#include "run/predictions/text_scores.hpp"

namespace capstan {
namespace {

constexpr size_t batch_texts = 256;

/// The next texts of both inputs, which are the same rows; none at the end.
using TextPair = std::pair<std::vector<InputText>, std::vector<InputText>>;
TextPair next_texts(TextInput& of_first, TextInput& of_second) {
  TextPair texts;
  InputText first, second;
  while (texts.first.size() < batch_texts) {
    const bool more = of_first.next(first);
    if (more != of_second.next(second))
      throw Error("compare: the two runs read a different number of texts; give --input and --text-column");
    if (!more) break;
    if (first.label != second.label || first.labels != second.labels)
      throw Error(fmt::format(
          "compare: at {} the two runs read different labels, '{}' and '{}'; give data with one column of labels",
          first.place, first.label, second.label));
    texts.first.push_back(first);
    texts.second.push_back(second);
  }
  return texts;
}

/// Labels of texts as numbers, by name.
class LabelNumbers {
 public:
  int64_t number(const std::string& label) {
    return numbers_.emplace(label, static_cast<int64_t>(numbers_.size())).first->second;
  }
  size_t size() const { return numbers_.size(); }

 private:
  std::map<std::string, int64_t> numbers_;
};

struct Decisions {
  std::vector<int64_t> truth, first, second;
  size_t classes = 0;
};

/// The mean F1 of the classes that occur, over drawn texts.
double macro_f1(const std::vector<int64_t>& truth, const std::vector<int64_t>& predicted, size_t classes,
                const std::vector<int64_t>& drawn) {
  std::vector<int64_t> right(classes), occurring(classes);  // occurring: among the labels and among the predictions
  for (const int64_t i : drawn) {
    const auto of_truth = static_cast<size_t>(truth[static_cast<size_t>(i)]);
    const auto of_prediction = static_cast<size_t>(predicted[static_cast<size_t>(i)]);
    right[of_truth] += of_truth == of_prediction ? 1 : 0;
    ++occurring[of_truth];
    ++occurring[of_prediction];
  }
  double sum = 0;
  int64_t count = 0;
  for (size_t c = 0; c < classes; ++c) {
    if (occurring[c] == 0) continue;
    sum += 2 * static_cast<double>(right[c]) / static_cast<double>(occurring[c]);
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

double accuracy(const std::vector<int64_t>& truth, const std::vector<int64_t>& predicted,
                const std::vector<int64_t>& drawn) {
  int64_t right = 0;
  for (const int64_t i : drawn) right += truth[static_cast<size_t>(i)] == predicted[static_cast<size_t>(i)] ? 1 : 0;
  return static_cast<double>(right) / static_cast<double>(drawn.size());
}

std::string label_of(const std::vector<std::string>& labels, const std::string& separator) {
  return join(labels, separator);
}

std::vector<std::string> names_of(const Prediction& prediction) {
  std::vector<std::string> names;
  for (const Guess& label : prediction.labels) names.push_back(label.text);
  std::sort(names.begin(), names.end());
  return names;
}

std::string truth_of(const InputText& text, bool multi_label) {
  if (!multi_label) return std::string(trimmed(text.label, " \t\r"));
  std::vector<std::string> names = text.labels;
  std::sort(names.begin(), names.end());
  return label_of(names, ", ");
}

void count(ModelComparison& comparison, bool first_right, bool second_right) {
  int64_t& counted = first_right    ? (second_right ? comparison.both_right : comparison.first_right)
                     : second_right ? comparison.second_right
                                    : comparison.both_wrong;
  ++counted;
}

/// A figure of all texts and of samples of them.
ComparedFigure figure(const std::string& name, const std::string& test, int64_t texts,
                      const std::function<double(bool second, const std::vector<int64_t>& drawn)>& of_model) {
  std::vector<int64_t> every(static_cast<size_t>(texts));
  for (int64_t i = 0; i < texts; ++i) every[static_cast<size_t>(i)] = i;
  ComparedFigure result{name, test, of_model(false, every), of_model(true, every), {}};
  result.paired = paired_bootstrap(
      texts, [&](const std::vector<int64_t>& drawn) { return of_model(true, drawn) - of_model(false, drawn); });
  return result;
}

ModelComparison compare_classifiers(const SavedRun& first, const SavedRun& second, TextInput& of_first,
                                    TextInput& of_second) {
  ModelComparison comparison;
  Decisions decisions;
  LabelNumbers numbers;
  const bool multi_label = facts_of(first.config.data).multi_label();
  for (TextPair texts = next_texts(of_first, of_second); !texts.first.empty();
       texts = next_texts(of_first, of_second)) {
    const std::vector<Prediction> by_first = predictions_of(first, texts.first, {});
    const std::vector<Prediction> by_second = predictions_of(second, texts.second, {});
    for (size_t i = 0; i < by_first.size(); ++i) {
      const InputText& text = texts.first[i];
      DifferingText row{truth_of(text, multi_label), label_of(names_of(by_first[i]), ", "),
                        label_of(names_of(by_second[i]), ", "), text.place, text.text};
      decisions.truth.push_back(numbers.number(row.label));
      decisions.first.push_back(numbers.number(row.first));
      decisions.second.push_back(numbers.number(row.second));
      count(comparison, row.first == row.label, row.second == row.label);
      if (row.first != row.second) comparison.differing.push_back(std::move(row));
    }
  }
  comparison.texts = static_cast<int64_t>(decisions.truth.size());
  if (comparison.texts == 0) return comparison;
  decisions.classes = numbers.size();
  ComparedFigure right = figure(
      "accuracy", "McNemar's exact test", comparison.texts, [&](bool is_second, const std::vector<int64_t>& drawn) {
        return accuracy(decisions.truth, is_second ? decisions.second : decisions.first, drawn);
      });
  right.paired.p_value = mcnemar_p_value(comparison.first_right, comparison.second_right);
  comparison.figures.push_back(std::move(right));
  if (multi_label) return comparison;  // sets of labels are no classes
  comparison.figures.push_back(
      figure("macro_f1", "bootstrap", comparison.texts, [&](bool is_second, const std::vector<int64_t>& drawn) {
        return macro_f1(decisions.truth, is_second ? decisions.second : decisions.first, decisions.classes, drawn);
      }));
  return comparison;
}

ModelComparison compare_language_models(const SavedRun& first, const SavedRun& second, TextInput& of_first,
                                        TextInput& of_second) {
  std::vector<TextScore> by_first, by_second;
  std::vector<double> bytes;
  const auto append = [](std::vector<TextScore>& all, const std::vector<TextScore>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (TextPair texts = next_texts(of_first, of_second); !texts.first.empty();
       texts = next_texts(of_first, of_second)) {
    append(by_first, scores_of(first, texts.first));
    append(by_second, scores_of(second, texts.second));
    for (const InputText& text : texts.first) bytes.push_back(static_cast<double>(text.text.size()));
  }
  ModelComparison comparison;
  comparison.texts = static_cast<int64_t>(bytes.size());
  if (comparison.texts == 0) return comparison;
  const auto mean_of = [&](bool is_second, const std::vector<int64_t>& drawn, const auto& units_of) {
    double log_probability = 0, units = 0;
    for (const int64_t i : drawn) {
      const TextScore& score = (is_second ? by_second : by_first)[static_cast<size_t>(i)];
      log_probability += score.log_probability;
      units += units_of(static_cast<size_t>(i), score);
    }
    return -log_probability / std::max(units, 1.0);
  };
  comparison.figures.push_back(
      figure("bits_per_byte", "bootstrap", comparison.texts, [&](bool is_second, const std::vector<int64_t>& drawn) {
        return mean_of(is_second, drawn, [&](size_t i, const TextScore&) { return bytes[i]; }) / std::log(2.0);
      }));
  const bool same_tokens = std::equal(by_first.begin(), by_first.end(), by_second.begin(),
                                      [](const TextScore& a, const TextScore& b) { return a.tokens == b.tokens; });
  if (same_tokens)  // perplexities over different tokens cannot be compared
    comparison.figures.push_back(
        figure("perplexity", "bootstrap", comparison.texts, [&](bool is_second, const std::vector<int64_t>& drawn) {
          return std::exp(mean_of(is_second, drawn,
                                  [](size_t, const TextScore& score) { return static_cast<double>(score.tokens); }));
        }));
  return comparison;
}

}  // namespace

ModelComparison compare_models(const SavedRun& first, const SavedRun& second, TextInput& of_first,
                               TextInput& of_second) {
  const auto are = [&](const auto& holds) { return holds(first.config) && holds(second.config); };
  if (are([](const RunConfig& config) { return facts_of(config.model).classifies(); })) {
    if (facts_of(first.config.data).multi_label() != facts_of(second.config.data).multi_label())
      throw Error(fmt::format("compare: only one of {} and {} gives a text several labels", first.config.name,
                              second.config.name));
    return compare_classifiers(first, second, of_first, of_second);
  }
  if (are([](const RunConfig& config) {
        return facts_of(config.model).predicts == Predicts::next_token && !facts_of(config.data).has_pairs;
      }))
    return compare_language_models(first, second, of_first, of_second);
  throw Error(fmt::format("compare: {} is a {} and {} a {}: --data compares two classifiers or two language models",
                          first.config.name, type_of(first.config.model), second.config.name,
                          type_of(second.config.model)));
}

std::string differing_tsv(const ModelComparison& comparison, const std::string& first, const std::string& second) {
  std::string lines = fmt::format("label\t{}\t{}\tplace\ttext\n", first, second);
  for (const DifferingText& row : comparison.differing)
    lines +=
        join(std::vector<std::string>{row.label, row.first, row.second, row.place, tsv_field(row.text)}, "\t") + '\n';
  return lines;
}

}  // namespace capstan
