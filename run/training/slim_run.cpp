// A linear classifier keeps the n-grams with the greatest importance (Model::row_importance()), as many as the size
// allows; the size is found by bisection over a list of shares, each written and measured anew. The copy is written to
// a folder of another name, which is renamed when it is whole. tests/cli/runs/test_slim.cpp.
#include "run/training/slim_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/bf16.hpp"
#include "core/base/error.hpp"
#include "core/base/f8.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "core/strings/strings.hpp"
#include "data/files/file_list.hpp"
#include "run/setup/file_safety.hpp"
#include "run/setup/run_model.hpp"
#include "run/setup/saved_data.hpp"
#include "run/setup/saved_run.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// A tensor of the copy, and the memory that it is in until it is written.
struct SmallTensor {
  TensorToWrite tensor;
  std::vector<unsigned char> bytes;
};

std::vector<float> finite_values(const FileTensor& tensor) {
  std::vector<float> values = tensor.to_floats();
  if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
    throw Error(
        fmt::format("{} has elements that are not finite: nothing can be predicted with such weights, and there "
                    "is no copy of them",
                    tensor.name));
  return values;
}

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
  return small_tensor(tensor, DType::f32, finite_values(tensor), tensor.stored);
}

SmallTensor in_bf16(const FileTensor& tensor) {
  std::vector<Bf16> elements;
  for (const float value : finite_values(tensor)) elements.push_back(to_bf16(value));
  return small_tensor(tensor, DType::bf16, elements, tensor.stored);
}

