// A task small enough to follow by hand, batches without files, and folders that vanish.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/autograd/tape.hpp"
#include "core/base/random.hpp"
#include "core/io/json.hpp"
#include "models/model.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/texts.hpp"
#include "train/loop/signals.hpp"
#include "train/loop/trainer.hpp"

/// The one that tests of models use: which of two a batch of sources declares first must not matter.
namespace capstan::CAPSTAN_PRECISION::testing {}

namespace capstan::testing {

namespace fs = std::filesystem;

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// The lines of a run's metrics.jsonl.
inline std::vector<nlohmann::json> metrics_in(const std::filesystem::path& folder) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(folder / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) lines.push_back(parse_json(line));
  return lines;
}

/// As another process would send it; returns when the training has noticed.
inline void send_signal(int number) {
  kill(getpid(), number);
  while (StopSignals::received() != number) std::this_thread::yield();
}

/// Operations for so many seconds.
inline void compute_for(double seconds) {
  const Stopwatch watch;
  while (watch.seconds() < seconds) {
    make_var("nothing", Array::scalar(0), {}, {});
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

/// Predicts each token's label as keep * weight[token] + bias; the loss is the squared error of labels that are not
/// ignored. In training, keep is 0 or 2 by a draw from (example, position, step), as dropout does.
class LookupTask final : public Task {
 public:
  LookupTask(ParamStore& params, int64_t tokens, bool fresh_each_epoch)
      : weight_(params.add("weight", Array(Shape{tokens}, real{fresh_each_epoch ? 0 : 0.1F}),
                           {/*decay=*/true, /*by_rows=*/false, fresh_each_epoch})),
        bias_(params.add("bias", Array(Shape{1}, real{0}), {false})) {
    params.finalize();
  }

  TaskLoss loss(const Batch& batch, const Context& context) const override {
    if (before_loss) before_loss(context);
    const int64_t rows = batch.tokens.dim(0), length = batch.tokens.dim(1);
    Array d_weight = Array::zeros(weight_.shape()), d_bias = Array::zeros(bias_.shape());
    real* const dw = d_weight.mutable_data();
    real* const db = d_bias.mutable_data();
    TaskLoss result;
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t t = 0; t < length; ++t) {
        const int64_t i = row * length + t;
        if (batch.labels[i] == ignored_target) continue;
        real keep = 1;
        if (dropout && context.training) {
          const RandomWords words = random_words({7, 7}, static_cast<uint32_t>(context.examples[row]),
                                                 static_cast<uint32_t>(t), 0, static_cast<uint32_t>(context.step));
          keep = words[0] % 2 == 0 ? real{0} : real{2};
        }
        const real prediction = keep * weight_.value()[batch.tokens[i]] + bias_.value()[0];
        const real error = prediction - static_cast<real>(batch.labels[i]);
        sum += static_cast<double>(error) * error;
        dw[batch.tokens[i]] += 2 * error * keep;
        db[0] += 2 * error;
        ++result.targets;
        if (std::abs(error) < 0.5F) ++result.correct;
      }
    }
    if (damage) sum *= damage(context);
    result.sum = make_var("lookup", Array::scalar(static_cast<real>(sum)), {weight_, bias_},
                          [d_weight, d_bias](const Array&, const Needs&) -> Grads {
                            return {d_weight, d_bias};
                          });
    return result;
  }

  bool dropout = true;
  std::function<void(const Context&)> before_loss;  // to raise signals
  std::function<double(const Context&)> damage;     // factor of the loss

 private:
  Var weight_, bias_;
};

/// Batches that are a pure function of (epoch, index). Rows end in padding of varying length. They are packed
/// documents of `document` tokens, or one document each (0).
class DrawnBatches : public BatchSource {
 public:
  DrawnBatches() = default;
  /// Rows of so many tokens of a vocabulary.
  DrawnBatches(int64_t rows, int64_t length, int64_t vocabulary) : rows(rows), length(length), vocabulary(vocabulary) {}

  int64_t rows = 6, length = 5, count = 7, vocabulary = 11, document = 0;
  uint64_t seed = 3;

  int64_t examples_per_epoch() const override { return rows * count; }
  int64_t batches_per_epoch(int64_t) const override { return count; }
  Batch batch(int64_t epoch, int64_t index) const override {
    Batch batch{Ids(Shape{rows, length}), Ids(Shape{rows, length}), Ids(Shape{rows, length}), Ids(Shape{rows})};
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t example = index * rows + row;
      batch.examples.shared_data()[row] = static_cast<int32_t>(example);
      const int64_t valid = 1 + example % length;
      for (int64_t t = 0; t < length; ++t) {
        const RandomWords words = random_words({seed, 1}, static_cast<uint32_t>(epoch), static_cast<uint32_t>(example),
                                               static_cast<uint32_t>(t), 0);
        const int32_t token = static_cast<int32_t>(words[0] % static_cast<uint32_t>(vocabulary));
        const int64_t i = row * length + t;
        batch.tokens.shared_data()[i] = t < valid ? token : 0;
        batch.segment_ids.shared_data()[i] = t < valid ? static_cast<int32_t>(document > 0 ? 1 + t / document : 1) : 0;
        batch.labels.shared_data()[i] = t < valid ? token % 4 : ignored_target;
      }
    }
    return batch;
  }
};

/// Rows of unequal length, a label a row.
class LabelledBatches final : public DrawnBatches {
 public:
  explicit LabelledBatches(const DrawnBatches& drawn) : DrawnBatches(drawn) {}
  Batch batch(int64_t epoch, int64_t index) const override {
    Batch batch = DrawnBatches::batch(epoch, index);
    Ids labels(Shape{batch.tokens.dim(0)});
    for (int64_t row = 0; row < labels.size(); ++row)
      labels.mutable_data()[row] = batch.tokens[row * batch.tokens.dim(1)] % 3;
    batch.labels = labels;
    return batch;
  }
};

inline TrainConfig quiet_config(int64_t steps = 0) {
  TrainConfig config;
  config.steps = steps;
  config.progress = ProgressMode::none;
  config.lr = 0.05;
  config.log_every = 2;
  config.valid_every = 3;
  config.save_every = 4;
  return config;
}

/// A model with its data, ready to be trained in a folder.
struct Setup {
  ParamStore params;
  LookupTask task;
  DrawnBatches data, held_out;
  RunInputs inputs;

  explicit Setup(const std::filesystem::path& folder, int64_t tokens = 11, bool fresh_each_epoch = false)
      : task(params, tokens, fresh_each_epoch), inputs{task,   params,
                                                       data,   &held_out,
                                                       folder, {{"model", "lookup\nwidth: 11"}, {"data", "drawn"}},
                                                       1} {
    data.vocabulary = held_out.vocabulary = tokens;
    held_out.seed = 4;
    held_out.count = 2;
  }
  std::vector<real> weights() const { return {params.values(), params.values() + params.flat_size()}; }
};

/// In a folder of its own, below which it is `run`.
struct NewRun : TemporaryFolder, Setup {
  explicit NewRun(int64_t tokens = 11, bool fresh_each_epoch = false)
      : Setup(TemporaryFolder::folder() / "run", tokens, fresh_each_epoch) {}
};

/// A case that has one.
struct OneRun {
  NewRun setup;
};

}  // namespace capstan::testing
