// Writes predictions as TSV or JSONL. Scripts read the columns and keys, which must not change:
// tests/cli/runs/test_predictions.cpp and test_multi_label.cpp.
#include "run/predictions/prediction_writer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "data/labelled/class_names.hpp"

namespace capstan {
namespace {

using Json = nlohmann::ordered_json;

/// With more classes than this, `brief` shows only the `brief_classes` likeliest.
constexpr size_t many_classes = 10;
constexpr int64_t brief_classes = 3;

std::string json_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n'; }

/// "predicted_2" of the second guess.
std::string column_name(const char* name, int64_t number) {
  return number > 1 ? fmt::format("{}_{}", name, number) : name;
}

std::vector<std::string> names_of(const std::vector<Guess>& labels) {
  std::vector<std::string> names;
  for (const Guess& label : labels) names.push_back(label.text);
  return names;
}

}  // namespace

PredictionWriter::PredictionWriter(const SavedRun& run, const PredictionFormat& format, std::ostream& out)
    : run_(run),
      format_(format),
      out_(out),
      multi_label_(facts_of(run.config.data).multi_label()),
      says_labels_(format.errors || format.top_k == 0 || multi_label_),
      separator_(facts_of(run.config.data).label_separator) {
  if (format.brief && !format.jsonl && format.top_k == 0 && run.classes.size() > many_classes) {
    format_.top_k = brief_classes;
    says_labels_ = format.errors || multi_label_;
  }
  if (!format.errors || facts_of(run.config.data).has_pairs) return;
  if (run.classes.empty())
    throw ConfigError(fmt::format("--errors: a {} fills blanks, which have no labels", type_of(run.config.model)));
  classes_ = std::make_unique<ClassNames>(ClassNames::from_list(run.classes, "the classes of the run"));
}

PredictionWriter::~PredictionWriter() = default;

void PredictionWriter::write_header() {
  if (format_.jsonl || run_.classes.empty()) return;
  if (format_.errors) {
    out_ << (multi_label_ ? "labels\tpredicted\tplace\ttext\n" : "label\tpredicted\tprobability\tplace\ttext\n");
    return;
  }
  std::vector<std::string> columns;
  if (says_labels_) columns = {multi_label_ ? "labels" : "label"};
  const int64_t shown = std::min(format_.top_k, static_cast<int64_t>(run_.classes.size()));
  for (int64_t i = 1; i <= shown; ++i)
    columns.insert(columns.end(),
                   {column_name(multi_label_ ? "likely" : "predicted", i), column_name("probability", i)});
  if (format_.top_k == 0) columns.insert(columns.end(), run_.classes.begin(), run_.classes.end());
  if (format_.echo) columns.emplace_back("text");
  out_ << join(columns, "\t") << '\n';
}

bool PredictionWriter::write(const InputText& text, const Prediction& prediction) {
  if (!prediction.probabilities.empty()) return write_labels(text, prediction);
  if (!prediction.completions.empty()) return write_completions(text, prediction);
  write_blanks(text, prediction);
  return true;
}

std::vector<AddedField> PredictionWriter::fields(const Prediction& prediction) const {
  std::vector<AddedField> fields;
  const auto add = [&](const char* name, const std::string& value, bool number = false) {
    const auto same = std::count_if(fields.begin(), fields.end(),
                                    [&](const AddedField& field) { return field.name.rfind(name, 0) == 0; });
    fields.push_back({column_name(name, same + 1), value, number});
  };
  const auto add_guess = [&](const std::string& name, double probability) {
    add("predicted", name);
    add("probability", fmt::format("{:.4f}", probability), true);
  };
  for (const PairCompletion& completion : prediction.completions) add("predicted", completion.text);
  if (!prediction.filled.empty()) add("predicted", prediction.filled);
  if (prediction.probabilities.empty()) return fields;
  if (multi_label_) {
    add("predicted", join(names_of(prediction.labels), separator_));
    if (format_.top_k == 0) return fields;
    for (const size_t c : likeliest(prediction)) {
      add("likely", run_.classes[c]);
      add("probability", fmt::format("{:.4f}", prediction.probabilities[c]), true);
    }
  } else if (format_.top_k == 0) {
    add_guess(prediction.labels.front().text, prediction.labels.front().probability);
  } else {
    for (const size_t c : likeliest(prediction))
      add_guess(run_.classes[c], static_cast<double>(prediction.probabilities[c]));
  }
  return fields;
}

std::vector<AddedField> PredictionWriter::columns() const {
  Prediction any;
  any.labels.resize(1);
  any.probabilities.resize(run_.classes.size());
  if (facts_of(run_.config.data).has_pairs)
    any.completions.resize(static_cast<size_t>(std::max<int64_t>(format_.top_k, 1)));
  else if (run_.classes.empty())
    any.filled = run_.config.name;
  return fields(any);
}

std::string PredictionWriter::summary() const {
  if (!format_.errors) return "";
  return fmt::format("{} of {} texts ({:.2f} %) are predicted wrongly", wrong_, compared_,
                     100 * static_cast<double>(wrong_) / static_cast<double>(std::max<int64_t>(compared_, 1)));
}

/// The true labels of a text, in the order of the classes; none without `errors`.
std::vector<std::string> PredictionWriter::true_labels(const InputText& text) const {
  if (classes_ == nullptr) return {};
  if (!multi_label_) {  // one that training has not is wrong
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

std::vector<size_t> PredictionWriter::likeliest(const Prediction& prediction) const {
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

bool PredictionWriter::write_labels(const InputText& text, const Prediction& prediction) {
  const std::vector<std::string> truth = true_labels(text);
  if (format_.errors) {
    ++compared_;
    if (truth == names_of(prediction.labels)) return false;
    ++wrong_;
  }
  out_ << (format_.jsonl ? labels_json(text, prediction, truth) : labels_tsv(text, prediction, truth));
  return true;
}

std::string PredictionWriter::labels_json(const InputText& text, const Prediction& prediction,
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

std::string PredictionWriter::labels_tsv(const InputText& text, const Prediction& prediction,
                                         const std::vector<std::string>& truth) const {
  std::vector<std::string> fields;
  const auto add_probability = [&](double probability) { fields.push_back(fmt::format("{:.4f}", probability)); };
  if (format_.errors) fields.push_back(join(truth, separator_));
  if (says_labels_) fields.push_back(join(names_of(prediction.labels), separator_));
  if (format_.errors) {
    if (!multi_label_) add_probability(prediction.labels.front().probability);
    fields.push_back(text.place);
  } else if (format_.top_k > 0) {
    for (const size_t c : likeliest(prediction)) {
      fields.push_back(run_.classes[c]);
      add_probability(static_cast<double>(prediction.probabilities[c]));
    }
  } else {
    for (const float probability : prediction.probabilities) add_probability(static_cast<double>(probability));
  }
  if (format_.echo || format_.errors) fields.push_back(tsv_field(text.text));
  return join(fields, "\t") + '\n';
}

void PredictionWriter::write_blanks(const InputText& text, const Prediction& prediction) {
  if (format_.jsonl) {
    Json blanks = Json::array();
    for (const std::vector<Guess>& blank : prediction.blanks) {
      Json guesses = Json::array();
      for (const Guess& guess : blank) guesses.push_back({{"token", guess.text}, {"probability", guess.probability}});
      blanks.push_back(guesses);
    }
    out_ << json_line({{"filled", prediction.filled}, {"blanks", blanks}, {"text", text.text}});
    return;
  }
  out_ << tsv_field(prediction.filled);
  for (const std::vector<Guess>& blank : prediction.blanks)
    for (const Guess& guess : blank) out_ << fmt::format("\t{}\t{:.4f}", tsv_field(guess.text), guess.probability);
  out_ << (format_.echo ? '\t' + tsv_field(text.text) : "") << '\n';
}

bool PredictionWriter::write_completions(const InputText& text, const Prediction& prediction) {
  const PairCompletion& best = prediction.completions.front();
  ++compared_;
  if (format_.errors) {
    // The label is encoded and decoded, since the tokenizer may have changed case and spaces of what was written.
    if (best.text == run_.tokenizer->decode(run_.tokenizer->encode(text.label, text.place))) return false;
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
    out_ << json_line(line);
    return true;
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
  out_ << join(fields, "\t") << '\n';
  return true;
}

}  // namespace capstan
