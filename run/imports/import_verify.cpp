#include "run/imports/import_verify.hpp"

#include <algorithm>
#include <cmath>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/io/safetensors.hpp"
#include "nn/systems/make_mixer.hpp"

namespace capstan {
namespace {

/// (A, B, D) -> (B, A, D)
Array swap_first_axes(const Array& x) {
  Array out(Shape{x.dim(1), x.dim(0), x.dim(2)});
  for (int64_t a = 0; a < x.dim(0); ++a)
    for (int64_t b = 0; b < x.dim(1); ++b)
      std::copy_n(x.data() + (a * x.dim(1) + b) * x.dim(2), x.dim(2),
                  out.mutable_data() + (b * x.dim(0) + a) * x.dim(2));
  return out;
}

Array read(const SafetensorsFile& file, const std::string& name, const ImportedModule& module) {
  const FileTensor& tensor = file.at(name);
  if (tensor.shape.size() != 3 || tensor.shape[2] != module.width || tensor.size == 0)
    throw Error(fmt::format("{}: {} has shape {}; expected ({}, {})", file.path(), name, to_string(Shape(tensor.shape)),
                            module.time_first ? "time, batch" : "batch, time", module.width));
  Array value{Shape(tensor.shape)};
  tensor.copy_to(value.mutable_data());
  return module.time_first ? swap_first_axes(value) : value;
}

void fill(ParamStore& params, const ImportedTensors& tensors, const std::string& prefix) {
  for (const auto& [name, tensor] : tensors) {
    const Param& param = params.find(prefix + name);
    if (param.var.shape().to_vector() != tensor.shape)
      throw Error(fmt::format("import: {} has shape {}, its mixer needs {}", name, to_string(Shape(tensor.shape)),
                              param.var.shape()));
    std::copy(tensor.values.begin(), tensor.values.end(), params.values() + param.offset);
  }
}

}  // namespace

double verify_import(const ImportedModule& module, const std::string& path, bool causal) {
  const SafetensorsFile file(path);
  const Array x = read(file, "x", module), y = read(file, "y", module);
  if (x.shape() != y.shape()) throw Error(fmt::format("{}: x has shape {}, y has {}", path, x.shape(), y.shape()));
  if (module.max_length > 0 && x.dim(1) > module.max_length)
    throw Error(fmt::format("{}: {} tokens are more than the {} of the module", path, x.dim(1), module.max_length));
  const TapePause no_tape;
  ParamStore params;
  const MixerShape shape{module.width, std::max<int64_t>(module.max_length, 1), causal, 1};
  const Context context = Context::evaluation(x.dim(0), x.dim(1));
  const auto output = [&] {
    if (!module.is_block) {
      const auto mixer = make_mixer(Scope(params, 1), shape, module.layer.mixer);
      params.finalize();
      fill(params, module.parameters, "");
      return mixer->forward(Var(x), context).value();
    }
    const Block block(Scope(params, 1), shape, module.layer, 0);
    params.finalize();
    fill(params, module.parameters, "mixer.");
    fill(params, module.block, "");
    return block.forward(Var(x), context).value();
  }();
  double difference = 0, largest = 0;
  for (int64_t i = 0; i < y.size(); ++i) {
    const double wanted = static_cast<double>(y[i]), found = static_cast<double>(output[i]);
    if (!std::isfinite(wanted) || !std::isfinite(found)) return INFINITY;
    difference = std::max(difference, std::abs(wanted - found));
    largest = std::max(largest, std::abs(wanted));
  }
  return largest > 0 ? difference / largest : difference;
}

}  // namespace capstan
