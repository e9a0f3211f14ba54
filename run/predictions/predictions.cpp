// Classifiers read the texts of a batch together, in padded groups of similar length (for_padded_groups()). A TextError
// names the first text that cannot be used, so that a
// command can print what precedes it. tests/cli/runs/test_predictions.cpp.
#include "run/predictions/predictions.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "data/batches/batcher.hpp"
#include "data/batches/labelled_texts.hpp"
#include "data/batches/text_example.hpp"

namespace capstan {
namespace {

bool is_multi_label(const SavedRun& run) {
  return facts_of(run.config.model).classifies() && facts_of(run.config.data).multi_label();
}

bool completes_pairs(const SavedRun& run) {
  return facts_of(run.config.model).takes_pairs && facts_of(run.config.data).has_pairs;
}

std::vector<std::string_view> columns_of(const InputText& text) { return {text.columns.begin(), text.columns.end()}; }

/// The part of a text that a linear classifier is given, which reads texts instead of tokens.
std::string text_read(const SavedRun& run, const TextRule& rule, const InputText& text) {
  return example_text(columns_of(text), *run.tokenizer, rule, text.place);
}

/// (N, C): the logits of the texts, which may be infinite or not a number.
Array unchecked_logits(const SavedRun& run, const std::vector<InputText>& texts) {
  const Model& model = run.model->model();
  TextRule rule = facts_of(run.config.data).text;  // how a text was cut in training
  if (const auto limit = model.position_limit())
    rule.max_length = rule.max_length > 0 ? std::min(rule.max_length, *limit) : *limit;
  if (facts_of(run.config.model).reads_texts)
    return model.linear_classifier().text_logits(
        encode_all(texts, [&](const InputText& text) { return text_read(run, rule, text); }));
  const auto rows = encode_all(
      texts, [&](const InputText& text) { return encode_text(columns_of(text), *run.tokenizer, rule, text.place); });
  Array logits(Shape{static_cast<int64_t>(rows.size()), model.classes()});
  for_padded_groups(rows, [&](const std::vector<int64_t>& indices, const Batch& group) {
    const Array of_group = model.logits(group.tokens, Context::evaluation(group)).value();
    for (size_t i = 0; i < indices.size(); ++i)
      std::copy_n(of_group.data() + static_cast<int64_t>(i) * of_group.dim(1), of_group.dim(1),
                  logits.mutable_data() + indices[i] * of_group.dim(1));
  });
  return logits;
}

/// (N, C): what the model computes before it makes probabilities of it. Throws TextError where it is not finite.
Array class_logits(const SavedRun& run, const std::vector<InputText>& texts) {
  Array logits = unchecked_logits(run, texts);
  const int64_t columns = logits.dim(1);
  for_each_text(texts.size(), [&](size_t i) {
    require_finite(logits.data() + static_cast<int64_t>(i) * columns, columns, texts[i].place);
  });
  return logits;
}

std::vector<Prediction> label_texts(const SavedRun& run, const std::vector<InputText>& texts,
                                    const PredictOptions& options) {
  const Array of_texts = run.model->model().probabilities(Var(class_logits(run, texts)));
  const bool several = is_multi_label(run);
  const auto classes = static_cast<int64_t>(run.classes.size());
  std::vector<Prediction> predictions(texts.size());
  for (size_t row = 0; row < texts.size(); ++row) {
    const float* const probabilities = of_texts.data() + static_cast<int64_t>(row) * classes;
    Prediction& prediction = predictions[row];
    prediction.probabilities.assign(probabilities, probabilities + classes);
    const auto likeliest = static_cast<double>(*std::max_element(probabilities, probabilities + classes));
    if (likeliest < options.reject) {
      prediction.labels.push_back({no_class, likeliest});
      continue;
    }
    const int64_t given = several ? -1 : decide(run.rule, probabilities, classes);
    for (int64_t c = 0; c < classes; ++c)
      if (several ? reaches(probabilities[c],
                            options.threshold > 0 ? options.threshold : run.thresholds[static_cast<size_t>(c)])
                  : c == given)
        prediction.labels.push_back({run.classes[static_cast<size_t>(c)], static_cast<double>(probabilities[c])});
  }
  return predictions;
}

std::vector<Prediction> complete_texts(const SavedRun& run, const std::vector<InputText>& texts,
                                       const PredictOptions& options) {
  const auto prompts = encode_all(texts, [&](const InputText& text) { return prompt_of(run, text.text, text.place); });
  std::vector<Prediction> predictions(texts.size());
  try {
    auto written = complete(run, prompts, options);
    for (size_t i = 0; i < texts.size(); ++i) predictions[i].completions = std::move(written[i]);
  } catch (const TextError& error) {
    throw TextError(error.index(), fmt::format("{}: {}", texts[error.index()].place, error.what()), error);
  }
  return predictions;
}

}  // namespace

std::vector<std::vector<float>> decision_values_of(const SavedRun& run, const std::vector<InputText>& texts) {
  run.model->that_predicts(Predicts::classes);
  const Array logits = class_logits(run, texts);
  std::vector<std::vector<float>> rows;
  for (int64_t row = 0; row < logits.dim(0); ++row)
    rows.emplace_back(logits.data() + row * logits.dim(1), logits.data() + (row + 1) * logits.dim(1));
  return rows;
}

void check_explanations(const SavedRun& run) {
  if (!facts_of(run.config.model).reads_texts)
    throw Error(fmt::format("the run {} is a {}: only of a linear-classifier can a decision be explained by n-grams",
                            run.config.name, type_of(run.config.model)));
}

TextExplanation explanation_of(const SavedRun& run, const InputText& text) {
  check_explanations(run);
  TextExplanation reasons =
      run.model->model().linear_classifier().explain(text_read(run, facts_of(run.config.data).text, text));
  const auto check_row = [&](const std::vector<double>& row) {
    require_finite(row.data(), static_cast<int64_t>(row.size()), text.place);
  };
  check_row(reasons.bias);
  for (const TextExplanation::Ngram& ngram : reasons.ngrams) check_row(ngram.logits);
  return reasons;
}

std::vector<std::pair<double, std::string>> strongest_ngrams(const TextExplanation& explanation, size_t column,
                                                             size_t most, const std::string& constant) {
  std::vector<std::pair<double, std::string>> ngrams;
  if (!constant.empty()) ngrams.emplace_back(explanation.bias[column], constant);
  for (const TextExplanation::Ngram& ngram : explanation.ngrams) ngrams.emplace_back(ngram.logits[column], ngram.name);
  const size_t kept = std::min(most, ngrams.size());
  std::partial_sort(ngrams.begin(), ngrams.begin() + static_cast<std::ptrdiff_t>(kept), ngrams.end(),
                    [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  ngrams.resize(kept);
  return ngrams;
}

void check_predictions(const SavedRun& run, const PredictOptions& options) {
  refuse_options_without_pairs(run, options);
  if (options.threshold > 0 && !is_multi_label(run))
    throw ConfigError(
        "--threshold: only runs with data.multi_label: true have one; with one label per text, training finds a rule "
        "by "
        "train.monitor=cost: a class that costs c to miss is given from the probability 1 / (1 + c) on");
  if (options.reject > 0 && (is_multi_label(run) || !facts_of(run.config.model).classifies()))
    throw ConfigError("--reject: only a classifier that gives a text one label can answer that it is none of them");
  if (options.reject > 0 && std::count(run.classes.begin(), run.classes.end(), no_class) > 0)
    throw ConfigError(
        fmt::format("--reject: the run {} has a class '{}', which is also the answer for texts of no class; "
                    "train with another name for it",
                    run.config.name, no_class));
  if (options.blank.empty()) throw ConfigError("--blank: the text must not be empty");
  if (completes_pairs(run)) {
    check_options(options);
  } else if (facts_of(run.config.model).predicts == Predicts::next_token) {
    run.model->that_predicts(Predicts::classes);  // throws the error that says which model is needed
  }
}

std::vector<Prediction> predictions_of(const SavedRun& run, const std::vector<InputText>& texts,
                                       const PredictOptions& options) {
  check_predictions(run, options);
  const auto size = static_cast<size_t>(std::max<int64_t>(options.batch_size, 1));
  std::vector<Prediction> predictions;
  for (size_t begin = 0; begin < texts.size(); begin += size) {
    const std::vector<InputText> batch(
        texts.begin() + static_cast<std::ptrdiff_t>(begin),
        texts.begin() + static_cast<std::ptrdiff_t>(std::min(begin + size, texts.size())));
    const auto predict = facts_of(run.config.model).classifies() ? label_texts
                         : completes_pairs(run)                  ? complete_texts
                                                                 : fill_blanks;
    try {
      for (Prediction& prediction : predict(run, batch, options)) predictions.push_back(std::move(prediction));
    } catch (const TextError& error) {
      throw TextError(begin + error.index(), error);
    }
  }
  return predictions;
}

}  // namespace capstan
