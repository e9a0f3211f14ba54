// A linear classifier keeps the n-grams with the greatest importance (Model::row_importance()), as many as the size
// allows. The copy is written to a folder of another name, which is renamed when it is whole.
// tests/cli/runs/test_slim.cpp.
#include "run/training/slim_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/autograd/tape.hpp"
#include "core/base/bf16.hpp"
#include "core/base/error.hpp"
#include "core/base/f8.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "core/strings/strings.hpp"
#include "data/batches/batcher.hpp"
#include "models/linear_classifier.hpp"
#include "run/inputs/input_text.hpp"
#include "run/setup/file_safety.hpp"
#include "run/setup/run_model.hpp"
#include "run/setup/saved_run.hpp"
#include "train/checkpoints/checkpoint_files.hpp"
#include "train/records/metrics.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// A tensor of the copy, and the memory that it is in until it is written.
struct SmallTensor {
  TensorToWrite tensor;
  std::vector<unsigned char> bytes;
};

template <class T>
SmallTensor small_tensor(const FileTensor& from, DType dtype, const std::vector<T>& elements,
                         std::shared_ptr<const StoredRows> stored, float factor = 1) {
  SmallTensor small{{from.name, dtype, from.shape, nullptr, std::move(stored), factor}, {}};
  small.bytes.resize(elements.size() * sizeof(T));
  std::memcpy(small.bytes.data(), elements.data(), small.bytes.size());
  small.tensor.bytes = small.bytes.data();
  return small;
}

SmallTensor as_it_is(const FileTensor& tensor) {
  return small_tensor(tensor, DType::f32, tensor.to_floats(), tensor.stored);
}

SmallTensor in_bf16(const FileTensor& tensor) {
  std::vector<Bf16> elements;
  for (const float value : tensor.to_floats()) elements.push_back(to_bf16(value));
  return small_tensor(tensor, DType::bf16, elements, tensor.stored);
}

/// Some rows of a table, each element in 8 bits, times one factor for the table.
SmallTensor in_f8(const FileTensor& tensor, const std::shared_ptr<const StoredRows>& rows) {
  const std::vector<float> values = tensor.to_floats();
  const size_t width = values.size() / static_cast<size_t>(rows->rows());
  float largest = 0;
  rows->for_each([&](int64_t row) {
    for (size_t i = static_cast<size_t>(row) * width; i < static_cast<size_t>(row + 1) * width; ++i)
      largest = std::max(largest, std::abs(values[i]));
  });
  const float factor = largest == 0 ? 1 : largest / largest_f8;
  std::vector<F8> elements;
  for (const float value : values) elements.push_back(to_f8(value / factor));
  return small_tensor(tensor, DType::f8, elements, rows, factor);
}

