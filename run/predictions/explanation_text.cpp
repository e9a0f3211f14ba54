// tests/cli/training/test_linear.cpp holds that the lines add up.
#include "run/predictions/explanation_text.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/strings/printable.hpp"

namespace capstan {
namespace {

constexpr size_t max_explained = 10;  // n-grams printed for each label: a longer list hides the next label

std::string label_lines(const TextExplanation& explanation, const std::string& label, size_t column) {
  double sum = explanation.bias[column];
  for (const TextExplanation::Ngram& ngram : explanation.ngrams) sum += ngram.logits[column];
  std::string lines = fmt::format("  {:+.4f}  {}, of {} n-grams\n", sum, label, explanation.ngrams.size());
  for (const auto& [weight, name] : strongest_ngrams(explanation, column, max_explained, "(constant)"))
    lines += fmt::format("  {:+.4f}    {}\n", weight, printable(name));
  return lines;
}

}  // namespace

std::string explanation_text(const SavedRun& run, const InputText& text, const Prediction& prediction) {
  const TextExplanation explanation = explanation_of(run, text);
  std::string lines;
  for (const Guess& label : prediction.labels) {
    const auto column = std::find(run.classes.begin(), run.classes.end(), label.text) - run.classes.begin();
    if (column == static_cast<std::ptrdiff_t>(run.classes.size())) continue;  // none of them
    lines += label_lines(explanation, label.text, static_cast<size_t>(column));
  }
  return lines;
}

}  // namespace capstan
