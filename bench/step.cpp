// A whole training step of a byte-level language model, and one decoded token, against what the machine can do.
//
//   bench_step [--width 256] [--layers 4] [--batch 8] [--length 512] [--rounds 9] [--micro 0] [MIXER ...]
//   bench_step --scaling    time per token from T = 256 to T = 16384 at B T = 16384
//   bench_step --decode     time per token at position 256 and 4096
//
// Useful FLOPs: 6 x weights of matrix products x tokens, plus three times the mixing; recomputation does not count. The
// yardstick is sgemm at 2048^3 in the same process, measured between the rounds; medians, with [lowest, highest].
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>

#include "core/gemm.hpp"
#include "core/machine.hpp"
#include "core/parallel.hpp"
#include "core/pool.hpp"
#include "core/tape.hpp"
#include "models/language_model.hpp"
#include "models/summary.hpp"
#include "train/micro_batches.hpp"
#include "train/optimizer.hpp"
#include "train/reporter.hpp"

using namespace capstan;

namespace {

struct BenchOptions {
  int64_t width = 256, layers = 4, batch = 8, length = 512, rounds = 9, micro = 0;
  bool scaling = false, decode = false;
  std::vector<std::string> mixers = {"aft-simple", "aft-local", "aft-conv", "aft-full"};
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Spread {
  double median, low, high;
};
Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values.front(), values.back()};
}

/// FLOP/s of sgemm at 2048^3.
double sgemm_rate() {
  constexpr int64_t n = 2048;
  static const Array a(Shape{n, n}, 0.5f), b(Shape{n, n}, 0.25f);
  static Array c(Shape{n, n});
  return 2.0 * n * n * n / seconds_of([&] { gemm(n, n, n, {a.data(), n}, {b.data(), n}, c.mutable_data(), n); });
}

MixerConfig mixer_called(const std::string& name) {
  if (name == AftSimpleConfig::type_name) return AftSimpleConfig{};
  if (name == AftLocalConfig::type_name) return AftLocalConfig{};
  if (name == AftConvConfig::type_name) return AftConvConfig{};
  if (name == AftFullConfig::type_name) return AftFullConfig{};
  throw std::invalid_argument("bench_step: unknown mixer " + name);
}

/// A language model over bytes with random text to train on.
class Subject {
 public:
  Subject(const BenchOptions& options, const std::string& mixer, int64_t batch, int64_t length)
      : batch_(batch), length_(length), micro_(options.micro) {
    LanguageModelConfig config;
    config.width = options.width;
    config.max_length = length;
    config.positions = Positions::learned;
    LayerConfig layer;
    layer.mixer = mixer_called(mixer);
    layer.repeat = options.layers;
    config.layers = {layer};
    model_ = std::make_unique<LanguageModel>(Scope(store_, 1), config, vocabulary);
    store_.finalize();
    optimizer_ = std::make_unique<Optimizer>(AdamWConfig{}, store_);
    RandomStream random({7, 7});
    const auto ids = [&] {
      Ids result(Shape{batch, length});
      for (int64_t i = 0; i < batch * length; ++i)
        result.mutable_data()[i] = static_cast<int32_t>(random.below(vocabulary));
      return result;
    };
    data_ = {ids(), Ids(Shape{batch, length}, 1), ids(), Ids(Shape{batch}, 0)};
  }

  void step() {
    for (const Batch& piece : split_rows(data_, micro_)) {
      TapeScope tape;
      const Context context{Segments(piece.segment_ids), true, 1, piece.examples};
      tape.backward(model_->loss(piece, context).sum);
    }
    const double scale = 1.0 / static_cast<double>(batch_ * length_);
    const double norm = gradient_norm(store_, scale);
    optimizer_->step(store_, scale * clip_factor(norm, 1), 1e-4);
  }

  double step_flops() const {
    return 3 * summarize(*model_, store_, length_).flops() * static_cast<double>(batch_ * length_);
  }
  const LanguageModel& model() const { return *model_; }

 private:
  static constexpr int64_t vocabulary = 256;
  int64_t batch_, length_, micro_;
  ParamStore store_;
  std::unique_ptr<LanguageModel> model_;
  std::unique_ptr<Optimizer> optimizer_;
  Batch data_;
};

