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

#include "core/base/error.hpp"
#include "core/base/small_floats.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "core/strings/strings.hpp"
#include "data/files/file_list.hpp"
#include "run/setup/file_safety.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/run_model.hpp"
#include "train/checkpoints/checkpoint.hpp"
#include "train/evaluation/evaluate.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// The tensors of a file, made smaller, and the memory that they are in until they are written.
class SmallTensors {
 public:
  SmallTensors(const ParamStore& params, const SafetensorsFile& file) : params_(params), file_(file) {}

  void add_as_is(const Param& param) {
    const std::vector<float> from = values(param);
    std::vector<unsigned char>& bytes = memory(param.var.size() * static_cast<int64_t>(sizeof(float)));
    std::memcpy(bytes.data(), from.data(), bytes.size());
    add(param, DType::f32, bytes.data());
  }

  void add_bf16(const Param& param) {
    const std::vector<float> from = values(param);
    std::vector<unsigned char>& bytes = memory(param.var.size() * 2);
    for (int64_t i = 0; i < param.var.size(); ++i) {
      const uint16_t bits = to_bf16(from[static_cast<size_t>(i)]).bits;
      bytes[static_cast<size_t>(2 * i)] = static_cast<unsigned char>(bits & 255);
      bytes[static_cast<size_t>(2 * i) + 1] = static_cast<unsigned char>(bits >> 8);
    }
    add(param, DType::bf16, bytes.data());
    leave_out_zeros(bytes);
  }

  /// The rows of a table that `rows` has, each element in 8 bits, times one factor for the table.
  void add_f8(const Param& param, const std::shared_ptr<const StoredRows>& rows) {
    const std::vector<float> from = values(param);
    std::vector<unsigned char>& bytes = memory(param.var.size());
    const int64_t width = param.var.size() / rows->rows();
    float largest = 0;
    for (int64_t i = 0; i < param.var.size(); ++i)
      if (rows->has(i / width)) largest = std::max(largest, std::abs(from[static_cast<size_t>(i)]));
    const float factor = largest == 0 ? 1 : largest / largest_f8;
    for (int64_t i = 0; i < param.var.size(); ++i)
      if (rows->has(i / width)) bytes[static_cast<size_t>(i)] = to_f8(from[static_cast<size_t>(i)] / factor).bits;
    add(param, DType::f8, bytes.data());
    tensors_.back().stored = rows;
    tensors_.back().factor = factor;
  }

  void write(const fs::path& path, int64_t step) {
    nlohmann::json aliases = nlohmann::json::object();
    for (const auto& [name, target] : params_.aliases()) aliases[name] = target;
    write_safetensors(path.string(), std::move(tensors_),
                      {{"format", "capstan"}, {"step", std::to_string(step)}, {"aliases", json_text(aliases)}});
  }

 private:
  std::vector<float> values(const Param& param) const { return file_.at(param.name).to_floats(); }
  std::vector<unsigned char>& memory(int64_t bytes) {
    return *memory_.emplace_back(std::make_unique<std::vector<unsigned char>>(static_cast<size_t>(bytes)));
  }
  void add(const Param& param, DType dtype, const void* bytes) {
    tensors_.push_back({param.name, dtype, param.var.shape().to_vector(), bytes});
  }
  /// As in checkpoints, a table with many rows of zeros is written without them.
  void leave_out_zeros(const std::vector<unsigned char>& bytes) {
    const int64_t rows = tensors_.back().shape[0], row_bytes = static_cast<int64_t>(bytes.size()) / rows;
    std::vector<unsigned char> bits(static_cast<size_t>(StoredRows::bytes_of(rows)), 0);
    for (int64_t row = 0; row < rows; ++row) {
      const auto begin = bytes.begin() + row * row_bytes;
      if (std::any_of(begin, begin + row_bytes, [](unsigned char byte) { return byte != 0; }))
        bits[static_cast<size_t>(row / 8)] |= static_cast<unsigned char>(1U << (row % 8));
    }
    auto stored = std::make_shared<const StoredRows>(rows, std::move(bits));
    if (rows > 1024 && stored->count() <= rows - rows / 8) tensors_.back().stored = std::move(stored);
  }

  const ParamStore& params_;
  const SafetensorsFile& file_;
  std::vector<std::unique_ptr<std::vector<unsigned char>>> memory_;
  std::vector<TensorToWrite> tensors_;
};

