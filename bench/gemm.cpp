// Rates of gemm on the shapes of a training step and of the tiles inside mixers: OpenBLAS alone against oneDNN, which
// is what the program uses where it has it (shapes that stay with OpenBLAS show a ratio of 1).
//
//   bench_gemm [--rounds 15]
//
// Both take turns in one process; medians of GFLOP/s of all threads together, and the median [lowest, highest] of the
// ratios. Time is CPU time, which other programs on the machine disturb less; a thread's wait for another one counts.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ctime>

#include "bench/measure.hpp"
#include "core/array/array.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/products/gemm.hpp"
#include "core/products/gemm_backend.hpp"

using namespace capstan;

namespace {

struct Subject {
  std::string name;
  int64_t m, n, k;
  Transpose a_transpose = Transpose::no, b_transpose = Transpose::no;
  real beta = 0;
  bool tile = false;  // one product per thread inside a parallel region, instead of one product split among them
};

/// The three products of a linear layer over 4096 rows: value, gradient of the input, gradient of the weight.
void add_layer(std::vector<Subject>& subjects, int64_t in, int64_t out) {
  constexpr int64_t rows = 4096;
  const std::string name = fmt::format("{} -> {}", in, out);
  subjects.push_back({name + " y", rows, out, in, Transpose::no, Transpose::yes, 1});
  subjects.push_back({name + " dx", rows, in, out});
  subjects.push_back({name + " dW", out, in, rows, Transpose::yes, Transpose::no, 1});
}

std::vector<Subject> all_subjects() {
  std::vector<Subject> subjects;
  for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{
           {256, 256}, {256, 512}, {256, 768}, {256, 1024}, {1024, 256}, {512, 512}, {512, 2048}, {2048, 512}})
    add_layer(subjects, in, out);
  struct Tile {
    int64_t m, n, k;
  };
  const std::vector<Tile> tiles = {{64, 64, 64},   {128, 64, 128},  {128, 128, 64}, {64, 512, 64},
                                   {64, 512, 96},  {96, 512, 64},   {64, 96, 512},  {128, 64, 512},
                                   {64, 512, 128}, {128, 512, 128}, {64, 512, 512}, {128, 512, 512}};
  for (const Tile& t : tiles)
    for (const auto& [ta, tb, name] :
         {std::tuple{Transpose::no, Transpose::no, "tile A B"}, std::tuple{Transpose::no, Transpose::yes, "tile A B'"},
          std::tuple{Transpose::yes, Transpose::no, "tile A' B"}})
      subjects.push_back({name, t.m, t.n, t.k, ta, tb, 0, true});
  for (const int64_t rows : {1, 2, 4, 8})
    for (const auto& [in, out] : std::vector<std::pair<int64_t, int64_t>>{{256, 256}, {256, 1024}, {512, 2048}})
      subjects.push_back({fmt::format("decode {} -> {}", in, out), rows, out, in, Transpose::no, Transpose::yes, 1});
  return subjects;
}

double cpu_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// FLOP/s of `times` products in a row by one library. `c`: a result for each thread.
double rate(const Subject& s, GemmBackend backend, int64_t times, const Array& a, const Array& b,
            std::vector<Array>& c) {
  set_gemm_backend(backend);
  const MatrixView left{a.data(), s.a_transpose == Transpose::no ? s.k : s.m, s.a_transpose};
  const MatrixView right{b.data(), s.b_transpose == Transpose::no ? s.n : s.k, s.b_transpose};
  const auto run = [&](Array& out) {
    for (int64_t i = 0; i < times; ++i) gemm(s.m, s.n, s.k, left, right, out.mutable_data(), s.n, 1, s.beta);
  };
  const double start = cpu_seconds();
  if (s.tile) {
    parallel_units(threads(), [&](int64_t unit) { run(c[static_cast<size_t>(unit)]); });
  } else {
    run(c.front());
  }
  const double seconds = (cpu_seconds() - start) / threads();
  const int64_t products = times * (s.tile ? threads() : 1);
  return 2 * static_cast<double>(s.m * s.n * s.k * products) / seconds;
}

/// Prints one line of the table; with 0 rounds it only uses both libraries once.
void compare(const Subject& s, int64_t rounds) {
  const Array a(Shape{s.m, s.k}, 0.5f), b(Shape{s.k, s.n}, 0.25f);
  std::vector<Array> c;
  for (int i = 0; i < threads(); ++i) c.emplace_back(Shape{s.m, s.n}, 0.f);
  const int64_t times = std::max<int64_t>(1, 200'000'000 / (s.m * s.n * s.k * (s.m < 16 ? 10 : 1)));
  std::vector<double> openblas, onednn, ratios;
  for (int64_t round = -1; round < rounds; ++round) {
    const double by_openblas = rate(s, GemmBackend::openblas, times, a, b, c);
    const double by_onednn = rate(s, GemmBackend::onednn, times, a, b, c);
    if (round < 0) continue;
    openblas.push_back(by_openblas);
    onednn.push_back(by_onednn);
    ratios.push_back(by_onednn / by_openblas);
  }
  if (rounds == 0) return;
  const bench::Spread ratio = bench::spread_of(ratios);
  fmt::print("{:<20}{:>6}{:>6}{:>6}{:>12.0f}{:>10.0f}{:>24}\n", s.name, s.m, s.n, s.k,
             bench::spread_of(openblas).median / 1e9, bench::spread_of(onednn).median / 1e9,
             fmt::format("{:.2f} [{:.2f}, {:.2f}]", ratio.median, ratio.low, ratio.high));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  restart_with_best_settings(argv);
  int64_t rounds = 15;
  CLI::App cli{"Matrix products: OpenBLAS alone against oneDNN"};
  cli.add_option("--rounds", rounds);
  CLI11_PARSE(cli, argc, argv);
  const BlasInfo blas = blas_info();
  fmt::print("{} threads, {} ({} kernels), float products by {}\n", threads(), blas.version, blas.core,
             blas.float_products);
  if (gemm_backend() != GemmBackend::onednn) return 0;
  fmt::print("{:<20}{:>6}{:>6}{:>6}{:>12}{:>10}{:>24}\n", "product", "m", "n", "k", "OpenBLAS", "oneDNN", "ratio");
  const std::vector<Subject> subjects = all_subjects();
  // First everything once: kernels are made at their first use, and malloc learns which sizes come back.
  for (const bool measured : {false, true})
    for (const Subject& s : subjects) compare(s, measured ? rounds : 0);
  return 0;
}
