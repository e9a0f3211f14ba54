// Completes the sources of pairs, some thousands at once, and compares with their targets.
// tests/cli/runs/test_eval.cpp.
#include "run/predictions/pair_report.hpp"

#include <algorithm>

namespace capstan {

PairReport evaluate_pairs(const SavedRun& run, const std::vector<EvaluationPair>& pairs, const PairOptions& options) {
  constexpr size_t at_once = 4096, shown = 12;  // pairs whose completions are in memory; pairs that a report shows
  PairReport report;
  for (size_t begin = 0; begin < pairs.size(); begin += at_once) {
    std::vector<std::vector<int32_t>> prompts;
    for (size_t i = begin; i < std::min(pairs.size(), begin + at_once); ++i) prompts.push_back(pairs[i].prompt);
    const auto written = complete(run, prompts, options);
    for (size_t i = 0; i < written.size(); ++i) {
      const EvaluationPair& pair = pairs[begin + i];
      const PairCompletion& best = written[i].front();
      // Around the source are the token that starts a document and the one that ends a source.
      if (report.examples.size() < shown)
        report.examples.push_back(
            {run.tokenizer->decode({pair.prompt.begin() + 1, pair.prompt.end() - 1}), pair.text, best.text});
      ++report.pairs;
      report.exact_match += best.text == run.tokenizer->decode(pair.target) ? 1 : 0;
      report.log_probability += best.log_probability;
    }
  }
  const auto count = static_cast<double>(std::max<int64_t>(report.pairs, 1));
  report.exact_match /= count;
  report.log_probability /= count;
  return report;
}

}  // namespace capstan
