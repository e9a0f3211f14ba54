// Labels of texts, by a classifier.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/command_line/output.hpp"
#include "core/base/error.hpp"
#include "core/strings/join.hpp"
#include "data/labelled/class_names.hpp"
#include "run/predictions/predictor.hpp"

namespace capstan {
namespace {

class LabelPredictor final : public Predictor {
 public:
  LabelPredictor(const SavedRun& run, const PredictOptions& options)
      : run_(run), classifier_(*run.model), options_(options), rule_(facts_of(run.config.data).text) {
    if (const auto limit = classifier_.position_limit())
      rule_.max_length = rule_.max_length > 0 ? std::min(rule_.max_length, *limit) : *limit;
    multi_label_ = facts_of(run.config.data).multi_label();
    threshold_ = options.threshold > 0 ? options.threshold : run.threshold;
    separator_ = facts_of(run.config.data).label_separator;
    if (!options.errors) return;
    const auto* const labelled = std::get_if<LabelledSourceConfig>(&run.config.data);
    classes_ = ClassNames::from_list(run.classes, "the classes of the run", labelled ? labelled->first_label : 0);
  }

  void print_header() override {
    if (options_.format != "tsv") return;
    if (options_.errors)
      std::cout << (multi_label_ ? "labels\tpredicted\tplace\ttext" : "label\tpredicted\tprobability\tplace\ttext");
    else if (options_.top_k > 0)
      for (int64_t i = 0; i < shown(); ++i) std::cout << (i > 0 ? "\t" : "") << "label\tprobability";
    else
      std::cout << (multi_label_ ? "labels" : "label");
    if (!options_.errors && options_.top_k == 0)
      for (const std::string& name : run_.classes) std::cout << '\t' << name;
    std::cout << (options_.echo && !options_.errors ? "\ttext\n" : "\n");
  }

  void add(InputText text) override {
    try {
      rows_.push_back(
          classifier_.classifier_input({text.columns.begin(), text.columns.end()}, *run_.tokenizer, rule_, text.place));
      truths_.push_back(true_labels(text));
    } catch (const Error&) {
      rows_.resize(texts_.size());
      flush();  // print the labels of the preceding texts
      throw;
    }
    texts_.push_back(std::move(text));
    if (static_cast<int64_t>(rows_.size()) >= options_.batch_size) flush();
  }

  void flush() override {
    if (rows_.empty()) return;
    const Array probabilities = classifier_.class_probabilities(rows_);
    for (size_t row = 0; row < rows_.size(); ++row)
      write(row, probabilities.data() + static_cast<int64_t>(row) * classes());
    flush_output();
    rows_.clear();
    texts_.clear();
    truths_.clear();
  }

  std::string summary() const override { return options_.errors ? errors_text(wrong_, all_) : ""; }

 private:
  int64_t classes() const { return static_cast<int64_t>(run_.classes.size()); }
  int64_t shown() const { return std::min(options_.top_k, classes()); }
  const std::string& name(int64_t c) const { return run_.classes[static_cast<size_t>(c)]; }

  static std::string trimmed(const std::string& text) {
    const size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
    return first == std::string::npos ? "" : text.substr(first, last - first + 1);
  }

  /// None unless --errors is given.
  LabelSet true_labels(const InputText& text) const {
    LabelSet labels;
    if (!classes_) return labels;
    if (!multi_label_) return {classes_->index_of(trimmed(text.label), text.place)};
    for (const std::string& label : text.labels) labels.push_back(classes_->index_of(label, text.place));
    std::sort(labels.begin(), labels.end());
    return labels;
  }

  LabelSet predicted(const float* probabilities) const {
    if (!multi_label_)
      return {static_cast<int32_t>(std::max_element(probabilities, probabilities + classes()) - probabilities)};
    LabelSet labels;
    for (int64_t c = 0; c < classes(); ++c)
      if (reaches(probabilities[c], threshold_)) labels.push_back(static_cast<int32_t>(c));
    return labels;
  }

  std::vector<std::string> names(const LabelSet& labels) const {
    std::vector<std::string> all;
    for (const int32_t label : labels) all.push_back(name(label));
    return all;
  }

  void write(size_t row, const float* probabilities) {
    const LabelSet labels = predicted(probabilities);
    if (options_.errors) {
      ++all_;
      if (truths_[row] == labels) return;
      ++wrong_;
    }
    std::cout << (options_.format == "jsonl" ? json(row, probabilities, labels) : tsv(row, probabilities, labels))
              << '\n';
  }

  std::vector<int64_t> likeliest(const float* probabilities) const {
    std::vector<int64_t> order(static_cast<size_t>(classes()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return probabilities[a] > probabilities[b]; });
    order.resize(static_cast<size_t>(options_.top_k > 0 ? shown() : classes()));
    return order;
  }

  std::string json(size_t row, const float* probabilities, const LabelSet& labels) const {
    nlohmann::ordered_json all;
    if (options_.top_k > 0)
      for (const int64_t c : likeliest(probabilities)) all[name(c)] = probabilities[c];
    else
      for (int64_t c = 0; c < classes(); ++c) all[name(c)] = probabilities[c];
    nlohmann::ordered_json line;
    if (multi_label_)
      line["labels"] = names(labels);
    else
      line = {{"label", name(labels.front())}, {"probability", probabilities[labels.front()]}};
    line["probabilities"] = all;
    if (options_.errors) {
      if (multi_label_)
        line["true_labels"] = names(truths_[row]);
      else
        line["true_label"] = name(truths_[row].front());
      line["place"] = texts_[row].place;
    }
    line["text"] = texts_[row].text;
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }

  std::string tsv(size_t row, const float* probabilities, const LabelSet& labels) const {
    const InputText& text = texts_[row];
    const std::string joined = join(names(labels), separator_);
    if (options_.errors)
      return fmt::format("{}\t{}{}\t{}\t{}", join(names(truths_[row]), separator_), joined,
                         multi_label_ ? "" : fmt::format("\t{:.4f}", probabilities[labels.front()]), text.place,
                         tsv_field(text.text));
    std::string line;
    if (options_.top_k > 0) {
      for (const int64_t c : likeliest(probabilities))
        line += fmt::format("{}{}\t{:.4f}", line.empty() ? "" : "\t", name(c), probabilities[c]);
    } else {
      line = joined;
      for (int64_t c = 0; c < classes(); ++c) line += fmt::format("\t{:.4f}", probabilities[c]);
    }
    return options_.echo ? line + '\t' + tsv_field(text.text) : line;
  }

  const SavedRun& run_;
  const RunModel& classifier_;
  const PredictOptions& options_;
  TextRule rule_;  // how a text was cut in training
  std::optional<ClassNames> classes_;
  std::vector<RunModel::ClassifierInput> rows_;
  std::vector<InputText> texts_;
  std::vector<LabelSet> truths_;
  bool multi_label_ = false;
  double threshold_ = usual_threshold;
  std::string separator_;  // of several labels
  int64_t all_ = 0, wrong_ = 0;
};

}  // namespace

std::unique_ptr<Predictor> make_label_predictor(const SavedRun& run, const PredictOptions& options) {
  return std::make_unique<LabelPredictor>(run, options);
}

}  // namespace capstan
