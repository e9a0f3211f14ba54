// `capstan import` of GAU and FLASH: blocks with imported weights compute what twins of the public modules compute
// (tests/parity/systems/public_gated.py), norm and residual included.
#include <functional>

#include "core/base/error.hpp"
#include "nn/blocks/block.hpp"
#include "tests/apps/import_support.hpp"

namespace capstan::testing {
namespace {

/// The branch of an imported block, and that of the twin.
struct Branches {
  Array ours, wanted;
};

Branches imported_branches(const std::string& name, const std::string& output, bool causal,
                           const std::vector<std::string>& hints) {
  const ImportFolder folder;
  const std::string imported = folder / "imported.safetensors";
  std::vector<std::string> words{"import", fixture(name), "--into", "mixer", "-o", imported};
  words.insert(words.end(), hints.begin(), hints.end());
  REQUIRE(capstan_command(words) == exit_done);
  LayerConfig layer;
  layer.mixer = load_config_text<ImportedConfig>(SafetensorsFile(imported).metadata().at("mixer"), "mixer").mixer;
  layer.feed_forward.type = FeedForwardKind::none;
  ParamStore params;
  const SafetensorsFile io(fixture(name + "_io"));
  const Array x = tensor(io, "x");
  const Block block(Scope(params, 1), {x.dim(2), 1, causal, 1}, layer, 0);
  params.finalize();
  load_model(SafetensorsFile(imported), params);
  const Array y = tensor(io, output);
  Array ours = block.forward(Var(x), Context::evaluation(x.dim(0), x.dim(1))).value().clone(), wanted = y.clone();
  for (int64_t i = 0; i < x.size(); ++i) {
    ours.mutable_data()[i] -= x[i];
    wanted.mutable_data()[i] -= x[i];
  }
  return {ours, wanted};
}

TEST_CASE("imported GAU and FLASH compute what the public modules compute") {
  for (const bool laplace : {false, true}) {
    const std::string kernel = laplace ? "laplace" : "squared-relu";
    const auto compare = [&](const std::string& name, const std::string& output, bool causal,
                             std::vector<std::string> hints) {
      INFO(name << ", " << output);
      if (laplace) hints.push_back("--laplace");
      const Branches branches = imported_branches(name, output, causal, hints);
      const double error = relative_error(branches.ours, branches.wanted);
      MESSAGE(name, ", ", output, ": largest difference ", error, " of the branch's largest output");
      CHECK(error <= 1e-5);
    };
    for (const bool causal : {false, true})
      compare("public_gau", "y." + kernel + (causal ? ".causal" : ".bidirectional"), causal, {"--length", "24"});
    compare("public_flash", "y." + kernel, false, {"--chunk", "8"});
    compare("public_flash_rotary", "y." + kernel, false, {"--chunk", "8"});
  }
}

TEST_CASE("the norm before a gated module comes along into a block only, and the program says so") {
  const ImportFolder folder;
  std::string printed;
  REQUIRE(capstan_command({"import", fixture("public_flash"), "--chunk", "8", "-o", folder / "out.safetensors"},
                          &printed) == exit_done);
  CHECK(printed.find("FLASH of width 16") != std::string::npos);
  CHECK(printed.find("Only the mixer was written") != std::string::npos);
  CHECK(SafetensorsFile(folder / "out.safetensors").tensors().size() == 7);
  REQUIRE(capstan_command({"import", fixture("public_flash"), "--chunk", "8", "--into", "blocks.3.mixer", "-o",
                           folder / "out.safetensors"},
                          &printed) == exit_done);
  CHECK(printed.find("Only the mixer was written") == std::string::npos);
  const SafetensorsFile file(folder / "out.safetensors");
  CHECK(file.tensors().size() == 9);
  CHECK(file.find("blocks.3.mixer_norm.gain") != nullptr);
  CHECK(file.find("blocks.3.mixer_norm.bias") != nullptr);
  CHECK(file.find("blocks.3.mixer.to_uvz.weight") != nullptr);
}

TEST_CASE("older GAU files without position bias, and ScaleNorm's one gain") {
  const ImportFolder folder;
  Tensors tensors("public_gau");
  tensors.remove("rel_pos_bias.relative_attention_bias.weight");
  tensors.remove("norm.weight");
  tensors.remove("norm.bias");
  tensors.parts.push_back({"norm.g", {1}, {2}});
  tensors.write(folder / "changed.safetensors");
  ImportHints hints{0, 24};
  CHECK_THROWS_WITH_AS(import_module(SafetensorsFile(folder / "changed.safetensors"), "", hints),
                       doctest::Contains("rel_pos_bias.relative_attention_bias.weight is missing"), Error);
  hints.approximate = true;
  const ImportedModule module = import_module(SafetensorsFile(folder / "changed.safetensors"), "", hints);
  CHECK(module.approximations.size() == 1);
  CHECK(std::get<GauConfig>(module.layer.mixer).position_bias == RelativeBiasKind::none);
  CHECK(module.parameters.count("relative_bias.buckets") == 0);
  CHECK(module.block.at("mixer_norm.gain").values == std::vector<float>{2});
}

TEST_CASE("a file that is not quite GAU or FLASH is refused, and the tensor named") {
  struct Case {
    const char* file;
    std::function<void(Tensors&)> change;
    ImportHints hints;
    const char* says;
  };
  const ImportHints all{0, 24, 8, false};
  const auto nothing = [](Tensors&) {};
  const std::vector<Case> cases = {
      {"public_gau", nothing, {0, 0, 0, /*laplace=*/true}, "--length"},
      {"public_flash", nothing, {}, "--chunk"},
      {"public_gau", [](Tensors& t) { t.remove("to_qk.0.bias"); }, all, "to_qk.0.bias"},
      {"public_gau", [](Tensors& t) { t.remove("to_out.0.weight"); }, all, "to_out.weight"},
      {"public_gau", [](Tensors& t) { t.at("offsetscale.beta").shape = {16}; }, all, "offsetscale.beta has shape"},
      {"public_gau",
       [](Tensors& t) {
         t.at("to_hidden.0.weight").shape = {1, 1024};
       },
       all, "to_hidden.0.weight has"},
      {"public_gau",
       [](Tensors& t) {
         t.at("to_qk.0.weight").shape = {16, 8};
       },
       all, "to_qk.0.weight has shape"},
      {"public_flash",
       [](Tensors& t) {
         t.parts.push_back({"token_emb.weight", {1}, {1}});
       },
       all, "does not belong"},
      {"public_flash_rotary",
       [](Tensors& t) {
         t.at("rotary_pos_emb.freqs").values = {2, 0.01F};
       },
       all, "freqs"},
      {"public_flash_rotary",
       [](Tensors& t) {
         t.at("rotary_pos_emb.freqs").shape = {5};
         t.at("rotary_pos_emb.freqs").values = {1, 0.1F, 0.01F, 0.001F, 0.0001F};
       },
       all, "rotates 10 of 8 features"},
      {"public_gau", [](Tensors& t) { t.remove("norm.weight"); }, all, "norm.weight"},
      {"public_gau", [](Tensors& t) { t.remove("norm.bias"); }, all, "norm.bias"},
      {"public_flash", [](Tensors& t) { t.remove("norm.bias"); }, all, "norm.bias"},
      {"public_flash", [](Tensors& t) { t.remove("rel_pos_bias.relative_attention_bias.weight"); }, all,
       "rel_pos_bias.relative_attention_bias.weight is missing"},
      {"public_flash", [](Tensors& t) { t.remove("to_hidden.0.bias"); }, all, "to_hidden.0.bias"},
      {"public_flash", [](Tensors& t) { t.at("norm.weight").values[3] = NAN; }, all,
       "element 3 of norm.weight is not finite"},
      {"public_gau", [](Tensors& t) { t.at("to_qk.0.weight").values[0] = INFINITY; }, all,
       "element 0 of to_qk.0.weight is not finite"},
  };
  const ImportFolder folder;
  for (const Case& c : cases) {
    INFO(c.file, ": ", c.says);
    Tensors tensors(c.file);
    c.change(tensors);
    tensors.write(folder / "changed.safetensors");
    CHECK_THROWS_WITH_AS(import_module(SafetensorsFile(folder / "changed.safetensors"), "", c.hints),
                         doctest::Contains(c.says), Error);
  }
}

}  // namespace
}  // namespace capstan::testing
