#include "run/imports/import_file.hpp"

#include "core/io/file.hpp"
#include "core/io/safetensors.hpp"
#include "core/strings/strings.hpp"
#include "run/imports/import_module.hpp"
#include "run/imports/import_verify.hpp"
#include "run/imports/imported_config.hpp"
#include "run/setup/file_safety.hpp"
#include "run/yaml/config.hpp"

namespace capstan {
namespace {

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

}  // namespace

void import_file(const ImportFileOptions& options, std::ostream& out) {
  check_output_file(options.output, {options.file, options.verify});
  const ImportedModule module = import_module(SafetensorsFile(options.file), options.prefix, options.hints);
  const Places places = places_of(options.into, module);
  if (!options.verify.empty()) out << verify_import(module, options.verify, options.hints.causal) << '\n';
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
  out << fmt::format("{} of width {}{}, written to {}. Its configuration is:\n{}", module.source, module.width, reach,
                     options.output, module.is_block ? to_yaml(module.layer) : mixer);
  if (!module.block.empty() && !places.in_block)
    out << "Only the mixer was written, without what is beside it in its block, such as the norm in front of it: "
           "--into blocks.N writes all of it.\n";
  print_notes(module.notes, module.approximations, out);
}

void print_notes(const std::vector<std::string>& notes, const std::vector<std::string>& approximations,
                 std::ostream& out) {
  for (const std::string& line : notes) out << "note: " << line << "\n";
  for (const std::string& line : approximations) out << "approximate: " << line << "\n";
}

}  // namespace capstan
