// Every hot kernel and fused op, with Google Benchmark.
//
//   bench_kernels [--benchmark_filter=REGEX] [--benchmark_format=json] ...
//
// GB/s and GFLOP/s count what a call must move and compute at least; of_triad and of_sgemm are these over what the same
// process reaches with a = b + s c and with sgemm at 2048^3.
#include <benchmark/benchmark.h>

#include "bench/cases.hpp"
#include "bench/measure.hpp"
#include "core/machine/kernel_levels.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"

using namespace capstan;
using bench::Cost;

namespace {

/// What this process reaches at best: bytes and FLOP per second.
struct Machine {
  double triad, sgemm;
};

/// Times `call` and sets the counters; `cost_of` is called afterwards, when results have their sizes.
template <class Call, class CostOf>
void time_calls(benchmark::State& state, const Machine& machine, const Call& call, const CostOf& cost_of) {
  const double seconds = bench::seconds_of([&] {
    for (auto _ : state) call();
  });
  const Cost cost = cost_of();
  const auto per_second = [&](double per_call) { return per_call * static_cast<double>(state.iterations()) / seconds; };
  state.counters["GB/s"] = per_second(cost.bytes / 1e9);
  state.counters["of_triad"] = per_second(cost.bytes / machine.triad);
  if (cost.flops == 0) return;
  state.counters["GFLOP/s"] = per_second(cost.flops / 1e9);
  state.counters["of_sgemm"] = per_second(cost.flops / machine.sgemm);
}

void register_case(const std::string& name, const std::function<void(benchmark::State&)>& run) {
  benchmark::RegisterBenchmark(name.c_str(), [run](benchmark::State& state) { run(state); })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

double bytes_of(const Array& array) { return static_cast<double>(array.size()) * sizeof(float); }

void forward(benchmark::State& state, const Machine& machine, const bench::OpCase& op) {
  const TapePause pause;
  Array y;
  time_calls(
      state, machine, [&] { y = op.op(op.inputs).value(); },
      [&] {
        Cost cost{bytes_of(y), op.flops};
        for (const Var& input : op.inputs) cost.bytes += bytes_of(input.value());
        return cost;
      });
}

/// Counted as traffic: inputs are read twice and their gradients written; the result is written and its gradient read.
void forward_and_backward(benchmark::State& state, const Machine& machine, const bench::OpCase& op) {
  Array y;
  const auto call = [&] {
    TapeScope tape;
    const Var result = op.op(op.inputs);
    tape.tape().backward(std::vector<Var>{result}, {result.value()});
    for (const Var& input : op.inputs) input.clear_grad();
    y = result.value();
  };
  time_calls(state, machine, call, [&] {
    Cost cost{2 * bytes_of(y), 3 * op.flops};
    for (const Var& input : op.inputs) cost.bytes += 3 * bytes_of(input.value());
    return cost;
  });
}

}  // namespace

int main(int argc, char** argv) {
  restart_with_best_settings(argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;

  bench::sgemm_rate();  // the first product is slower: the library starts its threads
  const Machine machine{bench::triad_rate(), bench::sgemm_rate()};
  const BlasInfo blas = blas_info();
  benchmark::AddCustomContext("threads", std::to_string(threads()));
  benchmark::AddCustomContext("SIMD", kernel_level());
  benchmark::AddCustomContext("blas", blas.version + ", " + blas.core + " kernels, " + blas.threading);
  benchmark::AddCustomContext("float products", blas.float_products);
  benchmark::AddCustomContext("triad GB/s", std::to_string(machine.triad / 1e9));
  benchmark::AddCustomContext("sgemm GFLOP/s", std::to_string(machine.sgemm / 1e9));

  for (const bench::KernelCase& kernel : bench::kernel_cases())
    register_case("kernel/" + kernel.name, [machine, kernel](benchmark::State& state) {
      time_calls(state, machine, kernel.run, [&] { return kernel.cost; });
    });
  for (const bench::OpCase& op : bench::op_cases()) {
    register_case("op/" + op.name, [machine, op](benchmark::State& state) { forward(state, machine, op); });
    register_case("op/" + op.name + "/with backward",
                  [machine, op](benchmark::State& state) { forward_and_backward(state, machine, op); });
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
