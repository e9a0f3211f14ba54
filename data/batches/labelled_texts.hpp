// The texts of labelled examples, for models that read texts rather than tokens: linear classifiers, in training
// (train/linear), evaluation and prediction. All of them must read the same text of a row, so they take it from here:
// tests/train/linear/test_linear.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/stop.hpp"
#include "core/io/progress.hpp"
#include "data/batches/example_set.hpp"
#include "data/batches/text_example.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

/// A text as the model reads it: cut by the rule, normalised by the tokenizer, with unknown words replaced. Each column
/// is a line. Throws Error as encode_text() does.
std::string example_text(const std::vector<std::string_view>& columns, const Tokenizer& tokenizer, const TextRule& rule,
                         const std::string& place);

/// Refers to the examples and the tokenizer, which must outlive it.
class LabelledTexts {
 public:
  /// Text i is that of example place_of(i) or, without a function, i.
  LabelledTexts(const ExampleSet& examples, const Tokenizer& tokenizer,
                std::function<int64_t(int64_t i)> place_of = {});

  int64_t size() const { return examples_.size(); }
  /// Safe to call from several threads.
  std::string text(int64_t i) const;
  /// By which copies of a text are found (data/checks/copies.hpp), as safe.
  uint64_t hash(int64_t i) const { return examples_.hash(place(i)); }
  LabelSet labels(int64_t i) const { return examples_.labels(place(i)); }
  /// The label of a text; must not be called where texts have any number of them.
  int32_t label(int64_t i) const { return examples_.label(place(i)); }
  double weight(int64_t i) const { return examples_.weight(place(i)); }
  /// Has any text a weight other than 1?
  bool has_weights() const { return examples_.has_weights(); }
  /// Texts have any number of labels, instead of one.
  bool multi_label() const { return examples_.label_columns() > 0; }
  /// From now on, each call of text() adds `each` to the progress.
  void report_to(Progress& progress, double each = 1) {
    progress_ = &progress;
    each_ = each;
  }
  /// Adds the progress of `count` texts that were asked for in an earlier session.
  void report_earlier(int64_t count) const {
    if (progress_ != nullptr) progress_->skip(each_ * static_cast<double>(count));
  }
  /// A stop point (core/base/stop.hpp) for work that asks for no text, such as on labels. The progress is shown.
  void stop_point() const { progress_ != nullptr ? progress_->add(0) : capstan::stop_point(); }
  /// Says that work on all texts follows which takes `readings` times as long as to ask for each of them once.
  void expect_readings(double readings) const {
    if (progress_ != nullptr) progress_->expect_more_work(each_ * readings * static_cast<double>(size()));
  }
  /// From now on, text() reports nothing.
  void stop_reporting() { progress_ = nullptr; }
  /// Tokens of all texts.
  int64_t tokens() const { return examples_.token_count(); }

 private:
  int64_t place(int64_t i) const { return place_of_ ? place_of_(i) : i; }

  const ExampleSet& examples_;
  const Tokenizer& tokenizer_;
  std::function<int64_t(int64_t)> place_of_;
  Progress* progress_ = nullptr;
  double each_ = 1;
};

}  // namespace capstan