/// The rows that matter most, as many as `bytes` have room for when a row takes `row_bytes`.
std::shared_ptr<const StoredRows> best_rows(const std::vector<float>& importance, int64_t bytes, int64_t row_bytes) {
  std::vector<int64_t> order;
  for (size_t row = 0; row < importance.size(); ++row)
    if (importance[row] > 0) order.push_back(static_cast<int64_t>(row));
  const auto kept =
      static_cast<std::ptrdiff_t>(std::min<int64_t>(static_cast<int64_t>(order.size()), bytes / row_bytes));
  const auto before = [&](int64_t a, int64_t b) {
    const float of_a = importance[static_cast<size_t>(a)], of_b = importance[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  };
  std::nth_element(order.begin(), order.begin() + kept, order.end(), before);
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
      : run_(run),
        params_(run.model->params()),
        full_(run.weights),
        path_(std::move(path)),
        step_(step),
        result_(result) {
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
    SmallTensors tensors(params_, full_);
    const std::shared_ptr<const StoredRows> rows = has_ngrams() ? rows_of(share) : nullptr;
    for (const Param& param : params_.params()) {
      if (is_table(param))
        tensors.add_f8(param, rows);
      else if (!has_ngrams() && param.var.shape().rank() > 1)
        tensors.add_bf16(param);
      else
        tensors.add_as_is(param);
    }
    tensors.write(path_, step_);
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

  /// Does a parameter have a row for each n-gram? Its name says it; by shape, classes might be as many as n-grams.
  bool is_table(const Param& param) const {
    return has_ngrams() && (param.name == "linear.weight" || param.name == "linear.scale");
  }
  /// Bytes of one n-gram in the file: its elements in all tables, and in each a byte for the distance from the row
  /// before.
  int64_t row_bytes() const {
    int64_t bytes = 0;
    for (const Param& param : params_.params())
      if (is_table(param)) bytes += param.var.size() / param.var.shape()[0] + 1;
    return bytes;
  }
  std::shared_ptr<const StoredRows> rows_of(double share) {
    const auto max_bytes = static_cast<int64_t>(share * static_cast<double>(result_.bytes_before));
    auto rows = best_rows(importance_, std::max<int64_t>(max_bytes - header_bytes, 0), row_bytes());
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
      changes.labels += labels_of(after, begin, classes) != labels_of(before_, begin, classes) ? 1 : 0;
    }
    return changes;
  }
  /// The class by the run's rule, or the labels that reach their thresholds.
  std::vector<size_t> labels_of(const std::vector<float>& probabilities, size_t begin, size_t classes) const {
    const auto first = probabilities.begin() + static_cast<std::ptrdiff_t>(begin),
               last = first + static_cast<std::ptrdiff_t>(classes);
    std::vector<size_t> labels;
    if (run_.thresholds.empty()) labels.push_back(static_cast<size_t>(decide(run_.rule, &*first, last - first)));
    for (size_t c = 0; c < run_.thresholds.size(); ++c)
      if (reaches(first[static_cast<std::ptrdiff_t>(c)], run_.thresholds[c])) labels.push_back(c);
    return labels;
  }

  const SavedRun& run_;
  const ParamStore& params_;
  SafetensorsFile full_;
  fs::path path_;
  int64_t step_;
  SlimRun& result_;
  std::vector<float> importance_;
  std::vector<std::string> texts_;
  std::vector<float> before_;  // (texts, classes): the run's probabilities
};

/// The run's data. Throws Error that says what is missing.
std::unique_ptr<DataSource> data_to_measure(const SavedRun& run) {
  std::vector<std::string> missing;
  for (const SourceFiles& files : facts_of(run.config.data).files)
    for (const std::string& path : files.paths)
      if (!missing_file(path).empty()) missing.push_back(path);
  if (!missing.empty())
    throw Error(fmt::format("{} not found: run the command where the run was trained", join_first(missing)));
  return open_saved_data(run);
}

/// Measures the loss of the run and of the copy on some batches, evenly spaced in the validation data or, without
/// these, in the training data.
void measure_loss(const SavedRun& run, const fs::path& weights, SlimRun& result) {
  constexpr int64_t max_batches = 32;  // so that measuring takes a bounded time
  try {
    const std::unique_ptr<DataSource> data = data_to_measure(run);
    const Split split = data->has(Split::valid) ? Split::valid : Split::train;
    const auto batches = data->evaluation(split);
    const int64_t count = batches->batches_per_epoch(0), step = (count + max_batches - 1) / max_batches;
    const SomeBatches sampled(*batches, {1, std::max<int64_t>(step - 1, 0)}, 0);
    const SafetensorsFile file(weights.string());
    const RunModel slim(run.config, model_vocabulary(run.config, *run.tokenizer),
                        static_cast<int64_t>(run.classes.size()), file, ParamMemory::values);
    result.loss_before = evaluate(run.model->model(), sampled, 0).loss();
    result.loss = evaluate(slim.model(), sampled, 0).loss();
    result.batches = sampled.batches_per_epoch(0);
    result.measured_on = split == Split::valid ? "validation" : "training";
  } catch (const Error& error) {
    result.measured_on = error.what();
  }
}

/// Some of the run's texts, those that it was not trained on if there are any; `result` gets what they are.
std::vector<std::string> some_texts(const SavedRun& run, SlimRun& result) {
  constexpr int64_t max_texts = 1000;  // they are predicted anew for each size that is tried
  try {
    const std::unique_ptr<DataSource> data = data_to_measure(run);
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
  if (!weights.has_ngrams()) {
    weights.write(1);
    return measure_loss(run, path, result);
  }
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
  if (result.batches > 0)
    return fmt::format("the loss of {} batches of {} data is {:.5f} in place of {:.5f}", result.batches,
                       result.measured_on, result.loss, result.loss_before);
  if (result.ngrams_before == 0)
    return fmt::format("what this does to the loss is not measured: {}", result.measured_on);
  if (result.effect.texts == 0)
    return fmt::format("what this does to probabilities is not measured{}: {}", chosen ? ", so all n-grams stay" : "",
                       result.measured_on);
  std::string text = fmt::format(
      "of {} {}, probabilities change by {:.4f} on average and {:.4f} at most, {} get another label",
      result.effect.texts, result.measured_on, result.effect.mean, result.effect.most, result.effect.labels);
  if (chosen)
    text += fmt::format("; this size is the smallest that was found to change them by at most {:.2g} on average",
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
