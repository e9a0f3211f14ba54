// Writes predictions as TSV or JSONL, or as columns of a table. Scripts read the columns and keys, which must not
// change: tests/cli/runs/test_predictions.cpp and test_multi_label.cpp; tests/cli/training/test_linear.cpp holds that
// the lines of an explanation add up.
#include "run/predictions/prediction_writer.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "core/io/log.hpp"
#include "core/io/progress.hpp"
#include "core/strings/printable.hpp"
#include "core/strings/strings.hpp"
#include "data/formats/table_format.hpp"
#include "data/labelled/class_names.hpp"

namespace capstan {
namespace {

using Json = nlohmann::ordered_json;
using Fields = std::vector<AddedField>;

/// With more classes than this, `brief` shows only the `brief_classes` likeliest.
constexpr size_t many_classes = 10;
constexpr int64_t brief_classes = 3;
constexpr size_t max_explained = 10;  // n-grams printed for each label: a longer list hides the next label

std::vector<std::string> names_of(const std::vector<Guess>& labels) {
  std::vector<std::string> names;
  for (const Guess& label : labels) names.push_back(label.text);
  return names;
}

/// Adds a field, "predicted_2" where it is the second of its name.
void add(Fields& fields, const std::string& name, const std::string& value, bool number = false) {
  const auto same = std::count_if(fields.begin(), fields.end(),
                                  [&](const AddedField& field) { return field.name.rfind(name, 0) == 0; });
  fields.push_back({same > 0 ? fmt::format("{}_{}", name, same + 1) : name, value, number});
}
void add_probability(Fields& fields, double probability) {
  add(fields, "probability", fmt::format("{:.4f}", probability), true);
}

class PredictionWriter {
 public:
  /// All must outlive it.
  PredictionWriter(const SavedRun& run, const PredictionFormat& format, std::ostream* out)
      : run_(run),
        format_(format),
        out_(out),
        multi_label_(facts_of(run.config.data).multi_label()),
        separator_(facts_of(run.config.data).label_separator) {
    if (format.brief && !format.jsonl && format.top_k == 0 && run.classes.size() > many_classes)
      format_.top_k = brief_classes;
    if (format.errors && !run.classes.empty())
      classes_.emplace(ClassNames::from_list(run.classes, "the classes of the run"));
  }

  /// The line that names the columns, where there is one.
  void write_header() {
    if (format_.jsonl || run_.classes.empty()) return;
    std::vector<std::string> names;
    for (const AddedField& field : labels_tsv({}, any_prediction(), {})) names.push_back(field.name);
    *out_ << join(names, "\t") << '\n';
  }

  void write(const InputText& text, const Prediction& prediction) {
    if (!prediction.probabilities.empty())
      write_labels(text, prediction);
    else if (!prediction.completions.empty())
      write_completions(text, prediction);
    else
      write_blanks(text, prediction);
  }

  /// The columns of a prediction in a table.
  Fields columns_of(const Prediction& prediction) const {
    Fields fields;
    for (const PairCompletion& completion : prediction.completions) add(fields, "predicted", completion.text);
    if (!prediction.filled.empty()) add(fields, "predicted", prediction.filled);
    if (prediction.probabilities.empty()) return fields;
    if (multi_label_) {
      add(fields, "predicted", join(names_of(prediction.labels), separator_));
    } else if (format_.top_k == 0) {
      add(fields, "predicted", prediction.labels.front().text);
      add_probability(fields, prediction.labels.front().probability);
    }
    add_likeliest(fields, prediction);
    return fields;
  }
  /// Those of any prediction, for a table that has no row to tell them.
  Fields columns() const { return columns_of(any_prediction()); }

  /// Logs what `errors` found.
  void sum_up() const {
    if (format_.errors)
      log_info(fmt::format("{} of {} texts ({:.2f} %) are predicted wrongly", wrong_, compared_,
                           100 * static_cast<double>(wrong_) / static_cast<double>(std::max<int64_t>(compared_, 1))));
  }

 private:
  Prediction any_prediction() const {
    Prediction any;
    any.labels.resize(1);
    any.probabilities.resize(run_.classes.size());
    if (facts_of(run_.config.data).has_pairs)
      any.completions.resize(static_cast<size_t>(std::max<int64_t>(format_.top_k, 1)));
    else if (run_.classes.empty())
      any.filled = run_.config.name;
    return any;
  }

