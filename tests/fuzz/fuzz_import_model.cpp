// Weights of published models.
#include "run/imports/import_module.hpp"
#include "tests/fuzz/tensor_files.hpp"

namespace capstan::fuzz {
namespace {

void import_whole_model(std::string_view input) {
  ImportHints hints;
  const size_t choice = choose(input, 4);
  hints.causal = choice % 2 == 1;
  hints.approximate = choice >= 2;
  hints.mask_token = 0;
  hints.heads = 2;
  hints.chunk = 4;
  hints.activation = ImportActivation::relu;
  const SafetensorsFile file("input", input);
  const ImportedModel model = import_model(file, "", hints);
  require(model.vocabulary > 0, "a model has a vocabulary");
  require(hints.approximate || model.approximations.empty(), "approximations are asked for");
  for (const auto& [name, tensor] : model.parameters) {
    int64_t size = 1;
    for (const int64_t extent : tensor.shape) size *= extent;
    require(size == static_cast<int64_t>(tensor.values.size()), "an imported tensor has as many values as its shape");
  }
}

std::string change_model(const std::string& input, size_t most, std::mt19937& random, const Change& change) {
  if (input.empty()) return "0" + change_tensor_file(input, most, random, change);
  return input.substr(0, 1) + change_tensor_file(input.substr(1), most, random, change);
}

const Registered import_model_target("import_model", import_whole_model, change_model);

}  // namespace
}  // namespace capstan::fuzz
