// Weights of published modules.
#include "run/imports/import_module.hpp"
#include "tests/fuzz/tensor_files.hpp"

namespace capstan::fuzz {
namespace {

void import_weights(std::string_view input) {
  ImportHints hints;
  const size_t choice = choose(input, 4);
  hints.window = choice == 1 ? 2 : 0;
  hints.length = choice == 2 ? 8 : 0;
  hints.chunk = choice >= 2 ? 4 : 0;
  hints.laplace = choice == 3;
  const SafetensorsFile file("input", input);
  const ImportedModule module = import_module(file, "", hints);
  require(module.width > 0, "a module has a width");
  for (const auto& [name, tensor] : module.parameters) {
    int64_t size = 1;
    for (const int64_t extent : tensor.shape) size *= extent;
    require(size == static_cast<int64_t>(tensor.values.size()), "an imported tensor has as many values as its shape");
  }
}

std::string change_weights(const std::string& input, size_t most, std::mt19937& random, const Change& change) {
  if (input.empty()) return "0" + change_tensor_file(input, most, random, change);
  return input.substr(0, 1) + change_tensor_file(input.substr(1), most, random, change);
}

const Registered import_target("import", import_weights, change_weights);

}  // namespace
}  // namespace capstan::fuzz