/// The rows that matter most, at most `count`.
std::shared_ptr<const StoredRows> best_rows(const std::vector<float>& importance, int64_t count) {
  std::vector<int64_t> order;
  for (size_t row = 0; row < importance.size(); ++row)
    if (importance[row] > 0) order.push_back(static_cast<int64_t>(row));
  const auto kept = static_cast<std::ptrdiff_t>(std::min<int64_t>(static_cast<int64_t>(order.size()), count));
  std::nth_element(order.begin(), order.begin() + kept, order.end(), [&](int64_t a, int64_t b) {
    const float of_a = importance[static_cast<size_t>(a)], of_b = importance[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  });
  const auto rows = static_cast<int64_t>(importance.size());
  std::vector<unsigned char> bits(static_cast<size_t>(StoredRows::bytes_of(rows)), 0);
  for (std::ptrdiff_t i = 0; i < kept; ++i) {
    const int64_t row = order[static_cast<size_t>(i)];
    bits[static_cast<size_t>(row / 8)] |= static_cast<unsigned char>(1U << (row % 8));
  }
  return std::make_shared<const StoredRows>(rows, std::move(bits), StoredRows::Form::gaps);
}

/// Does a tensor have a row for each n-gram? Its name says it; by shape, classes might be as many as n-grams.
bool is_ngram_table(const FileTensor& tensor) {
  return tensor.name == "linear.weight" || tensor.name == "linear.scale";
}

/// Bytes of one n-gram in the file: its elements in all tables, and in each a byte for the distance from the row
/// before.
int64_t row_bytes(const SafetensorsFile& weights) {
  int64_t bytes = 0;
  for (const FileTensor& tensor : weights.tensors())
    if (is_ngram_table(tensor)) bytes += tensor.size / tensor.shape[0] + 1;
  return bytes;
}

/// The n-grams that fit into this share of the bytes of the run's checkpoint; `result` gets how many they are.
std::shared_ptr<const StoredRows> kept_ngrams(const SavedRun& run, const SafetensorsFile& weights, double size,
                                              SlimRun& result) {
  constexpr int64_t header_bytes = 1500;  // of the file's header and the few numbers beside the tables
  const std::vector<float> importance = run.model->model().linear_classifier().row_importance();
  result.ngrams_before = std::count_if(importance.begin(), importance.end(), [](float of_row) { return of_row > 0; });
  const auto max_bytes = static_cast<int64_t>(size * static_cast<double>(result.bytes_before));
  auto rows = best_rows(importance, std::max<int64_t>(max_bytes - header_bytes, 0) / row_bytes(weights));
  result.ngrams = rows->count();
  if (result.ngrams == 0 && result.ngrams_before > 0)
    throw ConfigError(fmt::format("--size: no n-gram fits into the given share of {} bytes; give at least {:.2f}",
                                  result.bytes_before,
                                  std::min(1.0, static_cast<double>(header_bytes + 100 * row_bytes(weights)) /
                                                    static_cast<double>(result.bytes_before))));
  return rows;
}

/// Returns the checksum of the file.
std::string write_weights(const SavedRun& run, const fs::path& path, double size, SlimRun& result) {
  const SafetensorsFile weights(run.weights);
  const bool has_ngrams = run.model->model().find_linear() != nullptr;
  const std::shared_ptr<const StoredRows> rows = has_ngrams ? kept_ngrams(run, weights, size, result) : nullptr;
  std::vector<SmallTensor> small;
  for (const FileTensor& tensor : weights.tensors())
    small.push_back(has_ngrams && is_ngram_table(tensor)     ? in_f8(tensor, rows)
                    : !has_ngrams && tensor.shape.size() > 1 ? in_bf16(tensor)
                                                             : as_it_is(tensor));
  std::vector<TensorToWrite> tensors;
  for (const SmallTensor& each : small) tensors.push_back(each.tensor);
  nlohmann::json aliases = nlohmann::json::object();
  for (const auto& [name, target] : run.model->params().aliases()) aliases[name] = target;
  const std::string step = std::to_string(run.state ? run.state->step : 0);
  return write_safetensors(path.string(), std::move(tensors),
                           {{"format", "capstan"}, {"step", step}, {"aliases", json_text(aliases)}});
}

/// Throws NotFinite unless the model computes finite numbers: of each of its tokens or, where it reads texts, of any
/// n-grams, since no feature of a text is above 1.
void require_finite_results(const SavedRun& run) {
  double sum = 0;
  const SafetensorsFile weights(run.weights);
  for (const FileTensor& tensor : weights.tensors())
    for (const double value : tensor.without_zeros().to_doubles()) sum += std::abs(value);
  require_finite(static_cast<float>(sum), run.weights);
  const ModelFacts facts = facts_of(run.config.model);
  if (facts.reads_texts) return;
  const Model& model = run.model->model();
  const int64_t vocabulary = model_vocabulary(run.config, *run.tokenizer), longest = 256;
  const int64_t length = std::max<int64_t>(std::min(run.model->position_limit().value_or(longest), longest) - 1, 1);
  for (int64_t first = 0; first < vocabulary; first += length) {
    std::vector<int32_t> tokens(static_cast<size_t>(std::min(length, vocabulary - first)));
    std::iota(tokens.begin(), tokens.end(), static_cast<int32_t>(first));
    Batch batch = pad_rows({tokens});
    const Shape labels = model.label_columns() > 0 ? Shape{1, model.label_columns()} : Shape{1};
    batch.labels = facts.classifies() ? Ids(labels, 0) : batch.tokens;
    const TapePause no_tape;
    require_finite(static_cast<double>(model.loss(batch, Context::evaluation(batch)).sum.value().item()),
                   fmt::format("a text of the tokens {} to {}", tokens.front(), tokens.back()));
  }
}

}  // namespace

SlimRun slim_run(const fs::path& run_folder, const fs::path& output, double size) {
  if (!(size > 0 && size <= 1))
    throw ConfigError(fmt::format("--size: a share above 0 and up to 1 is needed, not {}", size));
  refuse_file_of_run(output);
  const std::string folder = new_folder(output.string());
  const SavedRun run = open_run(run_folder);
  RunState state = run.state.value_or(RunState{});
  if (state.slim) throw Error(fmt::format("{}: this run is slim already; copy its folder", run.folder.string()));
  require_finite_results(run);
  SlimRun result;
  result.bytes_before = bytes_below(fs::path(run.weights).parent_path().string());
  state.slim = true;

  write_new_folder(folder, [&](const fs::path& part) {
    write_run_files(part, run.config, *run.tokenizer, run.classes);
    if (const std::string metrics = read_metrics(run.folder, &state); !metrics.empty())
      write_file((part / "metrics.jsonl").string(), metrics);
    write_only_checkpoint(part / "checkpoints", state, [&](const fs::path& checkpoint) {
      return std::map<std::string, std::string>{
          {model_name, write_weights(run, checkpoint / model_name, size, result)}};
    });
    result.bytes = bytes_below(folder_of_step(part / "checkpoints", state.step).string());
    if (result.bytes >= result.bytes_before)
      throw Error(fmt::format("{}: a slim copy would not be smaller ({} bytes in place of {}); use the run itself",
                              run.folder.string(), result.bytes, result.bytes_before));
  });
  return result;
}

}  // namespace capstan