/// Some rows of a table, each element in 8 bits, times one factor for the table.
SmallTensor in_f8(const FileTensor& tensor, const std::shared_ptr<const StoredRows>& rows) {
  const std::vector<float> values = finite_values(tensor);
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

/// The weights of a copy, written anew until their size suits, and what they say of some texts.
class SlimWeights {
 public:
  SlimWeights(const SavedRun& run, fs::path path, int64_t step, SlimRun& result)
      : run_(run), full_(run.weights), path_(std::move(path)), step_(step), result_(result) {
    importance_ = run.model->model().row_importance();
    result_.ngrams_before =
        std::count_if(importance_.begin(), importance_.end(), [](float of_row) { return of_row > 0; });
  }
  bool has_ngrams() const { return !importance_.empty(); }
  void measure_on(const std::vector<std::string>& texts) {
    texts_ = texts;
    before_ = probabilities_of(run_.model->model());
  }

  /// Writes the weights, with at most this share of the bytes of the run's checkpoint.
  void write(double share) {
    const std::shared_ptr<const StoredRows> rows = has_ngrams() ? rows_of(share) : nullptr;
    std::vector<SmallTensor> small;
    for (const FileTensor& tensor : full_.tensors())
      small.push_back(is_table(tensor)                           ? in_f8(tensor, rows)
                      : !has_ngrams() && tensor.shape.size() > 1 ? in_bf16(tensor)
                                                                 : as_it_is(tensor));
    std::vector<TensorToWrite> tensors;
    for (const SmallTensor& each : small) tensors.push_back(each.tensor);
    nlohmann::json aliases = nlohmann::json::object();
    for (const auto& [name, target] : run_.model->params().aliases()) aliases[name] = target;
    write_safetensors(path_.string(), std::move(tensors),
                      {{"format", "capstan"}, {"step", std::to_string(step_)}, {"aliases", json_text(aliases)}});
    if (!texts_.empty()) result_.effect = effect();
  }

  /// The smallest of some shares with an effect within the limit, by bisection.
  void write_smallest() {
    constexpr double shares[] = {0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 1};
    size_t low = 0, high = std::size(shares) - 1;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      write(shares[middle]);
      if (result_.ngrams > 0 && result_.effect.mean <= result_.limit)
        high = middle;
      else
        low = middle + 1;
    }
    write(shares[high]);
  }

  void check_some_are_left() const {
    if (result_.ngrams > 0 || result_.ngrams_before == 0) return;
    throw ConfigError(fmt::format("--size: no n-gram fits into the given share of {} bytes; give at least {:.2f}",
                                  result_.bytes_before,
                                  std::min(1.0, static_cast<double>(header_bytes + 100 * row_bytes()) /
                                                    static_cast<double>(result_.bytes_before))));
  }

 private:
  static constexpr int64_t header_bytes = 1500;  // of the file's header and the few numbers beside the tables

  /// Does a tensor have a row for each n-gram? Its name says it; by shape, classes might be as many as n-grams.
  bool is_table(const FileTensor& tensor) const {
    return has_ngrams() && (tensor.name == "linear.weight" || tensor.name == "linear.scale");
  }
  /// Bytes of one n-gram in the file: its elements in all tables, and in each a byte for the distance from the row
  /// before.
  int64_t row_bytes() const {
    int64_t bytes = 0;
    for (const FileTensor& tensor : full_.tensors())
      if (is_table(tensor)) bytes += tensor.size / tensor.shape[0] + 1;
    return bytes;
  }
  std::shared_ptr<const StoredRows> rows_of(double share) {
    const auto max_bytes = static_cast<int64_t>(share * static_cast<double>(result_.bytes_before));
    auto rows = best_rows(importance_, std::max<int64_t>(max_bytes - header_bytes, 0) / row_bytes());
    result_.ngrams = rows->count();
    return rows;
  }
  std::vector<float> probabilities_of(const Model& model) const {
    const Array probabilities = model.probabilities(Var(model.text_logits(texts_)));
    return {probabilities.data(), probabilities.data() + probabilities.size()};
  }
  /// Opens the file that was written, as a user of it would, and compares its probabilities with those of the run.
  SlimEffect effect() const {
    const SafetensorsFile written(path_.string());
    const RunModel slim(run_.config, model_vocabulary(run_.config, *run_.tokenizer),
                        static_cast<int64_t>(run_.classes.size()), written, ParamMemory::none);
    const std::vector<float> after = probabilities_of(slim.model());
    const size_t classes = after.size() / texts_.size();
    SlimEffect changes;
    changes.texts = static_cast<int64_t>(texts_.size());
    for (size_t begin = 0; begin < after.size(); begin += classes) {
      double most = 0;
      for (size_t i = begin; i < begin + classes; ++i)
        most = std::max(most, std::abs(static_cast<double>(after[i] - before_[i])));
      changes.mean += most / static_cast<double>(texts_.size());
      changes.most = std::max(changes.most, most);
    }
    if (!std::isfinite(changes.mean))
      throw Error(fmt::format("{}: probabilities that are not finite: there is no copy", run_.folder.string()));
    return changes;
  }
  const SavedRun& run_;
  SafetensorsFile full_;
  fs::path path_;
  int64_t step_;
  SlimRun& result_;
  std::vector<float> importance_;
  std::vector<std::string> texts_;
  std::vector<float> before_;  // (texts, classes): the run's probabilities
};

/// Some of the run's texts, those that it was not trained on if there are any; `result` gets what they are, or why
/// there are none.
std::vector<std::string> some_texts(const SavedRun& run, SlimRun& result) {
  constexpr int64_t max_texts = 1000;  // they are predicted anew for each size that is tried
  try {
    std::vector<std::string> missing;
    for (const SourceFiles& files : facts_of(run.config.data).files)
      for (const std::string& path : files.paths)
        if (!missing_file(path).empty()) missing.push_back(path);
    if (!missing.empty())
      throw Error(fmt::format("{} not found: run the command where the run was trained", join_first(missing)));
    const std::unique_ptr<DataSource> data = open_saved_data(run);
    const Split split = data->has(Split::valid) ? Split::valid : Split::train;
    const LabelledTexts of_split = data->texts(split);
    const int64_t count = std::min(of_split.size(), max_texts);
    std::vector<std::string> texts;
    for (int64_t i = 0; i < count; ++i) texts.push_back(of_split.text(i * of_split.size() / count));
    result.measured_on = split == Split::valid ? "validation texts" : "training texts";
    if (split == Split::train) result.limit = max_slim_change / 3;
    return texts;
  } catch (const Error& error) {
    result.measured_on = error.what();
    return {};
  }
}

