// capstan import: weights of a published PyTorch module or model, as those of a mixer, a block or a run.
// tests/cli/runs/test_import_run.cpp.
#include <iostream>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "run/imports/import_run.hpp"
#include "run/setup/saved_config.hpp"

namespace capstan {
namespace {

struct ImportOptions {
  std::string file, output, prefix, into, verify, activation, run, tokenizer, classes;  // as given; empty: not given
  ConfigOptions config;     // for --run: keys of the new run's configuration
  int64_t mask_token = -1;  // an id of the vocabulary; -1: not given
  double norm_eps = 0;      // of LayerNorm; 0: not given
  ImportHints hints;        // without activation, mask_token and norm_eps, which hints_of() adds
};

/// The hints with the options that have a value for "not given".
ImportHints hints_of(const ImportOptions& options) {
  ImportHints hints = options.hints;
  if (options.activation == "relu") hints.activation = ImportActivation::relu;
  if (options.activation == "gelu") hints.activation = ImportActivation::gelu;
  if (!options.activation.empty() && !hints.activation)
    throw ConfigError(fmt::format("--activation: {} is not one of relu, gelu", options.activation));
  if (options.mask_token >= 0) hints.mask_token = options.mask_token;
  if (options.norm_eps > 0) hints.norm_eps = options.norm_eps;
  return hints;
}

/// Refuses options that do not go together: a module is written to a file (--output), a model to a run folder (--run),
/// and each of the two has options that mean nothing for the other.
void check_choice(const ImportOptions& options) {
  if (options.run.empty() == options.output.empty())
    throw ConfigError("give --output FILE for a module, or --run FOLDER for a whole model; see capstan import --help");
  const auto refuse = [](bool given, const char* option, const char* with) {
    if (given) throw ConfigError(fmt::format("{} is for imports with {}", option, with));
  };
  if (options.run.empty()) {
    refuse(!options.tokenizer.empty(), "--tokenizer", "--run");
    refuse(!options.classes.empty(), "--classes", "--run");
    refuse(options.mask_token >= 0, "--mask-token", "--run");
    refuse(!options.config.files.empty() || !options.config.overrides.empty(), "--config and --set", "--run");
  } else {
    refuse(!options.into.empty(), "--into", "--output");
  }
}

int import_weights(const ImportOptions& options) {
  refuse_ranks("capstan import");
  check_choice(options);
  const ImportHints hints = hints_of(options);
  if (options.run.empty()) {
    import_file({options.file, options.prefix, options.output, options.into, options.verify, hints}, std::cout);
    say_next(options.output, "capstan inspect " + options.output + " --tensors",
             "capstan train --config FILE --set train.init_from=" + options.output);
  } else {
    import_run({options.file, options.prefix, options.run, options.tokenizer, options.classes, options.verify,
                options.config, hints},
               std::cout);
    say_next(load_run_config(options.run), options.run);
  }
  return exit_done;
}

constexpr const char* known_modules =
    "Known modules: AFT_FULL (fc_q, fc_k, fc_v, position_biases), AFTLocal (query, key, value, output, pos_bias), "
    "AFTFull, AFTLocal and AFTSimple (to_q, to_k, to_v, project, wbias), Fastformer's FastSelfAttention (query, "
    "query_att, key, key_att, transform), alone or as self with output.dense, and its layer (attention, intermediate, "
    "output), FLASH-pytorch's GAU and FLASH (to_hidden, to_qk, offsetscale or qk_offset_scale), torch.nn's "
    "MultiheadAttention (in_proj_weight, out_proj) and TransformerEncoderLayer (self_attn, linear1, linear2, norm1, "
    "norm2). The file is for train.init_from of a model with the printed configuration.\n"
    "Known models, for --run: FLASHTransformer (token_emb, layers, to_logits), Fastformer's classifier "
    "(word_embedding, fastformer_model), GAU-alpha (gau_alpha, cls), TransformerModel of PyTorch's tutorials "
    "(embedding, transformer_encoder, linear).\n"
    "For example:  capstan import aft.safetensors --prefix encoder.aft. --into blocks.0.mixer -o mixer.safetensors\n"
    "              capstan import flash.safetensors --run runs/flash --causal --chunk 256";

/// Options for what is written, and where.
void add_output_options(CommandParser& command, ImportOptions& options) {
  command.add_option("-o,--output", options.output, "safetensors file to write", "FILE");
  command.add_option(
      "--into", options.into,
      "the mixer of the model that gets the weights, such as blocks.0.mixer; for modules with norms, the "
      "block, such as blocks.0");
  command.add_option("--run", options.run,
                     "for whole models: the run folder to make, for generate, predict, eval and train.init_from",
                     "FOLDER");
  command.add_option(
      "--tokenizer", options.tokenizer,
      "with --run: tokenizer.json of another run, or a SentencePiece .model file; without, texts are ids "
      "with blanks between them",
      "FILE");
  command.add_option("--classes", options.classes, "with --run: names of the classes, one per line; without, numbers",
                     "FILE");
  add_config_options(command, options.config);
  command.add_option(
      "--verify", options.verify,
      "safetensors file with an input x of the module and its output y, or, with --run, tokens and logits: refuse "
      "to write anything unless they are met to 1e-5",
      "FILE");
  command.add_flag("--approximate", options.hints.approximate,
                   "accept what cannot be computed exactly; the size of the effect is printed and recorded");
}

/// Options for what the file does not say.
void add_hint_options(CommandParser& command, ImportOptions& options) {
  ImportHints& hints = options.hints;
  const auto number = [&](const std::string& name, int64_t& value, const std::string& help) {
    command.add_number(name, value, length_from(1), help)->without_default();
  };
  command.add_flag("--causal", hints.causal,
                   "tokens do not see later ones: for --verify, and with --run for a language model");
  number("--window", hints.window, "for AFTLocal, if the file does not contain it: its window");
  number("--length", hints.length, "for GAU, causal or with --laplace: the length of the texts it was trained on");
  number("--chunk", hints.chunk, "for FLASH: its group_size");
  number("--heads", hints.heads, "for MultiheadAttention and TransformerEncoderLayer: the number of heads");
  command
      .add_number("--mask-token", options.mask_token, at_least(0),
                  "for masked models: id of the token that hides others")
      ->without_default();
  command
      .add_number("--norm-eps", options.norm_eps, greater(0), "eps of LayerNorm, unless it is the module's usual one")
      ->without_default();
  command.add_option("--activation", options.activation, "for TransformerEncoderLayer: relu or gelu");
  command.add_flag("--norm-first", hints.norm_first, "for TransformerEncoderLayer: it was made with norm_first");
  command.add_flag("--shift-tokens", hints.shift_tokens, "for FLASH: it was made with shift_tokens");
  command.add_flag("--laplace", hints.laplace, "for GAU and FLASH modules that use laplace_attn_fn");
}

}  // namespace

void add_import_command(CommandParser& cli) {
  const auto [command, options] = cli.add_subcommand<ImportOptions>(
      "import", "Convert the weights of a published PyTorch module or model to those of a Capstan mixer, block or run",
      import_weights);
  command.add_option("file", options.file, "safetensors file with the module's state dict", "FILE")->required();
  command.add_option("--prefix", options.prefix, "prefix of the module's names in the file, such as encoder.aft.");
  add_output_options(command, options);
  add_hint_options(command, options);
  command.on_stray_argument([](const std::string& argument) {
    return fmt::format("the file to write is given with --output {}, a folder with --run {}", argument, argument);
  });
  command.footer(known_modules);
}

}  // namespace capstan
