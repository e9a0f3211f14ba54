// Each kernel alone, over arrays that stay in place between calls. The traffic of a case counts each array once for
// each time that it must be read or written, as traffic(arrays, elements).
#include <algorithm>
#include <memory>

#include "bench/cases.hpp"
#include "core/base/random.hpp"
#include "core/fused/kernels/kernels.hpp"
#include "core/kernels/column_sums.hpp"
#include "core/kernels/kernels.hpp"
#include "core/kernels/optimizer.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/gemm.hpp"
#include "nn/systems/aft/kernels/scan.hpp"

namespace capstan::bench {
namespace {

constexpr int64_t batch = 8, length = 512, width = 256, hidden = 4 * width, rows = batch * length, vocabulary = 256;
constexpr int64_t parameters = 4 << 20;

/// Bytes of `count` times `numbers` floats.
double traffic(double count, int64_t numbers) { return count * static_cast<double>(numbers) * sizeof(float); }

/// Work memory of normal numbers times `scale`, which lives until the program ends.
float* scratch(const Shape& shape, double scale = 1) {
  static std::vector<std::unique_ptr<Array>> arrays;
  arrays.push_back(std::make_unique<Array>(normal_array(shape, scale)));
  return arrays.back()->mutable_data();
}

/// The three products of a linear layer in -> out over all rows.
void add_products(std::vector<KernelCase>& cases, int64_t in, int64_t out) {
  const float *x = scratch({rows, in}), *w = scratch({out, in}), *dy = scratch({rows, out});
  float *y = scratch({rows, out}), *dx = scratch({rows, in}), *dw = scratch({out, in});
  const double flops = 2.0 * static_cast<double>(rows * in * out);
  const double bytes = traffic(1, rows * in + out * in + rows * out);
  const std::string name = "gemm " + std::to_string(in) + " to " + std::to_string(out);
  cases.push_back({name + " y = x W^T", {bytes, flops}, [=] {
                     gemm(rows, out, in, {x, in}, {w, in, Transpose::yes}, y, out);
                   }});
  cases.push_back({name + " dx = dy W", {bytes, flops}, [=] { gemm(rows, in, out, {dy, out}, {w, in}, dx, in); }});
  cases.push_back({name + " dW += dy^T x", {bytes, flops}, [=] {
                     gemm(out, in, rows, {dy, out, Transpose::yes}, {x, in}, dw, in, 1, 1);
                   }});
}

void add_norms(std::vector<KernelCase>& cases) {
  const float *x = scratch({rows, width}), *dy = scratch({rows, width}), *gain = scratch({width}),
              *bias = scratch({width});
  float *y = scratch({rows, width}), *dx = scratch({rows, width}), *mean = scratch({rows}), *rstd = scratch({rows});
  float *dgain = scratch({width}), *dbias = scratch({width});
  for (const auto kind : {kernels::NormForm::centred, kernels::NormForm::rms}) {
    const std::string name = kind == kernels::NormForm::centred ? "layer norm" : "rms norm";
    const kernels::NormPass pass{kind, rows, width, gain, 1, 1e-5};
    float* const mean_or_none = kind == kernels::NormForm::centred ? mean : nullptr;
    cases.push_back(
        {name, {traffic(2, rows * width)}, [=] { kernels::norm_forward(pass, bias, x, y, mean_or_none, rstd); }});
    cases.push_back({name + " backward", {traffic(3, rows * width)}, [=] {
                       kernels::norm_backward(pass, x, mean_or_none, rstd, dy, dx, {dgain}, {dbias}, nullptr);
                     }});
  }
}

void add_activations(std::vector<KernelCase>& cases) {
  const float *pre = scratch({rows, hidden}), *dy = scratch({rows, hidden}), *bias = scratch({hidden});
  float *out = scratch({rows, hidden}), *dpre = scratch({rows, hidden}), *dbias = scratch({hidden});
  for (const auto& [activation, name] : enum_names(Activation{})) {
    if (activation == Activation::none) continue;
    const Activation kind = activation;
    cases.push_back({std::string(name) + " with bias", {traffic(2, rows * hidden)}, [=] {
                       kernels::activation_forward({kind, rows, hidden}, pre, bias, out);
                     }});
    cases.push_back({std::string(name) + " backward, recomputed", {traffic(4, rows * hidden)}, [=] {
                       kernels::activation_backward({kind, rows, hidden}, pre, bias, dy, dpre, out, {dbias});
                     }});
  }
}

void add_aft_scan(std::vector<KernelCase>& cases) {
  const float *qkv = scratch({rows, 3 * width}), *dy = scratch({rows, width});
  float *y = scratch({rows, width}), *gate = scratch({rows, width}), *average = scratch({rows, width});
  float *dqkv = scratch({rows, 3 * width}), *state = scratch({batch, 5, width});
  const auto input = [=](int64_t document) {
    const float* const at = qkv + document * length * 3 * width;
    return kernels::AftInput{at, at + width, at + 2 * width, 3 * width};
  };
  const auto cleared = [=](int64_t document) {
    float* const own = state + document * 5 * width;
    const kernels::AftState running{own, own + width, own + 2 * width};
    kernels::aft_state_clear(running, width, width);
    return running;
  };
  cases.push_back({"aft scan", {traffic(4, rows * width)}, [=] {
                     parallel_units(batch, [=](int64_t document) {
                       kernels::aft_scan(input(document), length, width, cleared(document),
                                         y + document * length * width, width);
                     });
                   }});
  cases.push_back(
      {"aft scan backward", {traffic(11, rows * width)}, [=] {
         parallel_units(batch, [=](int64_t document) {
           float* const d = dqkv + document * length * 3 * width;
           float* const carried = state + (document * 5 + 3) * width;
           std::fill_n(carried, 2 * width, 0.0F);
           const int64_t begin = document * length * width;
           kernels::aft_gates(input(document), length, width, cleared(document), gate + begin, average + begin);
           kernels::aft_scan_backward(input(document), length, width, dy + begin, width, gate + begin, average + begin,
                                      {carried, carried + width}, {d, d + width, d + 2 * width, 3 * width});
         });
       }});
}

void add_cross_entropy(std::vector<KernelCase>& cases) {
  float *const logits = scratch({rows, vocabulary}), *const loss = scratch({rows});
  static const std::vector<int32_t> targets(static_cast<size_t>(rows), 65);
  const kernels::CrossEntropyPass pass{rows, vocabulary, targets.data(), -1, 0};
  cases.push_back({"cross entropy in place", {traffic(2, rows * vocabulary)}, [=] {
                     kernels::cross_entropy_in_place(pass, logits, loss);
                   }});
}

void add_flat_passes(std::vector<KernelCase>& cases) {
  float *values = scratch({parameters}), *grads = scratch({parameters}, 1e-3), *m = scratch({parameters}, 0),
        *v = scratch({parameters}, 0);
  cases.push_back({"adamw", {traffic(8, parameters)}, [=] {
                     kernels::adamw({values, grads, parameters, parameters, 1}, m, v, {1e-4, 0.9, 0.95, 1e-8, 0.1, 1});
                   }});
  cases.push_back({"lion", {traffic(6, parameters)}, [=] {
                     kernels::lion({values, grads, parameters, parameters, 1}, m, {1e-4, 0.9, 0.99, 1});
                   }});
  cases.push_back({"sum of squares", {traffic(1, parameters)}, [=] { kernels::sum_of_squares(values, parameters); }});
  cases.push_back({"copy", {traffic(2, parameters)}, [=] { kernels::copy(grads, values, parameters); }});
  cases.push_back({"add into", {traffic(3, parameters)}, [=] { kernels::add_into(grads, values, parameters); }});
  const float* const x = scratch({rows, width});
  float* const sums = scratch({width});
  cases.push_back({"column sums", {traffic(1, rows * width)}, [=] { kernels::column_sums(x, {sums}, rows, width); }});
}

}  // namespace

Array normal_array(const Shape& shape, double scale) {
  RandomStream random({7, 9});
  Array array(shape);
  std::generate_n(array.mutable_data(), array.size(), [&] { return static_cast<float>(scale * random.normal()); });
  return array;
}

std::vector<KernelCase> kernel_cases() {
  std::vector<KernelCase> cases;
  for (const int64_t model_width : {int64_t{256}, int64_t{512}}) {
    add_products(cases, model_width, model_width);
    add_products(cases, model_width, 3 * model_width);
    add_products(cases, model_width, 4 * model_width);
    add_products(cases, 4 * model_width, model_width);
  }
  add_norms(cases);
  add_activations(cases);
  add_aft_scan(cases);
  add_cross_entropy(cases);
  add_flat_passes(cases);
  return cases;
}

}  // namespace capstan::bench
