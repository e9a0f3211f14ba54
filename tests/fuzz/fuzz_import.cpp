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
  require_whole(module);
}

const Registered import_target("import", import_weights, change_behind_choice);

}  // namespace
}  // namespace capstan::fuzz
