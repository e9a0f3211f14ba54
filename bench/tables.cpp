#include "bench/tables.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <vector>

#include "bench/measure.hpp"
#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"

namespace capstan::bench {
namespace {

void print_machine() {
  const BlasInfo blas = blas_info();
  sgemm_rate();  // the first product is slower: the library starts its threads
  fmt::print("{} threads, SIMD {}, products by {}, {} ({} kernels, {} threading), sgemm 2048^3 {:.0f} GFLOP/s\n",
             threads(), kernel_level(), blas.float_products, blas.version, blas.core, blas.threading,
             sgemm_rate() / 1e9);
}

std::string range(const Spread& spread, double factor, int digits) {
  return fmt::format("[{:.{}f}, {:.{}f}]", factor * spread.low, digits, factor * spread.high, digits);
}

/// row(setup) for each system of the options.
template <class Row>
void for_systems(const TableOptions& options, const Row& row) {
  for (const std::string& system : options.systems.empty() ? system_names() : options.systems) {
    Setup setup = options.setup;
    setup.system = system;
    row(setup);
    std::fflush(stdout);
  }
}

/// Two subjects, `repeats` units each, taking turns: the second's time per round and its ratio to the first's.
struct PairedTimes {
  Spread seconds, ratio;
};
PairedTimes compare(Subject& first, Subject& second, int64_t repeats, int64_t rounds) {
  first.run(repeats), second.run(repeats);
  std::vector<double> ratios, times;
  for (int64_t round = 0; round < rounds; ++round) {
    const double first_seconds = first.run(repeats);
    times.push_back(second.run(repeats));
    ratios.push_back(times.back() / first_seconds);
  }
  return {spread_of(times), spread_of(ratios)};
}

}  // namespace

void print_steps(const TableOptions& options) {
  print_machine();
  fmt::print("{:<12}{:>10}{:>20}{:>12}{:>10}{:>24}{:>10}\n", "system", "ms/step", "", "tokens/s", "GFLOP",
             "share of sgemm", "RSS MB");
  for_systems(options, [&](Setup setup) {
    setup.work = Work::step;
    const auto subject = make_subject(setup);
    take_peak_bytes();
    subject->run(2);
    const int64_t peak = take_peak_bytes();
    std::vector<double> times, shares;
    for (int64_t round = 0; round < options.rounds; ++round) {
      const double before = sgemm_rate(), time = subject->run(1), after = sgemm_rate();
      times.push_back(time);
      shares.push_back(subject->flops() / time / ((before + after) / 2));
    }
    const Spread time = spread_of(times), share = spread_of(shares);
    fmt::print("{:<12}{:>10.1f}{:>20}{:>12.0f}{:>10.1f}{:>8.3f}{:>16}{:>10.0f}\n", setup.system, 1e3 * time.median,
               range(time, 1e3, 1), subject->tokens() / time.median, subject->flops() / 1e9, share.median,
               range(share, 1, 3), static_cast<double>(peak) / 1e6);
  });
}

void print_length(const TableOptions& options) {
  constexpr int64_t tokens = 16384;
  print_machine();
  for_systems(options, [&](Setup setup) {
    setup.work = Work::step;
    const auto of_length = [&](int64_t length) {
      setup.batch = tokens / length;
      setup.length = length;
      return make_subject(setup);
    };
    const auto longest = of_length(tokens);
    for (const int64_t length : {256, 1024}) {
      const PairedTimes result = compare(*of_length(length), *longest, 1, options.rounds);
      fmt::print("{:<12} T = 16384: {:.2f} us/token; over T = {}: {:.3f} {}\n", setup.system,
                 1e6 * result.seconds.median / tokens, length, result.ratio.median, range(result.ratio, 1, 3));
    }
  });
}

namespace {

/// Times tokens after position 256. Decoding in float32, in bf16, and reading either kind of weights once take turns.
void print_weights(Setup setup, int64_t rounds) {
  constexpr int64_t tokens = 64;
  setup.length = 256;
  setup.max_length = setup.length + tokens;
  struct Form {
    const char* name;
    std::unique_ptr<Subject> subject;
    std::vector<double> times, over_reading;
  };
  std::vector<Form> forms;
  for (const bool bf16 : {false, true}) {
    setup.bf16 = bf16;
    forms.push_back({bf16 ? "bf16" : "float32", make_subject(setup), {}, {}});
    forms.back().subject->run(tokens);  // packs the weights
  }
  for (int64_t round = 0; round < rounds; ++round) {
    for (Form& form : forms) {
      form.times.push_back(form.subject->run(tokens) / tokens);
      form.over_reading.push_back(form.times.back() /
                                  read_seconds(form.subject->weights(), form.subject->weights_read()));
    }
  }
  for (const Form& form : forms) {
    const Spread time = spread_of(form.times), over = spread_of(form.over_reading);
    fmt::print("{:<12} {:<8}{:>8.0f} us/token {}; over reading {:.1f} MB of weights once: {:.2f} {}\n", setup.system,
               form.name, 1e6 * time.median, range(time, 1e6, 0),
               4e-6 * static_cast<double>(form.subject->weights_read()), over.median, range(over, 1, 2));
  }
}

/// Times steps of many streams, from `position` on: 1, 8 and, after short texts, 64 of them take turns, each beside
/// reading as many bytes as the weights and the states have.
void print_streams(Setup setup, int64_t position, int64_t rounds) {
  constexpr int64_t tokens = 32, max_read = 1 << 16;  // reading more before each round takes minutes
  setup.length = position;
  setup.max_length = setup.length + tokens;
  struct Streams {
    std::unique_ptr<Subject> subject;
    std::vector<float> numbers;
    std::vector<double> times, over_one, over_reading, shares;
  };
  std::vector<Streams> counts;
  for (const int64_t count : {1, 8, 64}) {
    if (count * position > max_read) break;
    setup.batch = count;
    auto subject = make_subject(setup);
    subject->run(tokens);  // packs the weights
    const auto numbers = static_cast<size_t>(subject->weights_read() + subject->states_read());
    counts.push_back({std::move(subject), std::vector<float>(numbers), {}, {}, {}, {}});
  }
  for (int64_t round = 0; round < rounds; ++round) {
    for (Streams& streams : counts) {
      const double before = sgemm_rate(), time = streams.subject->run(tokens) / tokens, after = sgemm_rate();
      streams.times.push_back(time);
      streams.over_one.push_back(streams.subject->tokens() * counts[0].times.back() / time);
      streams.over_reading.push_back(
          time / read_seconds(streams.numbers.data(), static_cast<int64_t>(streams.numbers.size())));
      streams.shares.push_back(streams.subject->flops() / time / ((before + after) / 2));
    }
  }
  for (const Streams& streams : counts) {
    const Spread time = spread_of(streams.times), over = spread_of(streams.over_one),
                 reading = spread_of(streams.over_reading), share = spread_of(streams.shares);
    fmt::print(
        "{:<12} {:>2.0f} streams at {}{} {:>7.0f} us/step, {:.0f} tokens/s; over one stream {:.2f} {}; "
        "over reading {:.1f} MB of weights and states once {:.2f} {}; share of sgemm {:.2f} {}\n",
        setup.system, streams.subject->tokens(), position, setup.bf16 ? ", bf16" : "", 1e6 * time.median,
        streams.subject->tokens() / time.median, over.median, range(over, 1, 2),
        4e-6 * static_cast<double>(streams.numbers.size()), reading.median, range(reading, 1, 2), share.median,
        range(share, 1, 2));
    std::fflush(stdout);
  }
}

}  // namespace

void print_decode(const TableOptions& options) {
  constexpr int64_t tokens = 64;
  constexpr std::pair<int64_t, int64_t> positions[] = {{256, 4096}, {512, 8192}};
  print_machine();
  for_systems(options, [&](Setup setup) {
    setup.work = Work::decode;
    setup.batch = 1;
    print_weights(setup, options.rounds);
    for (const bool bf16 : {false, true}) {
      Setup rounded = setup;
      rounded.bf16 = bf16;
      for (const int64_t position : {256, 8192}) print_streams(rounded, position, options.rounds);
    }
    setup.max_length = positions[1].second + tokens;
    const auto at_position = [&](int64_t position) {
      setup.length = position;
      return make_subject(setup);
    };
    for (const auto& [near, far] : positions) {
      const auto early = at_position(near), late = at_position(far);
      const PairedTimes result = compare(*early, *late, tokens, options.rounds);
      fmt::print("{:<12} position {}: {:.0f} us/token; over position {}: {:.3f} {}\n", setup.system, far,
                 1e6 * result.seconds.median / tokens, near, result.ratio.median, range(result.ratio, 1, 3));
    }
  });
}

}  // namespace capstan::bench
