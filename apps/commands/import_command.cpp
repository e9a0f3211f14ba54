#include <iostream>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/import_run.hpp"
#include "core/io/file.hpp"
#include "core/strings/affixes.hpp"
#include "core/strings/join.hpp"
#include "run/imports/import_module.hpp"
#include "run/imports/import_verify.hpp"
#include "run/imports/imported_config.hpp"
#include "run/yaml/config.hpp"

namespace capstan {
namespace {

struct ImportOptions {
  std::string file, output, prefix, into, verify, activation, run, tokenizer, classes;
  ConfigOptions config;
  int64_t mask_token = -1;
  double norm_eps = 0;
  ImportHints hints;
};

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

/// A file for one module, or a run folder for a model: each has options of its own.
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

/// Where the parameters of the mixer and those beside it in its block go.
struct Places {
  std::string mixer, block;
  bool in_block = false;
};

Places places_of(const std::string& into, const ImportedModule& module) {
  const std::string end = "mixer";
  if (into.empty()) return {};
  if (ends_with(into, "." + end) || into == end) {
    const std::string block = into.substr(0, into.size() - end.size());
    return {into + ".", block, true};
  }
  if (!module.is_block)
    throw ConfigError(fmt::format("--into {}: {} is a mixer: name one, such as blocks.0.mixer", into, module.source));
  return {into + ".mixer.", into + ".", true};
}

void check_outputs(const ImportOptions& options, const ImportedModule& module) {
  constexpr double tolerance = 1e-5;
  const double difference = verify_import(module, options.verify, options.hints.causal);
  if (!(difference <= tolerance))
    throw Error(fmt::format(
        "{}: its outputs are not those of the imported module: they differ by {:.2g} of the largest one (at most {} is "
        "allowed); check {} and whether the module was evaluated without dropout",
        options.verify, difference, tolerance,
        options.hints.causal ? "the options, --causal included" : "the options (a causal module needs --causal)"));
  std::cout << fmt::format("verified: the outputs in {} are met to {:.2g} of the largest one\n", options.verify,
                           difference);
}

int import_weights(const ImportOptions& options) {
  refuse_ranks("capstan import");
  check_choice(options);
  const ImportHints hints = hints_of(options);
  if (!options.run.empty()) {
    import_run({options.file, options.prefix, options.run, options.tokenizer, options.classes, options.verify,
                options.config, hints});
    return exit_done;
  }
  const ImportedModule module = import_module(SafetensorsFile(options.file), options.prefix, hints);
  const Places places = places_of(options.into, module);
  if (!options.verify.empty()) check_outputs(options, module);
  const std::string mixer = to_yaml(ImportedConfig{module.layer.mixer});
  std::vector<TensorToWrite> tensors;
  const auto add = [&](const std::string& place, const auto& parameters) {
    for (const auto& [name, tensor] : parameters)
      tensors.push_back({place + name, DType::f32, tensor.shape, tensor.values.data()});
  };
  add(places.mixer, module.parameters);
  if (places.in_block) add(places.block, module.block);
  std::map<std::string, std::string> metadata{{"source", module.source}, {"mixer", mixer}};
  if (!module.approximations.empty()) metadata["approximate"] = join(module.approximations, "; ");
  if (places.in_block && module.is_block) metadata["layer"] = to_yaml(module.layer);
  if (places.in_block) metadata["into"] = places.mixer.substr(0, places.mixer.size() - 1);
  replace_file(options.output,
               [&](const std::string& unfinished) { write_safetensors(unfinished, tensors, metadata); });
  const std::string reach = module.max_length > 0 ? fmt::format(" for up to {} tokens", module.max_length) : "";
  std::cout << fmt::format("{} of width {}{}, written to {}. Its configuration is:\n{}", module.source, module.width,
                           reach, options.output, module.is_block ? to_yaml(module.layer) : mixer);
  if (!module.block.empty() && !places.in_block)
    std::cout << "Only the mixer was written, without what is beside it in its block, such as the norm in front of it: "
                 "--into blocks.N writes all of it.\n";
  for (const std::string& line : module.notes) std::cout << "note: " << line << "\n";
  for (const std::string& line : module.approximations) std::cout << "approximate: " << line << "\n";
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

/// What is written, and where.
void add_output_options(CommandParser& command, ImportOptions& options) {
  command.add_option("-o,--output", options.output, "safetensors file to write")->type_name("FILE");
  command.add_option(
      "--into", options.into,
      "the mixer of the model that gets the weights, such as blocks.0.mixer; for modules with norms, the "
      "block, such as blocks.0");
  command
      .add_option("--run", options.run,
                  "for whole models: the run folder to make, for generate, predict, eval and train.init_from")
      ->type_name("FOLDER");
  command
      .add_option("--tokenizer", options.tokenizer,
                  "with --run: tokenizer.json of another run, or a SentencePiece .model file; without, texts are ids "
                  "with blanks between them")
      ->type_name("FILE");
  command.add_option("--classes", options.classes, "with --run: names of the classes, one per line; without, numbers")
      ->type_name("FILE");
  add_config_options(command, options.config);
  command
      .add_option(
          "--verify", options.verify,
          "safetensors file with an input x of the module and its output y, or, with --run, tokens and logits: refuse "
          "to write anything unless they are met to 1e-5")
      ->type_name("FILE");
  command.add_flag("--approximate", options.hints.approximate,
                   "accept what cannot be computed exactly; the size of the effect is printed and recorded");
}

/// What the file does not say.
void add_hint_options(CommandParser& command, ImportOptions& options) {
  ImportHints& hints = options.hints;
  const auto number = [&](const std::string& name, int64_t& value, const std::string& help) {
    command.add_option(name, value, help)->check(number_check(length_from(1)));
  };
  command.add_flag("--causal", hints.causal,
                   "tokens do not see later ones: for --verify, and with --run for a language model");
  number("--window", hints.window, "for AFTLocal, if the file does not contain it: its window");
  number("--length", hints.length, "for GAU, causal or with --laplace: the length of the texts it was trained on");
  number("--chunk", hints.chunk, "for FLASH: its group_size");
  number("--heads", hints.heads, "for MultiheadAttention and TransformerEncoderLayer: the number of heads");
  command.add_option("--mask-token", options.mask_token, "for masked models: id of the token that hides others")
      ->check(number_check(at_least(0)));
  command.add_option("--norm-eps", options.norm_eps, "eps of LayerNorm, unless it is the module's usual one")
      ->check(number_check(greater(0)));
  command.add_option("--activation", options.activation, "for TransformerEncoderLayer: relu or gelu");
  command.add_flag("--norm-first", hints.norm_first, "for TransformerEncoderLayer: it was made with norm_first");
  command.add_flag("--shift-tokens", hints.shift_tokens, "for FLASH: it was made with shift_tokens");
  command.add_flag("--laplace", hints.laplace, "for GAU and FLASH modules that use laplace_attn_fn");
}

}  // namespace

void add_import_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command = cli.add_subcommand(
      "import", "Convert the weights of a published PyTorch module or model to those of a Capstan mixer, block or run");
  const auto options = std::make_shared<ImportOptions>();
  command->add_option("file", options->file, "safetensors file with the module's state dict")
      ->required()
      ->type_name("FILE");
  command->add_option("--prefix", options->prefix, "prefix of the module's names in the file, such as encoder.aft.");
  add_output_options(*command, *options);
  add_hint_options(*command, *options);
  command->on_stray_argument([](const std::string& argument) {
    return fmt::format("the file to write is given with --output {}, a folder with --run {}", argument, argument);
  });
  command->footer(known_modules);
  command->callback([options, choose] { choose([options] { return import_weights(*options); }); });
}

}  // namespace capstan
