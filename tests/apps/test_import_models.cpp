// `capstan import --run`: whole public models. Logits equal those of PyTorch twins
// (tests/parity/systems/public_models.py), and training goes on as the twins' does: the losses of 20 steps of AdamW.
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/fused/fused.hpp"
#include "core/io/file.hpp"
#include "core/ops/ops.hpp"
#include "run/imports/import_module.hpp"
#include "run/setup/run_model.hpp"
#include "tests/apps/import_support.hpp"

namespace capstan::testing {
namespace {

struct ModelCase {
  std::string name, source;
  std::vector<std::string> options;
};

std::vector<ModelCase> model_cases() {
  const std::vector<std::string> transformer = {"--causal", "--heads", "4", "--activation", "relu"};
  std::vector<std::string> pre_norm = transformer;
  pre_norm.emplace_back("--norm-first");
  return {{"public_flash_model", "FLASHTransformer", {"--causal", "--chunk", "8", "--shift-tokens"}},
          {"public_flash_model_masked", "FLASHTransformer", {"--mask-token", "3", "--chunk", "8", "--laplace"}},
          {"public_fastformer_model", "Fastformer's classifier", {}},
          {"public_gau_alpha",
           "GAU-alpha",
           {"--mask-token", "3", "--set",
            "train.freeze=[embed_norm.gain, \"blocks.*.mixer_norm.gain\", \"blocks.*.mixer.offset\"]"}},
          {"public_transformer", "TransformerModel", pre_norm},
          {"public_transformer_post", "TransformerModel", transformer},
          {"public_transformer_plain", "TransformerModel", transformer}};
}

std::vector<std::string> import_words(const ModelCase& c, const std::string& folder) {
  std::vector<std::string> words{"import", fixture(c.name), "--run", folder};
  words.insert(words.end(), c.options.begin(), c.options.end());
  return words;
}

Ids ids_at(const SafetensorsFile& file, const std::string& name, int64_t index) {
  const FileTensor& tensor = file.at(name);
  const std::vector<double> values = tensor.to_doubles();
  const Shape all(tensor.shape);
  return Ids(all, std::vector<int32_t>(values.begin(), values.end())).rows(index, index + 1).reshape(all.without(0));
}

/// Mean loss per label. A masked model chooses its labels itself; the twin has one for every token.
Var mean_loss(const Model& model, bool masked, const Batch& batch, const Context& context) {
  if (!masked) {
    const TaskLoss loss = model.loss(batch, context);
    return loss.sum * (1.0 / static_cast<double>(loss.targets));
  }
  const CrossEntropy loss = softmax_cross_entropy(model.logits(batch.tokens, context), batch.labels);
  return loss.sum * (1.0 / static_cast<double>(loss.targets));
}

TEST_CASE("imported models have the logits and the loss curve of the public ones") {
  const ImportFolder folder;
  for (const ModelCase& c : model_cases()) {
    INFO(c.name);
    std::vector<std::string> words = import_words(c, folder / c.name);
    words.insert(words.end(), {"--verify", fixture(c.name + "_io")});
    std::string printed;
    REQUIRE(capstan_command(words, &printed) == exit_done);
    CHECK(printed.find("verified: the logits in") != std::string::npos);
    CHECK(printed.find(c.source) != std::string::npos);

    const SafetensorsFile io(fixture(c.name + "_io"));
    const SavedRun run = open_run(folder / c.name, ParamMemory::allocated);
    CHECK(run.tokenizer->kind() == "number");
    const std::vector<double> expected = io.at("curve.losses").to_doubles();
    AdamWConfig adamw;
    adamw.beta1 = std::stod(io.metadata().at("beta1"));
    adamw.beta2 = std::stod(io.metadata().at("beta2"));
    adamw.epsilon = std::stod(io.metadata().at("eps"));
    adamw.weight_decay = 0;
    Optimizer optimizer(adamw, run.model->params());
    double worst = 0;
    const bool masked = facts_of(run.config.model).predicts == Predicts::hidden_tokens;
    REQUIRE(expected.size() == 20);
    for (size_t step = 0; step < expected.size(); ++step) {
      const auto at = static_cast<int64_t>(step);
      const Ids tokens = ids_at(io, "curve.tokens", at), ids = ids_at(io, "curve.segment_ids", at);
      const Batch batch{tokens, ids, ids_at(io, "curve.labels", at), Ids({tokens.dim(0)}, 0)};
      TapeScope scope;
      const Var loss = mean_loss(run.model->model(), masked, batch, {Segments(ids), true, step, batch.examples});
      worst = std::max(worst, std::abs(static_cast<double>(loss.value().item()) / expected[step] - 1));
      scope.backward(loss, 1);
      optimizer.step(run.model->params(), 1, std::stod(io.metadata().at("lr")));
    }
    MESSAGE(c.name, ": the loss of 20 steps differs by at most ", worst, " of it");
    CHECK(worst <= 1e-4);
  }
}

TEST_CASE("Fastformer's layer is a post-norm block, and its attention with norm too") {
  const ImportFolder folder;
  REQUIRE(capstan_command({"import", fixture("public_fastformer_layer"), "--into", "blocks.0", "-o",
                           folder / "layer.safetensors", "--verify", fixture("public_fastformer_layer_io")}) ==
          exit_done);
  CHECK(SafetensorsFile(folder / "layer.safetensors").find("blocks.0.feed_forward_norm.gain") != nullptr);
  std::string printed;
  REQUIRE(capstan_command({"import", fixture("public_fastformer_layer"), "--prefix", "attention.", "--into", "blocks.0",
                           "-o", folder / "attention.safetensors"},
                          &printed) == exit_done);
  CHECK(printed.find("norm_placement: post") != std::string::npos);
  CHECK(SafetensorsFile(folder / "attention.safetensors").find("blocks.0.mixer_norm.bias") != nullptr);
}

TEST_CASE("what differs is refused, or taken with the size of the effect") {
  const ImportFolder folder;
  // Pooling weights so small that the module's 1e-8 counts.
  Tensors pooled("public_fastformer_model");
  pooled.at("fastformer_model.poolers.0.att_fc2.bias").values = {-15};
  pooled.write(folder / "pooled.safetensors");
  // Frequencies of rotary positions that were trained.
  Tensors turned("public_flash_model");
  for (const char* const layer : {"layers.0.", "layers.1."})
    turned.at(std::string(layer) + "rotary_pos_emb.freqs").values[1] = 0.05f;
  turned.at("layers.0.rotary_pos_emb.freqs").values[0] = 0.75f;
  turned.write(folder / "turned.safetensors");
  const auto words = [&](const std::string& file, const std::string& run, std::vector<std::string> more) {
    more.insert(more.begin(), {"import", folder / file, "--run", folder / run});
    return more;
  };
  CHECK(capstan_command(words("pooled.safetensors", "pooled", {})) == exit_failed);
  CHECK_FALSE(std::filesystem::exists(folder / "pooled"));
  std::string printed;
  REQUIRE(capstan_command(words("pooled.safetensors", "pooled", {"--approximate"}), &printed) == exit_done);
  CHECK(printed.find("approximate: the module adds 1e-8 to the sum of the pooling weights") != std::string::npos);
  const RunState state = read_state(std::filesystem::path(folder / "pooled") / "checkpoints/best");
  REQUIRE(state.ancestry.size() == 1);
  CHECK(state.ancestry[0].note.find("imported from Fastformer's classifier; approximate: the module adds 1e-8") == 0);
  CHECK(capstan_command(words("turned.safetensors", "turned", {"--causal", "--chunk", "8"})) == exit_failed);
  REQUIRE(capstan_command(words("turned.safetensors", "turned", {"--causal", "--chunk", "8", "--approximate"}),
                          &printed) == exit_done);
  CHECK(printed.find("angles differ by up to 0.25 radians") != std::string::npos);
  // Numbers that are none are no frequencies at all.
  turned.at("layers.0.rotary_pos_emb.freqs").values[1] = NAN;
  turned.write(folder / "nan.safetensors");
  CHECK(capstan_command(words("nan.safetensors", "nan", {"--causal", "--chunk", "8"})) == exit_failed);
  // A module's file has the words in its metadata.
  REQUIRE(capstan_command({"import", folder / "turned.safetensors", "--prefix", "layers.0.", "--chunk", "8",
                           "--approximate", "-o", folder / "layer.safetensors"}) == exit_done);
  CHECK(SafetensorsFile(folder / "layer.safetensors").metadata().at("approximate").find("0.25 radians") !=
        std::string::npos);
}

TEST_CASE("positions that are no sines become learned ones, with the logits of the module") {
  const ImportFolder folder;
  Tensors learned("public_transformer");
  auto& table = learned.at("pos_encoder.pe");
  for (size_t i = 0; i < table.values.size(); ++i) table.values[i] += i % 7 == 0 ? 0.5f : 0;
  table.shape = {1, 24, 16};
  learned.write(folder / "learned.safetensors");
  ImportHints hints;
  hints.causal = hints.norm_first = true;
  hints.heads = 4;
  hints.activation = ImportActivation::relu;
  const ImportedModel model = import_model(SafetensorsFile(folder / "learned.safetensors"), "", hints);
  CHECK(std::get<LanguageModelConfig>(model.config).positions == Positions::learned);
  CHECK(std::get<LanguageModelConfig>(model.config).max_length == 24);
  CHECK(model.parameters.at("positions.weight").shape == std::vector<int64_t>{24, 16});
  CHECK(model.parameters.at("embed.weight").values[5] ==
        doctest::Approx(4 * Tensors("public_transformer").at("embedding.weight").values[5]));
}

TEST_CASE("what is no model, or does not fit, is refused") {
  const ImportFolder folder;
  struct Refused {
    const char* file;
    ImportHints hints;
    const char* says;
  };
  const auto hints = [](const auto& change) {
    ImportHints made;
    made.heads = 4;
    made.chunk = 8;
    made.activation = ImportActivation::relu;
    change(made);
    return made;
  };
  const std::vector<Refused> cases = {
      {"public_gau", hints([](ImportHints&) {}), "none of Fastformer's classifier"},
      {"public_flash_model", hints([](ImportHints&) {}), "--mask-token"},
      {"public_flash_model", hints([](ImportHints& h) { h.mask_token = 19; }), "the vocabulary has the ids 0 to 18"},
      {"public_flash_model", hints([](ImportHints& h) {
         h.causal = true;
         h.chunk = 0;
       }),
       "--chunk"},
      {"public_transformer", hints([](ImportHints& h) { h.heads = 0; }), "--heads"},
      {"public_transformer", hints([](ImportHints& h) { h.heads = 3; }), "3 heads do not divide the width 16"}};
  for (const Refused& c : cases) {
    INFO(c.file, ": ", c.says);
    CHECK_THROWS_WITH_AS(import_model(SafetensorsFile(fixture(c.file)), "", c.hints), doctest::Contains(c.says), Error);
  }
  const auto refused = [&](std::vector<std::string> more, int code) {
    more.insert(more.begin(), {"import", fixture("public_flash_model"), "--causal", "--chunk", "8"});
    CHECK(capstan_command(more) == code);
  };
  refused({"--run", folder / "a", "-o", folder / "b"}, exit_wrong_usage);
  refused({}, exit_wrong_usage);
  refused({"-o", folder / "b", "--tokenizer", "t.json"}, exit_wrong_usage);
  refused({"--run", folder / "a", "--set", "model.width=8"}, exit_failed);
  refused({"--run", folder / "a", "--set", "model.wdith=8"}, exit_wrong_usage);
  refused({"--run", folder / "a", "--verify", fixture("public_transformer_io")}, exit_failed);
  CHECK_FALSE(std::filesystem::exists(folder / "a"));
  refused({"--run", folder / "a"}, exit_done);
  refused({"--run", folder / "a"}, exit_failed);  // there is a run already
}

TEST_CASE("a FLASHTransformer without one of its norms, biases or tables is refused, and the tensor named") {
  const ImportFolder folder;
  ImportHints hints;
  hints.causal = true;
  hints.chunk = 8;
  for (const std::string name :
       {"abs_pos_emb.inv_freq", "layers.1.rotary_pos_emb.freqs", "layers.0.rotary_pos_emb.freqs", "layers.1.norm.g",
        "layers.0.rel_pos_bias.relative_attention_bias.weight", "layers.1.to_qk.0.bias", "layers.0.to_out.bias",
        "to_logits.0.bias", "to_logits.1.bias"}) {
    INFO(name);
    Tensors tensors("public_flash_model");
    tensors.remove(name);
    tensors.write(folder / "less.safetensors");
    const std::string named = name == "layers.1.norm.g" ? "layers.1.norm.weight" : name;
    CHECK_THROWS_WITH_AS(
        import_model(SafetensorsFile(folder / "less.safetensors"), "", hints),
        doctest::Contains(named.find("rel_pos") != named.npos ? "rel_pos_bias.relative_attention_bias.weight is missing"
                                                              : named.c_str()),
        Error);
  }
}

TEST_CASE("import --verify with no tokens to compare is an error") {
  const ImportFolder folder;
  const std::vector<int32_t> ids(10, 1), padding(10, 0);
  const std::vector<float> logits(10 * 19, 0);
  write_safetensors(folder / "none.safetensors",
                    {{"tokens", DType::i32, {0, 5}, ids.data()}, {"logits", DType::f32, {0, 5, 19}, logits.data()}});
  write_safetensors(folder / "short.safetensors",
                    {{"tokens", DType::i32, {2, 0}, ids.data()}, {"logits", DType::f32, {2, 0, 19}, logits.data()}});
  write_safetensors(folder / "padding.safetensors", {{"tokens", DType::i32, {2, 5}, ids.data()},
                                                     {"segment_ids", DType::i32, {2, 5}, padding.data()},
                                                     {"logits", DType::f32, {2, 5, 19}, logits.data()}});
  for (const char* const file : {"none.safetensors", "short.safetensors", "padding.safetensors"}) {
    INFO(file);
    CHECK(capstan_command({"import", fixture("public_flash_model"), "--causal", "--chunk", "8", "--run", folder / "a",
                           "--verify", folder / file}) == exit_failed);
    CHECK_FALSE(std::filesystem::exists(folder / "a"));
  }
}

TEST_CASE("import --run: whole or not there, whenever it is killed, and nothing of others is replaced") {
  namespace fs = std::filesystem;
  const ImportFolder folder;
  const fs::path runs = folder / "runs", killed = folder / "killed";
  const auto import = [&](const std::string& run) {
    return capstan_command(
        {"import", fixture("public_flash_model"), "--causal", "--chunk", "8", "--run", (runs / run).string()});
  };
  const auto copy = [](const fs::path& from, const fs::path& to) {
    fs::remove_all(to);
    fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  };
  int renames = 1;
  for (int n = 0; n < renames; ++n) {
    INFO("killed at rename ", n);
    fs::remove_all(runs);
    fs::create_directories(runs);
    renames = 0;
    // What is on the disk at this moment is what a kill leaves.
    set_file_hook([&](const char* call, const std::string&) {
      if (std::string(call) == "rename" && renames++ == n) copy(runs, killed);
    });
    const int code = import("a");
    set_file_hook({});
    REQUIRE(code == exit_done);
    copy(killed, runs);
    if (fs::exists(runs / "a")) CHECK_NOTHROW(open_run(runs / "a"));
    if (!fs::exists(runs / "a")) CHECK(import("a") == exit_done);
    CHECK_NOTHROW(open_run(runs / "a"));
    CHECK(std::distance(fs::directory_iterator(runs), fs::directory_iterator()) == 1);
  }
  CHECK(renames >= 5);
  fs::create_directories(runs / "others");
  std::ofstream(runs / "others/tokenizer.json") << "mine";
  CHECK(import("others") == exit_failed);
  CHECK(read_file((runs / "others/tokenizer.json").string()) == "mine");
  CHECK_FALSE(fs::exists(runs / "others/config.yaml"));
  fs::create_directories(runs / "empty");
  CHECK(import("empty") == exit_done);
  CHECK_NOTHROW(open_run(runs / "empty"));
}

}  // namespace
}  // namespace capstan::testing