void write_weights(const SavedRun& run, const fs::path& path, int64_t step, const SlimOptions& options,
                   SlimRun& result) {
  SlimWeights weights(run, path, step, result);
  if (!weights.has_ngrams()) return weights.write(1);
  result.measured_on = "given texts";
  const std::vector<std::string> texts = options.texts.empty() ? some_texts(run, result) : options.texts;
  if (!texts.empty()) weights.measure_on(texts);
  if (options.size == 0 && !texts.empty())
    weights.write_smallest();
  else
    weights.write(options.size == 0 ? 1 : options.size);
  weights.check_some_are_left();
}

}  // namespace

std::string effect_text(const SlimRun& result, const SlimOptions& options) {
  const bool chosen = options.size == 0;
  if (result.ngrams_before == 0) return "all weights are kept, matrices in bf16; capstan eval shows what this does";
  if (result.effect.texts == 0)
    return fmt::format("what this does to probabilities is not measured{}: {}", chosen ? ", so all n-grams stay" : "",
                       result.measured_on);
  std::string text = fmt::format("of {} {}, probabilities change by {:.4f} on average and {:.4f} at most",
                                 result.effect.texts, result.measured_on, result.effect.mean, result.effect.most);
  if (chosen)
    text += result.effect.mean > result.limit
                ? fmt::format("; all n-grams stay: with fewer, they would change by more than {:.2g} on average",
                              result.limit)
                : fmt::format("; this size is the smallest that was found to change them by at most {:.2g} on average",
                              result.limit);
  if (result.limit < max_slim_change)
    text += " (texts that a model was not trained on change up to three times as much)";
  return text;
}

SlimRun slim_run(const fs::path& run_folder, const fs::path& output, const SlimOptions& options) {
  if (!(options.size >= 0 && options.size <= 1))
    throw ConfigError(
        fmt::format("--size: a share above 0 and up to 1 is needed, or 0 to choose it, not {}", options.size));
  refuse_file_of_run(output);
  const std::string folder = new_folder(output.string());
  const SavedRun run = open_run(run_folder);
  RunState state = run.state.value_or(RunState{});
  if (state.slim) throw Error(fmt::format("{}: this run is slim already; copy its folder", run.folder.string()));
  SlimRun result;
  result.bytes_before = bytes_below(fs::canonical(run.weights).parent_path().string());  // resolved: `best` is a link
  state.slim = true;
  state.has_optimizer = false;
  state.best_step = state.step;

  write_new_folder(folder, [&](const fs::path& part) {
    const std::string name = fmt::format("step-{}", state.step);
    const fs::path checkpoint = part / "checkpoints" / name;
    make_folders(checkpoint.string());
    write_run_files(part, run.config, *run.tokenizer, run.classes);
    if (const fs::path metrics = run.folder / "metrics.jsonl"; fs::exists(metrics))
      write_file((part / "metrics.jsonl").string(), read_file(metrics.string()));
    write_weights(run, checkpoint / model_name, state.step, options, result);
    write_file((checkpoint / state_name).string(), to_json(state));
    for (const char* const link : {"best", "last"}) replace_link((part / "checkpoints" / link).string(), name);
    for (const fs::path& written : {checkpoint, part / "checkpoints"}) sync_folder(written.string());
    result.bytes = bytes_below(checkpoint.string());
    if (result.bytes >= result.bytes_before)
      throw Error(fmt::format("{}: a slim copy would not be smaller ({} bytes in place of {}); use the run itself",
                              run.folder.string(), result.bytes, result.bytes_before));
  });
  return result;
}

}  // namespace capstan
