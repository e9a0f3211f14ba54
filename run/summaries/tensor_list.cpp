// Reads one tensor after the other. tests/cli/runs/test_commands.cpp.
#include "run/summaries/tensor_list.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>
#include <xtensor-blas/xlinalg.hpp>
#include <xtensor/xadapt.hpp>

#include "core/array/shape.hpp"
#include "core/io/safetensors.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

std::string line_of(const FileTensor& tensor) {
  std::vector<double> stored = tensor.without_zeros().to_doubles();  // only the rows that the file has
  const bool all_stored = !stored.empty() && static_cast<int64_t>(stored.size()) == tensor.size;
  if (!all_stored) stored.push_back(0);
  const auto values = xt::adapt(stored);
  const double rms = xt::linalg::norm(values) / std::sqrt(std::max(1.0, static_cast<double>(tensor.size)));
  return fmt::format("{:<48} {:<5} {:<18} rms {:<10.4g} [{:.4g}, {:.4g}]\n", tensor.name, to_string(tensor.dtype),
                     to_string(Shape(tensor.shape)), rms, xt::amin(values)(), xt::amax(values)());
}

}  // namespace

void print_tensors(const std::string& path, std::ostream& out) {
  const SafetensorsFile file(path);
  const OneThreadProducts one_thread;  // the norms are OpenBLAS's, of the same bits on any number of threads
  out << path << '\n';
  for (const FileTensor& tensor : file.tensors()) out << line_of(tensor);
  for (const auto& [key, value] : file.metadata()) out << fmt::format("metadata {}: {}\n", key, value);
}

}  // namespace capstan
