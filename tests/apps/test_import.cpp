// `capstan import`: weights of the public PyTorch modules give the outputs
// of the PyTorch twins (tests/parity/README.md).
#include <functional>

#include "core/base/error.hpp"
#include "nn/blocks/block.hpp"
#include "nn/systems/mixer_config.hpp"
#include "tests/apps/import_support.hpp"

namespace capstan::testing {
namespace {

/// (A, B, D) -> (B, A, D)
Array swap_first_axes(const Array& x) {
  Array out({x.dim(1), x.dim(0), x.dim(2)});
  for (int64_t a = 0; a < x.dim(0); ++a)
    for (int64_t b = 0; b < x.dim(1); ++b)
      std::copy_n(x.data() + (a * x.dim(1) + b) * x.dim(2), x.dim(2),
                  out.mutable_data() + (b * x.dim(0) + a) * x.dim(2));
  return out;
}

TEST_CASE("imported weights compute what the public modules compute") {
  struct Case {
    std::string name, source;
    bool time_first, causal;
  };
  const ImportFolder folder;
  for (const Case& c :
       {Case{"public_aft_full", "AFT_FULL", false, false}, Case{"public_aft_local", "AFTLocal", true, true}}) {
    INFO(c.name);
    const std::string imported = folder / "imported.safetensors";
    std::string printed;
    REQUIRE(capstan_command({"import", fixture(c.name), "-o", imported}, &printed) == exit_done);
    CHECK(printed.find(c.source) != std::string::npos);

    const SafetensorsFile io(fixture(c.name + "_io"));
    const Array x = c.time_first ? swap_first_axes(tensor(io, "x")) : tensor(io, "x");
    const Array y = c.time_first ? swap_first_axes(tensor(io, "y")) : tensor(io, "y");
    const SafetensorsFile file(imported);
    const auto config = load_config_text<ImportedConfig>(file.metadata().at("mixer"), "mixer");
    MixerShape shape;
    shape.width = x.dim(2);
    shape.max_length = file.at("position_bias").shape[0];
    shape.causal = c.causal;
    ParamStore params;
    const auto mixer = make_mixer(Scope(params, 1), shape, config.mixer);
    params.finalize();
    load_model(SafetensorsFile(imported), params);
    const Array mixed = mixer->forward(Var(x), Context::evaluation(x.dim(0), x.dim(1))).value();
    const double error = relative_error(mixed, y);
    MESSAGE(c.name, ": largest difference ", error, " of the largest output");
    CHECK(error <= 1e-5);
  }
}

TEST_CASE("Fastformer's imported weights compute what the public module computes, alone and with its projection") {
  const ImportFolder folder;
  const SafetensorsFile io(fixture("public_fastformer_io"));
  const Array x = tensor(io, "x");
  const std::vector<double> ids = io.at("segment_ids").to_doubles();
  const Segments segments(Ids({x.dim(0), x.dim(1)}, std::vector<int32_t>(ids.begin(), ids.end())));
  for (const bool whole : {true, false}) {
    const std::string imported = folder / "imported.safetensors";
    std::string printed;
    std::vector<std::string> words{"import", fixture("public_fastformer"), "-o", imported};
    if (!whole) words.insert(words.end(), {"--prefix", "self."});
    REQUIRE(capstan_command(words, &printed) == exit_done);
    CHECK(printed.find(whole ? "FastAttention of width 12, written" : "FastSelfAttention") != std::string::npos);
    const auto config = load_config_text<ImportedConfig>(SafetensorsFile(imported).metadata().at("mixer"), "mixer");
    CHECK(std::get<FastformerConfig>(config.mixer).heads == 4);
    ParamStore params;
    const auto mixer = make_mixer(Scope(params, 1), {x.dim(2), 1, false, 1}, config.mixer);
    params.finalize();
    load_model(SafetensorsFile(imported), params);
    const Array mixed = mixer->forward(Var(x), {segments}).value(), wanted = tensor(io, whole ? "y" : "y_self");
    double error = 0, largest = 0;  // over visible tokens: at padding the public module passes its query through
    for (int64_t i = 0; i < mixed.size(); ++i) {
      if (segments.ids()[i / x.dim(2)] == 0) continue;
      error = std::max(error, std::abs(static_cast<double>(mixed[i]) - static_cast<double>(wanted[i])));
      largest = std::max(largest, std::abs(static_cast<double>(wanted[i])));
    }
    MESSAGE("largest difference ", error / largest, " of the largest output");
    CHECK(error <= 1e-5 * largest);
  }
}

TEST_CASE("an import can be told what precedes the names, in the file and in the model") {
  const ImportFolder folder;
  const SafetensorsFile original(fixture("public_aft_full"));
  std::vector<std::vector<float>> values;
  std::vector<TensorToWrite> tensors;
  for (const FileTensor& t : original.tensors()) values.push_back(t.to_floats());
  for (size_t i = 0; i < values.size(); ++i) {
    const FileTensor& t = original.tensors()[i];
    tensors.push_back({"encoder.aft." + t.name, DType::f32, t.shape, values[i].data()});
  }
  const float other = 1;
  tensors.push_back({"head.weight", DType::f32, {1}, &other});
  write_safetensors(folder / "whole.safetensors", tensors);
  REQUIRE(capstan_command({"import", folder / "whole.safetensors", "--prefix", "encoder.aft.", "--into",
                           "blocks.2.mixer", "-o", folder / "out.safetensors"}) == exit_done);
  const SafetensorsFile file(folder / "out.safetensors");
  CHECK(file.find("blocks.2.mixer.to_qkv.weight") != nullptr);
  CHECK(file.tensors().size() == 5);
  // A module of other names beside it, and names that do not follow the prefix.
  CHECK_THROWS_WITH_AS(import_module(SafetensorsFile(folder / "whole.safetensors"), "", {}),
                       doctest::Contains("set --prefix to what precedes"), Error);
}

TEST_CASE("a file that is not quite the module is refused, and the tensor named") {
  struct Case {
    const char* file;
    std::function<void(Tensors&)> change;
    int64_t window;
    const char* says;
  };
  const std::vector<Case> cases = {
      {"public_aft_full", [](Tensors& t) { t.remove("fc_k.bias"); }, 0, "fc_k.bias"},
      {"public_aft_full",
       [](Tensors& t) {
         t.parts.push_back({"gain", {1}, {1}});
       },
       0, "gain does not belong"},
      {"public_aft_full", [](Tensors& t) { t.remove("fc_q.weight"); }, 0, "none of AFT_FULL"},
      {"public_aft_full", [](Tensors& t) { t.at("position_biases").shape = {529}; }, 0, "position_biases has shape"},
      {"public_aft_full",
       [](Tensors& t) {
         t.at("position_biases").shape = {1, 529};
       },
       0, "square"},
      {"public_aft_full", [](Tensors& t) { t.at("fc_v.weight").shape = {1225}; }, 0, "fc_v.weight has shape"},
      {"public_aft_local", [](Tensors& t) { t.remove("local_mask"); }, 0, "--window"},
      {"public_aft_local", [](Tensors&) {}, 4, "contradicts"},
      {"public_aft_local", [](Tensors& t) { t.remove("output.weight"); }, 0, "output.weight"},
      {"public_fastformer", [](Tensors& t) { t.remove("self.key_att.bias"); }, 0, "self.key_att.bias"},
      {"public_fastformer", [](Tensors& t) { t.remove("output.dense.weight"); }, 0, "output.dense.weight"},
      {"public_fastformer",
       [](Tensors& t) {
         t.at("self.transform.weight").shape = {9, 16};
       },
       0, "transform.weight has"},
      {"public_fastformer",
       [](Tensors& t) {
         t.parts.push_back({"self.value.bias", {1}, {1}});
       },
       0, "does not belong"},
  };
  const ImportFolder folder;
  for (const Case& c : cases) {
    INFO(c.file, ": ", c.says);
    Tensors tensors(c.file);
    c.change(tensors);
    tensors.write(folder / "changed.safetensors");
    CHECK_THROWS_WITH_AS(import_module(SafetensorsFile(folder / "changed.safetensors"), "", {c.window}),
                         doctest::Contains(c.says), Error);
  }
  Tensors without_mask("public_aft_local");
  without_mask.remove("local_mask");
  without_mask.write(folder / "changed.safetensors");
  const ImportedModule module = import_module(SafetensorsFile(folder / "changed.safetensors"), "", {7});
  CHECK(std::get<AftLocalConfig>(module.layer.mixer).window == 7);
}

TEST_CASE("a tensor without its rows of zeros is refused, since its file may be small and the tensor of any size") {
  const ImportFolder folder;
  const SafetensorsFile module(fixture("public_aft_full"));
  std::vector<TensorToWrite> tensors;
  for (const FileTensor& tensor : module.tensors())
    tensors.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
  const auto query = std::find_if(tensors.begin(), tensors.end(),
                                  [](const TensorToWrite& tensor) { return tensor.name == "fc_q.weight"; });
  REQUIRE(query != tensors.end());
  std::vector<unsigned char> bits(static_cast<size_t>((query->shape[0] + 7) / 8), 0);
  bits[0] = 1;
  query->stored = std::make_shared<const StoredRows>(query->shape[0], bits);
  write_safetensors(folder / "sparse.safetensors", tensors);
  CHECK_THROWS_WITH_AS(import_module(SafetensorsFile(folder / "sparse.safetensors"), "", {}),
                       doctest::Contains("fc_q.weight is stored without its rows of zeros"), Error);
}

}  // namespace
}  // namespace capstan::testing