  /// The true labels of a text, in the order of the classes; none without `errors`.
  std::vector<std::string> true_labels(const InputText& text) const {
    if (!classes_) return {};
    if (!multi_label_) {  // a class that training did not have is none of the run's, and so the prediction is wrong
      const std::string label(trimmed(text.label, " \t\r"));
      const auto known = classes_->find(label);
      return {known ? run_.classes[static_cast<size_t>(*known)] : label};
    }
    std::vector<int32_t> indices;
    for (const std::string& label : text.labels) indices.push_back(classes_->index_of(label, text.place));
    std::sort(indices.begin(), indices.end());
    std::vector<std::string> names;
    for (const int32_t index : indices) names.push_back(run_.classes[static_cast<size_t>(index)]);
    return names;
  }

  /// The `top_k` likeliest classes.
  std::vector<size_t> likeliest(const Prediction& prediction) const {
    std::vector<size_t> order(prediction.probabilities.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return prediction.probabilities[a] > prediction.probabilities[b]; });
    if (!multi_label_) {  // the run's rule may give another one than the likeliest
      const auto given = std::find_if(order.begin(), order.end(),
                                      [&](size_t c) { return run_.classes[c] == prediction.labels.front().text; });
      if (given != order.end()) std::rotate(order.begin(), given, given + 1);  // else it is none of them
    }
    order.resize(std::min(static_cast<size_t>(format_.top_k), order.size()));
    return order;
  }
  void add_likeliest(Fields& fields, const Prediction& prediction) const {
    for (const size_t c : likeliest(prediction)) {
      add(fields, multi_label_ ? "likely" : "predicted", run_.classes[c]);
      add_probability(fields, static_cast<double>(prediction.probabilities[c]));
    }
  }

  void write_labels(const InputText& text, const Prediction& prediction) {
    const std::vector<std::string> truth = true_labels(text);
    if (format_.errors) {
      ++compared_;
      if (truth == names_of(prediction.labels)) return;
      ++wrong_;
    }
    if (format_.jsonl) {
      *out_ << labels_json(text, prediction, truth) << '\n';
      return;
    }
    std::vector<std::string> values;
    for (const AddedField& field : labels_tsv(text, prediction, truth)) values.push_back(field.value);
    *out_ << join(values, "\t") << '\n';
    if (format_.explain) write_explanation(text, prediction);
  }

  std::string labels_json(const InputText& text, const Prediction& prediction,
                          const std::vector<std::string>& truth) const {
    Json probabilities;
    for (const size_t c : likeliest(prediction)) probabilities[run_.classes[c]] = prediction.probabilities[c];
    if (format_.top_k == 0)
      for (size_t c = 0; c < run_.classes.size(); ++c) probabilities[run_.classes[c]] = prediction.probabilities[c];
    Json line;
    if (multi_label_)
      line["labels"] = names_of(prediction.labels);
    else
      line = {{"label", prediction.labels.front().text}, {"probability", prediction.labels.front().probability}};
    line["probabilities"] = probabilities;
    if (format_.errors) {
      if (multi_label_)
        line["true_labels"] = truth;
      else
        line["true_label"] = truth.front();
      line["place"] = text.place;
    }
    line["text"] = text.text;
    return json_line(line);
  }

  /// The columns of a line; what is predicted comes before the probabilities.
  Fields labels_tsv(const InputText& text, const Prediction& prediction, const std::vector<std::string>& truth) const {
    Fields fields;
    const char* const label = multi_label_ ? "labels" : "label";
    const std::string given = join(names_of(prediction.labels), separator_);
    if (format_.errors) {
      fields = {{label, join(truth, separator_)}, {"predicted", given}};
      if (!multi_label_) add_probability(fields, prediction.labels.front().probability);
      add(fields, "place", text.place);
    } else {
      if (format_.top_k == 0 || multi_label_) add(fields, label, given);
      add_likeliest(fields, prediction);
      for (size_t c = 0; format_.top_k == 0 && c < run_.classes.size(); ++c)
        fields.push_back({run_.classes[c], fmt::format("{:.4f}", prediction.probabilities[c])});
    }
    if (format_.echo || format_.errors) fields.push_back({"text", tsv_field(text.text)});
    return fields;
  }

  /// For each label, a line with its decision value, then one for each of the n-grams that add most to it or take most
  /// from it.
  void write_explanation(const InputText& text, const Prediction& prediction) {
    const TextExplanation explanation = explanation_of(run_, text);
    for (const Guess& label : prediction.labels) {
      const auto found = std::find(run_.classes.begin(), run_.classes.end(), label.text);
      if (found == run_.classes.end()) continue;  // none of them
      const auto column = static_cast<size_t>(found - run_.classes.begin());
      double sum = explanation.bias[column];
      for (const TextExplanation::Ngram& ngram : explanation.ngrams) sum += ngram.logits[column];
      *out_ << fmt::format("  {:+.4f}  {}, of {} n-grams\n", sum, label.text, explanation.ngrams.size());
      for (const auto& [weight, name] : strongest_ngrams(explanation, column, max_explained, "(constant)"))
        *out_ << fmt::format("  {:+.4f}    {}\n", weight, printable(name));
    }
  }

