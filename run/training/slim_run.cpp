#include "run/training/slim_run.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/base/bf16.hpp"
#include "core/base/error.hpp"
#include "core/base/f8.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "run/setup/file_safety.hpp"
#include "run/setup/run_model.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// The tensors of a file, made smaller, with the memory that has them.
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

  /// Some rows of a table.
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

/// Writes the weights and notes in `said` what became of the n-grams.
void write_weights(const SavedRun& run, const fs::path& path, int64_t step, int64_t most_bytes, SlimRun& said) {
  const ParamStore& params = run.model->params();
  const SafetensorsFile weights(run.weights);
  SmallTensors tensors(params, weights);
  const std::vector<float> importance = run.model->model().row_importance();
  const auto is_table = [&](const Param& param) {  // by its name: there may be as many classes as n-grams
    return !importance.empty() && (param.name == "linear.weight" || param.name == "linear.scale");
  };
  std::shared_ptr<const StoredRows> rows;
  if (!importance.empty()) {
    int64_t row_bytes = 0;  // of all tables: their elements, and the gap
    for (const Param& param : params.params())
      if (is_table(param)) row_bytes += param.var.size() / param.var.shape()[0] + 1;
    constexpr int64_t header_bytes = 1500;  // and the few numbers beside the tables
    rows = best_rows(importance, std::max<int64_t>(most_bytes - header_bytes, 0), row_bytes);
    said.ngrams_before = std::count_if(importance.begin(), importance.end(), [](float of_row) { return of_row > 0; });
    said.ngrams = rows->count();
    if (said.ngrams == 0 && said.ngrams_before > 0)
      throw ConfigError(fmt::format(
          "--size: no n-gram fits into {} bytes, the given share of {}; give at least {:.2f}", most_bytes,
          said.bytes_before,
          std::min(1.0, static_cast<double>(header_bytes + 100 * row_bytes) / static_cast<double>(said.bytes_before))));
  }
  for (const Param& param : params.params()) {
    if (is_table(param))
      tensors.add_f8(param, rows);
    else if (importance.empty() && param.var.shape().rank() > 1)
      tensors.add_bf16(param);
    else
      tensors.add_as_is(param);
  }
  tensors.write(path, step);
}

}  // namespace

SlimRun slim_run(const fs::path& run_folder, const fs::path& output, const SlimOptions& options) {
  if (!(options.size > 0 && options.size <= 1))
    throw ConfigError(fmt::format("--size: a share above 0 and up to 1 is needed, not {}", options.size));
  refuse_file_of_run(output);
  const std::string folder = new_folder(output.string());
  const SavedRun run = open_run(run_folder);
  RunState state = run.state.value_or(RunState{});
  if (state.slim) throw Error(fmt::format("{}: this run is slim already; copy its folder", run.folder.string()));
  SlimRun said;
  said.bytes_before = bytes_below(fs::canonical(run.weights).parent_path().string());  // not of a link
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
    write_weights(run, checkpoint / model_name, state.step,
                  static_cast<int64_t>(options.size * static_cast<double>(said.bytes_before)), said);
    write_file((checkpoint / state_name).string(), to_json(state));
    for (const char* const link : {"best", "last"}) replace_link((part / "checkpoints" / link).string(), name);
    for (const fs::path& written : {checkpoint, part / "checkpoints"}) sync_folder(written.string());
    said.bytes = bytes_below(checkpoint.string());
    if (said.bytes >= said.bytes_before)
      throw Error(fmt::format("{}: a slim copy would not be smaller ({} bytes in place of {}); use the run itself",
                              run.folder.string(), said.bytes, said.bytes_before));
  });
  return said;
}

}  // namespace capstan
