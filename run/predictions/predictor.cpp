#include "run/predictions/predictor.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace capstan {

std::unique_ptr<Predictor> make_predictor(const SavedRun& run, const PredictOptions& options) {
  if (options.format != "tsv" && options.format != "jsonl")
    throw ConfigError(fmt::format("--format: {} is not one of tsv, jsonl", options.format));
  refuse_options_without_pairs(run, options.completions);
  if (options.threshold > 0 && !(run.model->is<TextClassifier>() && run.model->text_classifier().multi_label()))
    throw ConfigError("--threshold: only runs with data.multi_label: true have one");
  if (run.model->is<MaskedLanguageModel>()) return make_blank_predictor(run, options);
  if (run.model->is<LanguageModel>() && facts_of(run.config.data).has_pairs) return make_pair_predictor(run, options);
  return make_label_predictor(run, options);
}

std::string tsv_field(std::string text) {
  for (char& c : text)
    if (c == '\t' || c == '\n' || c == '\r') c = ' ';
  return text;
}

std::string errors_text(int64_t wrong, int64_t all) {
  return fmt::format("{} of {} texts ({:.2f} %) are predicted wrongly", wrong, all,
                     100 * static_cast<double>(wrong) / static_cast<double>(std::max<int64_t>(all, 1)));
}

}  // namespace capstan