  void write_blanks(const InputText& text, const Prediction& prediction) {
    if (format_.jsonl) {
      Json blanks = Json::array();
      for (const std::vector<Guess>& blank : prediction.blanks) {
        Json guesses = Json::array();
        for (const Guess& guess : blank) guesses.push_back({{"token", guess.text}, {"probability", guess.probability}});
        blanks.push_back(guesses);
      }
      *out_ << json_line({{"filled", prediction.filled}, {"blanks", blanks}, {"text", text.text}}) << '\n';
      return;
    }
    *out_ << tsv_field(prediction.filled);
    for (const std::vector<Guess>& blank : prediction.blanks)
      for (const Guess& guess : blank) *out_ << fmt::format("\t{}\t{:.4f}", tsv_field(guess.text), guess.probability);
    *out_ << (format_.echo ? '\t' + tsv_field(text.text) : "") << '\n';
  }

  void write_completions(const InputText& text, const Prediction& prediction) {
    const PairCompletion& best = prediction.completions.front();
    ++compared_;
    if (format_.errors) {
      // The label is encoded and decoded, since the tokenizer may have changed case and spaces of what was written.
      if (best.text == run_.tokenizer->decode(run_.tokenizer->encode(text.label, text.place))) return;
      ++wrong_;
    }
    if (format_.jsonl) {
      Json line{{"completion", best.text}, {"log_probability", best.log_probability}, {"finished", best.finished}};
      if (format_.top_k > 0)
        for (const PairCompletion& completion : prediction.completions)
          line["completions"].push_back(
              {{"completion", completion.text}, {"log_probability", completion.log_probability}});
      if (format_.errors) {
        line["target"] = text.label;
        line["place"] = text.place;
      }
      line["prompt"] = text.text;
      *out_ << json_line(line) << '\n';
      return;
    }
    std::vector<std::string> fields;
    if (format_.errors) {
      fields = {tsv_field(text.label), tsv_field(best.text), text.place};
    } else {
      for (const PairCompletion& completion : prediction.completions) {
        fields.push_back(tsv_field(completion.text));
        if (format_.top_k > 0) fields.push_back(fmt::format("{:.4f}", completion.log_probability));
      }
    }
    if (format_.echo || format_.errors) fields.push_back(tsv_field(text.text));
    *out_ << join(fields, "\t") << '\n';
  }

  const SavedRun& run_;
  PredictionFormat format_;
  std::ostream* out_;                  // of lines
  std::optional<ClassNames> classes_;  // with `errors`
  bool multi_label_;
  std::string separator_;             // of several labels
  int64_t compared_ = 0, wrong_ = 0;  // texts that have a label or target, and those predicted wrongly
};

}  // namespace

void check_format(const SavedRun& run, const PredictionFormat& format) {
  if (format.errors && run.classes.empty() && !facts_of(run.config.data).has_pairs)
    throw ConfigError(fmt::format("--errors: a {} fills blanks, which have no labels", type_of(run.config.model)));
  if (format.explain) check_explanations(run);
}

void print_predictions(const SavedRun& run, TextInput& input, const PredictOptions& options,
                       const PredictionFormat& format, std::ostream& out, const std::function<void()>& end_batch) {
  PredictionWriter writer(run, format, &out);
  writer.write_header();
  for_each_batch(input, static_cast<size_t>(options.batch_size), [&](const std::vector<InputText>& texts) {
    const std::vector<Prediction> results = predictions_of(run, texts, options);
    for (size_t i = 0; i < texts.size(); ++i) writer.write(texts[i], results[i]);
    end_batch();
  });
  writer.sum_up();
}

void write_predicted_table(const std::string& path, const SavedRun& run, TextInput& input,
                           const PredictOptions& options, const PredictionFormat& format) {
  input.check_table(path);
  const PredictionWriter writer(run, format, nullptr);
  std::vector<Fields> added;
  Progress progress(log_info, "predicting", static_cast<double>(input.bytes()));
  for_each_batch(input, static_cast<size_t>(options.batch_size), [&](const std::vector<InputText>& texts) {
    const std::vector<Prediction> results = predictions_of(run, texts, options);
    for (size_t i = 0; i < texts.size(); ++i) {
      added.push_back(writer.columns_of(results[i]));
      progress.add(static_cast<double>(texts[i].text.size()));
    }
  });
  const bool existed = std::filesystem::exists(path);
  replace_file(path, input.with_fields(writer.columns(), added));
  log_info(fmt::format("{}: {} rows with their predictions{}", path, added.size(),
                       existed ? "; replaced what was there" : ""));
}

}  // namespace capstan
