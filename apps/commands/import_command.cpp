#include <iostream>
#include <memory>

#include "apps/commands/command_parser.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/options.hpp"
#include "apps/config/config.hpp"
#include "apps/imports/import_module.hpp"
#include "core/io/file.hpp"
#include "core/text/affixes.hpp"

namespace capstan {
namespace {

struct ImportOptions {
  std::string file, output, prefix, name;
  ImportHints hints;
};

/// The mixer as a layer of a configuration has it.
struct MixerOnly {
  MixerConfig mixer;
};
template <class Fields>
void describe(Fields& f, MixerOnly& c) {
  f("mixer", c.mixer, any(), "the imported mixer");
}

int import_weights(const ImportOptions& options) {
  const ImportedModule module = import_module(SafetensorsFile(options.file), options.prefix, options.hints);
  const std::string mixer = to_yaml(MixerOnly{module.mixer});
  std::vector<TensorToWrite> tensors;
  for (const auto& [name, tensor] : module.parameters)
    tensors.push_back({options.name + name, DType::f32, tensor.shape, tensor.values.data()});
  // The norm of blocks.0.mixer.* is called blocks.0.mixer_norm.*.
  const bool in_block = ends_with(options.name, "mixer.");
  if (in_block)
    for (const auto& [name, tensor] : module.norm)
      tensors.push_back({options.name.substr(0, options.name.size() - 1) + "_norm." + name, DType::f32, tensor.shape,
                         tensor.values.data()});
  replace_file(options.output, [&](const std::string& unfinished) {
    write_safetensors(unfinished, tensors, {{"source", module.source}, {"mixer", mixer}});
  });
  const std::string reach = module.max_length > 0 ? fmt::format(" for up to {} tokens", module.max_length) : "";
  std::cout << fmt::format("{} of width {}{}, written to {}. Its configuration is:\n{}", module.source, module.width,
                           reach, options.output, mixer);
  if (!module.norm.empty() && !in_block)
    std::cout << "The norm in front of the mixer was not written: with --name NAME.mixer. it is written as "
                 "NAME.mixer_norm.\n";
  return exit_done;
}

}  // namespace

void add_import_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command =
      cli.add_subcommand("import", "Convert the weights of a published PyTorch module to those of a Capstan mixer");
  const auto options = std::make_shared<ImportOptions>();
  command->add_option("file", options->file, "safetensors file with the module's state dict")
      ->required()
      ->type_name("FILE");
  command->add_option("-o,--output", options->output, "safetensors file to write")->required()->type_name("FILE");
  command->add_option("--prefix", options->prefix, "prefix of the module's names in the file, such as encoder.aft.");
  command->add_option("--name", options->name, "prefix of the names to write, such as blocks.0.mixer.");
  const auto number = [&](const std::string& name, int64_t& value, const std::string& help) {
    command->add_option(name, value, help)->check(number_check(length_from(1)));
  };
  number("--window", options->hints.window, "for AFTLocal, if the file has no local_mask: its window");
  number("--length", options->hints.length, "for GAU: the length of the texts it was trained on");
  number("--chunk", options->hints.chunk, "for FLASH: its group_size");
  command->add_flag("--laplace", options->hints.laplace, "for GAU and FLASH modules that use laplace_attn_fn");
  command->on_stray_argument(
      [](const std::string& argument) { return fmt::format("the file to write is given with --output {}", argument); });
  command->footer(
      "Known modules: AFT_FULL (fc_q, fc_k, fc_v, position_biases), AFTLocal (query, key, value, output, pos_bias), "
      "Fastformer's FastSelfAttention (query, query_att, key, key_att, transform), alone or as self with "
      "output.dense, and FLASH-pytorch's GAU and FLASH (to_hidden, to_qk, offsetscale or qk_offset_scale).\n"
      "For example:  capstan import aft.safetensors --prefix encoder.aft. --name blocks.0.mixer. -o mixer.safetensors");
  command->callback([options, choose] { choose([options] { return import_weights(*options); }); });
}

}  // namespace capstan
