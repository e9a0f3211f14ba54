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
  require_whole(model);
}

const Registered import_model_target("import_model", import_whole_model, change_behind_choice);

}  // namespace
}  // namespace capstan::fuzz