void bench_steps(const BenchOptions& options) {
  fmt::print("{:<12}{:>10}{:>20}{:>12}{:>10}{:>24}{:>10}\n", "mixer", "ms/step", "", "tokens/s", "GFLOP",
             "share of sgemm", "RSS MB");
  for (const std::string& mixer : options.mixers) {
    Subject subject(options, mixer, options.batch, options.length);
    for (int i = 0; i < 2; ++i) subject.step();
    std::vector<double> times, shares;
    for (int64_t round = 0; round < options.rounds; ++round) {
      const double before = sgemm_rate(), time = seconds_of([&] { subject.step(); }), after = sgemm_rate();
      times.push_back(time);
      shares.push_back(subject.step_flops() / time / ((before + after) / 2));
    }
    const Spread time = spread_of(times), share = spread_of(shares);
    fmt::print("{:<12}{:>10.1f}{:>20}{:>12.0f}{:>10.1f}{:>8.3f}{:>16}{:>10.0f}\n", mixer, 1e3 * time.median,
               fmt::format("[{:.1f}, {:.1f}]", 1e3 * time.low, 1e3 * time.high),
               static_cast<double>(options.batch * options.length) / time.median, subject.step_flops() / 1e9,
               share.median, fmt::format("[{:.3f}, {:.3f}]", share.low, share.high),
               static_cast<double>(peak_resident_bytes()) / 1e6);
    std::fflush(stdout);
  }
}

void bench_scaling(const BenchOptions& options) {
  constexpr int64_t tokens = 16384;
  for (const std::string& mixer : options.mixers) {
    Subject shorter(options, mixer, tokens / 256, 256), longer(options, mixer, 1, tokens);
    shorter.step();
    longer.step();
    std::vector<double> ratios, times;
    for (int64_t round = 0; round < options.rounds; ++round) {
      const double one = seconds_of([&] { shorter.step(); });
      times.push_back(seconds_of([&] { longer.step(); }));
      ratios.push_back(times.back() / one);
    }
    const Spread ratio = spread_of(ratios), time = spread_of(times);
    fmt::print("{:<12} T = 16384: {:.2f} us/token; over T = 256: {:.3f} [{:.3f}, {:.3f}]\n", mixer,
               1e6 * time.median / tokens, ratio.median, ratio.low, ratio.high);
    std::fflush(stdout);
  }
}

void bench_decode(const BenchOptions& options) {
  constexpr int64_t near = 256, far = 4096, tokens = 64;
  for (const std::string& mixer : options.mixers) {
    const Subject subject(options, mixer, 1, far + 2 * tokens * (options.rounds + 1));
    const Ids token(Shape{1}, 65);
    const auto at = [&](int64_t position) {
      auto state = std::make_unique<DecodeState>(subject.model().make_state(1));
      subject.model().prefill(Ids(Shape{1, position}, 65), *state);
      return state;
    };
    const auto early = at(near), late = at(far);
    const auto run = [&](DecodeState& state) {
      return seconds_of([&] {
        for (int64_t i = 0; i < tokens; ++i) subject.model().step(token, state);
      });
    };
    std::vector<double> ratios, times;
    run(*early), run(*late);
    for (int64_t round = 0; round < options.rounds; ++round) {
      const double one = run(*early);
      times.push_back(run(*late));
      ratios.push_back(times.back() / one);
    }
    const Spread ratio = spread_of(ratios), time = spread_of(times);
    fmt::print("{:<12} position 4096: {:.0f} us/token; over position 256: {:.3f} [{:.3f}, {:.3f}]\n", mixer,
               1e6 * time.median / tokens, ratio.median, ratio.low, ratio.high);
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  restart_with_best_settings(argv);
  BenchOptions options;
  CLI::App cli{"Training steps and decoding against sgemm"};
  cli.add_option("--width", options.width);
  cli.add_option("--layers", options.layers);
  cli.add_option("--batch", options.batch);
  cli.add_option("--length", options.length);
  cli.add_option("--rounds", options.rounds);
  cli.add_option("--micro", options.micro, "tokens per micro-batch");
  cli.add_flag("--scaling", options.scaling);
  cli.add_flag("--decode", options.decode);
  cli.add_option("mixers", options.mixers);
  CLI11_PARSE(cli, argc, argv);
  const BlasInfo blas = blas_info();
  fmt::print("{} threads, {} ({} kernels, {} threading), sgemm 2048^3 {:.0f} GFLOP/s\n", threads(), blas.version,
             blas.core, blas.threading, (sgemm_rate(), sgemm_rate()) / 1e9);
  if (options.scaling) {
    bench_scaling(options);
  } else if (options.decode) {
    bench_decode(options);
  } else {
    bench_steps(options);
  }
  return 0;
}
