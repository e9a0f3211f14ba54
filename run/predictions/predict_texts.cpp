// tests/cli/runs/test_predictions.cpp and tests/cli/inputs/test_tables.cpp.
#include "run/predictions/predict_texts.hpp"

#include <filesystem>
#include <vector>

#include "core/io/file.hpp"
#include "core/io/log.hpp"
#include "core/io/progress.hpp"
#include "run/inputs/text_batches.hpp"

namespace capstan {

void predict_texts(const SavedRun& run, TextInput& input, const PredictOptions& options,
                   const std::function<void(const InputText&, const Prediction&)>& take,
                   const std::function<void()>& end_batch) {
  for_each_batch(input, static_cast<size_t>(options.batch_size), [&](const std::vector<InputText>& texts) {
    const std::vector<Prediction> results = predictions_of(run, texts, options);
    for (size_t i = 0; i < texts.size(); ++i) take(texts[i], results[i]);
    end_batch();
  });
}

void write_predicted_table(const std::string& path, const SavedRun& run, TextInput& input,
                           const PredictOptions& options, const PredictionWriter& writer) {
  input.check_table(path);
  std::vector<std::vector<AddedField>> added;
  Progress progress(log_info, "predicting", static_cast<double>(input.bytes()));
  const auto add = [&](const InputText& text, const Prediction& prediction) {
    added.push_back(writer.fields(prediction));
    progress.add(text.text.size());
  };
  predict_texts(run, input, options, add, [] {});
  const bool existed = std::filesystem::exists(path);
  replace_file(path, input.with_fields(writer.columns(), added));
  log_info(fmt::format("{}: {} rows with their predictions{}", path, added.size(),
                       existed ? "; replaced what was there" : ""));
}

}  // namespace capstan
