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

/// Labels of texts, and those that both models give them, as numbers.
struct Decisions {
  std::vector<int64_t> truth, by[2];
  size_t classes = 0;
};

/// The mean F1 of the classes that occur, over drawn texts.
double macro_f1(const Decisions& decisions, bool second, const std::vector<int64_t>& drawn) {
  // occurring: among the labels and among the predictions
  std::vector<int64_t> right(decisions.classes), occurring(decisions.classes);
  for (const int64_t i : drawn) {
    const auto of_truth = static_cast<size_t>(decisions.truth[static_cast<size_t>(i)]);
    const auto of_prediction = static_cast<size_t>(decisions.by[second][static_cast<size_t>(i)]);
    right[of_truth] += of_truth == of_prediction ? 1 : 0;
    ++occurring[of_truth];
    ++occurring[of_prediction];
  }
  double sum = 0;
  int64_t count = 0;
  for (size_t c = 0; c < decisions.classes; ++c) {
    if (occurring[c] == 0) continue;
    sum += 2 * static_cast<double>(right[c]) / static_cast<double>(occurring[c]);
    ++count;
  }
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

double accuracy(const Decisions& decisions, bool second, const std::vector<int64_t>& drawn) {
  const auto right = std::count_if(drawn.begin(), drawn.end(), [&](int64_t i) {
    return decisions.truth[static_cast<size_t>(i)] == decisions.by[second][static_cast<size_t>(i)];
  });
  return static_cast<double>(right) / static_cast<double>(drawn.size());
}

/// Several labels in one order.
std::string in_order(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  return join(names);
}

std::string given_by(const Prediction& prediction) {
  std::vector<std::string> names;
  for (const Guess& label : prediction.labels) names.push_back(label.text);
  return in_order(std::move(names));
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
  std::map<std::string, int64_t> numbers;
  const auto number = [&](const std::string& label) {
    return numbers.emplace(label, static_cast<int64_t>(numbers.size())).first->second;
  };
  const bool multi_label = facts_of(first.config.data).multi_label();
  for (TextPair texts = next_texts(of_first, of_second); !texts.first.empty();
       texts = next_texts(of_first, of_second)) {
    const std::vector<Prediction> by_first = predictions_of(first, texts.first, {});
    const std::vector<Prediction> by_second = predictions_of(second, texts.second, {});
    for (size_t i = 0; i < by_first.size(); ++i) {
      const InputText& text = texts.first[i];
      DifferingText row{multi_label ? in_order(text.labels) : std::string(trimmed(text.label, " \t\r")),
                        given_by(by_first[i]), given_by(by_second[i]), text.place, text.text};
      decisions.truth.push_back(number(row.label));
      decisions.by[0].push_back(number(row.first));
      decisions.by[1].push_back(number(row.second));
      ++comparison.right[row.first == row.label][row.second == row.label];
      if (row.first != row.second) comparison.differing.push_back(std::move(row));
    }
  }
  comparison.texts = static_cast<int64_t>(decisions.truth.size());
  if (comparison.texts == 0) return comparison;
  decisions.classes = numbers.size();
  const auto of = [&decisions](const auto& measure) {
    return [&decisions, measure](bool is_second, const std::vector<int64_t>& drawn) {
      return measure(decisions, is_second, drawn);
    };
  };
  comparison.figures.push_back(figure("accuracy", "McNemar's exact test", comparison.texts, of(accuracy)));
  comparison.figures.back().paired.p_value = mcnemar_p_value(comparison.right[1][0], comparison.right[0][1]);
  if (!multi_label)  // sets of labels are no classes
    comparison.figures.push_back(figure("macro_f1", "bootstrap", comparison.texts, of(macro_f1)));
  return comparison;
}

ModelComparison compare_language_models(const SavedRun& first, const SavedRun& second, TextInput& of_first,
                                        TextInput& of_second) {
  std::vector<TextScore> by[2];
  std::vector<double> bytes;
  const auto append = [&by](bool of_second_run, const std::vector<TextScore>& more) {
    by[of_second_run].insert(by[of_second_run].end(), more.begin(), more.end());
  };
  for (TextPair texts = next_texts(of_first, of_second); !texts.first.empty();
       texts = next_texts(of_first, of_second)) {
    append(false, scores_of(first, texts.first));
    append(true, scores_of(second, texts.second));
    for (const InputText& text : texts.first) bytes.push_back(static_cast<double>(text.text.size()));
  }
  ModelComparison comparison;
  comparison.texts = static_cast<int64_t>(bytes.size());
  if (comparison.texts == 0) return comparison;
  const auto mean_of = [&](bool is_second, const std::vector<int64_t>& drawn, const auto& units_of) {
    double log_probability = 0, units = 0;
    for (const int64_t i : drawn) {
      const TextScore& score = by[is_second][static_cast<size_t>(i)];
      log_probability += score.log_probability;
      units += units_of(static_cast<size_t>(i), score);
    }
    return -log_probability / std::max(units, 1.0);
  };
  comparison.figures.push_back(
      figure("bits_per_byte", "bootstrap", comparison.texts, [&](bool is_second, const std::vector<int64_t>& drawn) {
        return mean_of(is_second, drawn, [&](size_t i, const TextScore&) { return bytes[i]; }) / std::log(2.0);
      }));
  const bool same_tokens = std::equal(by[0].begin(), by[0].end(), by[1].begin(),
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
