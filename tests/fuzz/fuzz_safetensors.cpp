// core/io/safetensors. The mutator changes the header as JSON, the data as bytes, and makes the checksum right again.

#include "core/io/json.hpp"
#include "core/io/safetensors.hpp"
#include "tests/fuzz/tensor_files.hpp"

namespace capstan::fuzz {
namespace {

void read_safetensors(std::string_view input) {
  const SafetensorsFile file("input", input);
  for (const FileTensor& tensor : file.tensors()) {
    require(file.find(tensor.name) == &tensor, "a tensor is found by its name");
    const std::vector<float> floats = tensor.to_floats();
    require(floats.size() == tensor.to_doubles().size(), "float and double have the same elements");
  }
}

const Registered safetensors_target("safetensors", read_safetensors, change_tensor_file);

}  // namespace
}  // namespace capstan::fuzz
