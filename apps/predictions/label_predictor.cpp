// Labels of texts, by a classifier.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/predictions/predictor.hpp"
#include "apps/runs/output.hpp"
#include "core/base/error.hpp"
#include "core/ops/softmax.hpp"
#include "data/batches/batcher.hpp"
#include "data/labelled/class_names.hpp"

namespace capstan {
namespace {

class LabelPredictor final : public Predictor {
 public:
  LabelPredictor(const SavedRun& run, const PredictOptions& options)
      : run_(run), classifier_(run.model->text_classifier()), options_(options), rule_(facts_of(run.config.data).text) {
    if (const auto limit = classifier_.position_limit())
      rule_.max_length = rule_.max_length > 0 ? std::min(rule_.max_length, *limit) : *limit;
    if (!options.errors) return;
    const auto* const labelled = std::get_if<LabelledSourceConfig>(&run.config.data);
    classes_ = ClassNames::from_list(run.classes, "the classes of the run", labelled ? labelled->first_label : 0);
  }

  void print_header() override {
    if (options_.format != "tsv") return;
    if (options_.errors)
      std::cout << "label\tpredicted\tprobability\tplace\ttext";
    else if (options_.top_k > 0)
      for (int64_t i = 0; i < shown(); ++i) std::cout << (i > 0 ? "\t" : "") << "label\tprobability";
    else
      std::cout << "label";
    if (!options_.errors && options_.top_k == 0)
      for (const std::string& name : run_.classes) std::cout << '\t' << name;
    std::cout << (options_.echo && !options_.errors ? "\ttext\n" : "\n");
  }

  void add(InputText text) override {
    try {
      rows_.push_back(encode_text({text.columns.begin(), text.columns.end()}, *run_.tokenizer, rule_, text.place));
      truths_.push_back(classes_ ? classes_->index_of(trimmed(text.label), text.place) : -1);
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
    const Batch batch = pad_rows(rows_);
    Context context;
    context.segments = Segments(batch.segment_ids);
    const Array probabilities = softmax(classifier_.logits(batch.tokens, context)).value();
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

  void write(size_t row, const float* probabilities) {
    const int64_t best = std::max_element(probabilities, probabilities + classes()) - probabilities;
    if (options_.errors) {
      ++all_;
      if (truths_[row] == best) return;
      ++wrong_;
    }
    std::cout << (options_.format == "jsonl" ? json(row, probabilities, best) : tsv(row, probabilities, best)) << '\n';
  }

  std::vector<int64_t> likeliest(const float* probabilities) const {
    std::vector<int64_t> order(static_cast<size_t>(classes()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return probabilities[a] > probabilities[b]; });
    order.resize(static_cast<size_t>(options_.top_k > 0 ? shown() : classes()));
    return order;
  }

  std::string json(size_t row, const float* probabilities, int64_t best) const {
    nlohmann::ordered_json all;
    if (options_.top_k > 0)
      for (const int64_t c : likeliest(probabilities)) all[name(c)] = probabilities[c];
    else
      for (int64_t c = 0; c < classes(); ++c) all[name(c)] = probabilities[c];
    nlohmann::ordered_json line{{"label", name(best)}, {"probability", probabilities[best]}, {"probabilities", all}};
    if (options_.errors) {
      line["true_label"] = name(truths_[row]);
      line["place"] = texts_[row].place;
    }
    line["text"] = texts_[row].text;
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }

  std::string tsv(size_t row, const float* probabilities, int64_t best) const {
    const InputText& text = texts_[row];
    if (options_.errors)
      return fmt::format("{}\t{}\t{:.4f}\t{}\t{}", name(truths_[row]), name(best), probabilities[best], text.place,
                         tsv_field(text.text));
    std::string line;
    if (options_.top_k > 0) {
      for (const int64_t c : likeliest(probabilities))
        line += fmt::format("{}{}\t{:.4f}", line.empty() ? "" : "\t", name(c), probabilities[c]);
    } else {
      line = name(best);
      for (int64_t c = 0; c < classes(); ++c) line += fmt::format("\t{:.4f}", probabilities[c]);
    }
    return options_.echo ? line + '\t' + tsv_field(text.text) : line;
  }

  const SavedRun& run_;
  const TextClassifier& classifier_;
  const PredictOptions& options_;
  TextRule rule_;  // how a text was cut in training
  std::optional<ClassNames> classes_;
  std::vector<std::vector<int32_t>> rows_;
  std::vector<InputText> texts_;
  std::vector<int32_t> truths_;
  int64_t all_ = 0, wrong_ = 0;
};

}  // namespace

std::unique_ptr<Predictor> make_label_predictor(const SavedRun& run, const PredictOptions& options) {
  return std::make_unique<LabelPredictor>(run, options);
}

}  // namespace capstan
