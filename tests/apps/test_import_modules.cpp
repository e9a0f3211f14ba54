// `capstan import` of more public modules: outputs of PyTorch (tests/parity/systems/public_modules.py) are met to 1e-5
// by
// --verify, and what is written is what train.init_from takes.
#include <functional>

#include "core/base/error.hpp"
#include "run/imports/import_module.hpp"
#include "tests/apps/import_support.hpp"

namespace capstan::testing {
namespace {

/// A fixture's input and one of its outputs, as --verify wants them.
void write_outputs(const std::string& name, const std::string& output, const std::string& path, float factor = 1) {
  const SafetensorsFile io(fixture(name + "_io"));
  const std::vector<float> x = io.at("x").to_floats();
  std::vector<float> y = io.at(output).to_floats();
  for (float& value : y) value *= factor;
  write_safetensors(path,
                    {{"x", DType::f32, io.at("x").shape, x.data()}, {"y", DType::f32, io.at(output).shape, y.data()}});
}

struct Case {
  std::string file, output, source;
  std::vector<std::string> options;
};

std::vector<Case> cases() {
  std::vector<Case> all = {
      {"public_aft_full", "y", "AFT_FULL", {}},
      {"public_aft_full_simple", "y", "AFT_FULL", {}},
      {"public_aft_local", "y", "AFTLocal", {"--causal"}},
      {"public_aft_local_plain", "y", "AFTLocal", {"--causal"}},
      {"public_aft_projected_full", "y", "AFTFull", {}},
      {"public_aft_projected_simple", "y", "AFTSimple", {}},
      {"public_aft_projected_local", "y", "AFTLocal", {"--window", "4"}},
  };
  for (const char* const file : {"public_attention", "public_attention_plain"}) {
    all.push_back({file, "y.bidirectional", "MultiheadAttention", {"--heads", "3"}});
    all.push_back({file, "y.causal", "MultiheadAttention", {"--heads", "3", "--causal"}});
  }
  for (const std::string activation : {"relu", "gelu"}) {
    const std::vector<std::string> options{"--heads", "3", "--activation", activation};
    all.push_back({"public_encoder_layer", "y." + activation + ".post", "TransformerEncoderLayer", options});
    all.push_back({"public_encoder_layer", "y." + activation + ".pre", "TransformerEncoderLayer", options});
    all.back().options.push_back("--norm-first");
  }
  for (const bool laplace : {false, true}) {
    const std::string kernel = laplace ? "laplace" : "squared-relu";
    const auto gated = [&](const std::string& file, const std::string& output, std::vector<std::string> options) {
      if (laplace) options.emplace_back("--laplace");
      all.push_back({file, "y." + kernel + output, file == "public_gau" ? "GAU" : "FLASH", options});
    };
    gated("public_gau", ".bidirectional", {"--length", "24"});
    if (!laplace) gated("public_gau", ".bidirectional", {});
    gated("public_gau", ".causal", {"--length", "24", "--causal"});
    gated("public_flash", "", {"--chunk", "8"});
    gated("public_flash_rotary", "", {"--chunk", "8"});
    gated("public_flash_uneven", ".bidirectional", {"--chunk", "8"});
    gated("public_flash_uneven", ".bidirectional.shifted", {"--chunk", "8", "--shift-tokens"});
    gated("public_flash_uneven", ".causal", {"--chunk", "8", "--causal"});
    gated("public_flash_uneven", ".causal.shifted", {"--chunk", "8", "--causal", "--shift-tokens"});
  }
  return all;
}

TEST_CASE("outputs of public modules are met to 1e-5; others are refused and nothing is written") {
  const ImportFolder folder;
  for (const Case& c : cases()) {
    INFO(c.file, " ", c.output);
    write_outputs(c.file, c.output, folder / "io.safetensors");
    std::vector<std::string> words{"import",   fixture(c.file),          "-o", folder / "out.safetensors",
                                   "--verify", folder / "io.safetensors"};
    words.insert(words.end(), c.options.begin(), c.options.end());
    std::string printed;
    REQUIRE(capstan_command(words, &printed) == exit_done);
    CHECK(printed.find("verified: the outputs in") != std::string::npos);
    CHECK(printed.find(c.source + " of width") != std::string::npos);
    std::filesystem::remove(folder / "out.safetensors");
    write_outputs(c.file, c.output, folder / "io.safetensors", 1.001F);
    CHECK(capstan_command(words) == exit_failed);
    CHECK_FALSE(std::filesystem::exists(folder / "out.safetensors"));
  }
}

TEST_CASE("a causal FLASH is another function than a bidirectional one, and --verify sees it") {
  const ImportFolder folder;
  write_outputs("public_flash_uneven", "y.squared-relu.causal", folder / "io.safetensors");
  const ImportedModule module = import_module(SafetensorsFile(fixture("public_flash_uneven")), "", {0, 0, 8});
  CHECK(verify_import(module, folder / "io.safetensors", true).find("verified") == 0);
  CHECK_THROWS_AS(verify_import(module, folder / "io.safetensors", false), Error);
  const FlashConfig& flash = std::get<FlashConfig>(module.layer.mixer);
  CHECK(flash.normaliser == Normaliser::chunk);
}

TEST_CASE("--into names a block or its mixer, and the file says for which mixer it is") {
  const ImportFolder folder;
  const std::string out = folder / "out.safetensors";
  std::string printed;
  REQUIRE(capstan_command({"import", fixture("public_encoder_layer"), "--heads", "3", "--activation", "gelu", "--into",
                           "blocks.1", "-o", out},
                          &printed) == exit_done);
  CHECK(printed.find("norm_placement: post") != std::string::npos);
  for (const char* const name :
       {"blocks.1.mixer.to_qkv.weight", "blocks.1.mixer_norm.gain", "blocks.1.feed_forward.up.bias",
        "blocks.1.feed_forward_norm.bias", "blocks.1.mixer.to_out.weight"})
    CHECK(SafetensorsFile(out).find(name) != nullptr);
  CHECK(SafetensorsFile(out).metadata().at("into") == "blocks.1.mixer");
  CHECK(capstan_command({"import", fixture("public_aft_full"), "--into", "blocks.1", "-o", out}) == exit_wrong_usage);
}

TEST_CASE("what a file does not say must be said") {
  struct Wrong {
    const char* file;
    ImportHints hints;
    std::function<void(Tensors&)> change;
    const char* says;
  };
  ImportHints heads, five, all;
  heads.heads = 3;
  five.heads = 5;
  all.heads = 3;
  all.activation = ImportActivation::relu;
  const auto nothing = [](Tensors&) {};
  const std::vector<Wrong> wrongs = {
      {"public_attention", {}, nothing, "--heads"},
      {"public_attention", five, nothing, "5 heads do not divide the width 12"},
      {"public_attention", heads, [](Tensors& t) { t.remove("out_proj.weight"); }, "out_proj.weight"},
      {"public_attention", heads,
       [](Tensors& t) {
         t.at("in_proj_bias").shape = {3, 12};
       },
       "in_proj_bias has shape"},
      {"public_encoder_layer", heads, nothing, "--activation"},
      {"public_encoder_layer", all, [](Tensors& t) { t.remove("norm2.weight"); }, "norm2.weight"},
      {"public_encoder_layer", all,
       [](Tensors& t) {
         t.at("linear2.weight").shape = {30, 12};
       },
       "linear2.weight has shape"},
      {"public_aft_projected_full", {}, [](Tensors& t) { t.remove("to_v.bias"); }, "to_v.bias"},
      {"public_aft_projected_full",
       {},
       [](Tensors& t) {
         t.at("wbias").shape = {1, 289};
       },
       "square"},
  };
  const ImportFolder folder;
  for (const Wrong& wrong : wrongs) {
    INFO(wrong.file, ": ", wrong.says);
    Tensors tensors(wrong.file);
    wrong.change(tensors);
    tensors.write(folder / "changed.safetensors");
    CHECK_THROWS_WITH_AS(import_module(SafetensorsFile(folder / "changed.safetensors"), "", wrong.hints),
                         doctest::Contains(wrong.says), Error);
  }
}

}  // namespace
}  // namespace capstan::testing
