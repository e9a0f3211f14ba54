// Finds the importer of a published module or model, and compares outputs. Every tensor of the file must be taken or
// refused: tests/apps/test_import.cpp.
#include "run/imports/import_module.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/io/safetensors.hpp"
#include "core/strings/strings.hpp"
#include "nn/systems/mixer_config.hpp"
#include "run/imports/import_tensors.hpp"
#include "run/yaml/config.hpp"

namespace capstan {

void add_block(const ImportedModule& block, ModelConfig& config, ImportedTensors& tensors) {
  const std::string place = fmt::format("blocks.{}.", config.layers.size());
  for (const auto& [name, tensor] : block.parameters) tensors[place + "mixer." + name] = tensor;
  for (const auto& [name, tensor] : block.block) tensors[place + name] = tensor;
  config.layers.push_back(block.layer);
}

void finish_token_model(const ModelConfig& stack, bool causal, bool output_bias, const ImportHints& hints,
                        ImportedModel& model) {
  const auto set = [&](auto config) {
    static_cast<ModelConfig&>(config) = stack;
    config.tied_output = false;
    config.output_bias = output_bias;
    model.config = config;
  };
  if (causal) return set(LanguageModelConfig{});
  set(MaskedLanguageModelConfig{});
  if (!hints.mask_token)
    throw Error(fmt::format(
        "{}: as a bidirectional model it fills hidden tokens: give the id of the token that it reads there with "
        "--mask-token (or --causal if it is a causal language model)",
        model.source));
  if (*hints.mask_token < 0 || *hints.mask_token >= model.vocabulary)
    throw Error(fmt::format("{}: --mask-token {}: the vocabulary has the ids 0 to {}", model.source, *hints.mask_token,
                            model.vocabulary - 1));
  ImportedTensor& embedding = model.parameters.at("embed.weight");
  const auto row = embedding.values.begin() + *hints.mask_token * stack.width;
  const std::vector<float> mask(row, row + stack.width);
  embedding.values.insert(embedding.values.end(), mask.begin(), mask.end());
  ++embedding.shape[0];
  model.notes.push_back(
      fmt::format("the mask token is a copy of token {}, with an id after the vocabulary", *hints.mask_token));
}

namespace {

/// Imports by the first importer of `kind` (modules or models) that recognises the file. Importers take tensors by name
/// and check_nothing_left() refuses the rest, so that no weight is dropped without a word.
template <class Imported>
Imported import_by(std::vector<Importer<Imported>> Importers::*kind, const SafetensorsFile& file,
                   const std::string& prefix, const ImportHints& hints, const char* remedy) {
  Import import(file, prefix, hints.approximate);
  std::vector<std::string> names;
  // The first one that recognises the file imports it. An error lists all of them in this order.
  for (const Importers& system :
       {aft_importers(), fastformer_importers(), gau_importers(), flash_importers(), attention_importers()})
    for (const Importer<Imported>& importer : system.*kind) {
      names.emplace_back(importer.names);
      if (!importer.recognises(import)) continue;
      Imported imported = importer.import(import, hints);
      import.check_nothing_left();
      imported.approximations = import.approximations();
      return imported;
    }
  throw Error(fmt::format("{}: none of {} was found{}{}", file.path(), join(names),
                          prefix.empty() ? "" : " after the prefix " + prefix, remedy));
}

}  // namespace

ImportedModule import_module(const SafetensorsFile& file, const std::string& prefix, const ImportHints& hints) {
  ImportedModule module =
      import_by(&Importers::modules, file, prefix, hints, "; set --prefix to what precedes these names in the file");
  // train.init_from will read this layer from the file's metadata: values that no configuration may have are refused
  // now.
  load_config_text<LayerConfig>(to_yaml(module.layer), file.path() + ": the layer");
  return module;
}

ImportedModel import_model(const SafetensorsFile& file, const std::string& prefix, const ImportHints& hints) {
  return import_by(&Importers::models, file, prefix, hints,
                   ": --run is for whole models, --into for their parts; set --prefix to what precedes these names in "
                   "the file");
}

namespace {

/// (A, B, D) -> (B, A, D)
Array swap_first_axes(const Array& x) {
  Array out(Shape{x.dim(1), x.dim(0), x.dim(2)});
  for (int64_t a = 0; a < x.dim(0); ++a)
    for (int64_t b = 0; b < x.dim(1); ++b)
      std::copy_n(x.data() + (a * x.dim(1) + b) * x.dim(2), x.dim(2),
                  out.mutable_data() + (b * x.dim(0) + a) * x.dim(2));
  return out;
}

Array read(const SafetensorsFile& file, const std::string& name, const ImportedModule& module) {
  const FileTensor& tensor = file.at(name);
  if (tensor.shape.size() != 3 || tensor.shape[2] != module.width || tensor.size == 0)
    throw Error(fmt::format("{}: {} has shape {}; expected ({}, {})", file.path(), name, to_string(Shape(tensor.shape)),
                            module.time_first ? "time, batch" : "batch, time", module.width));
  Array value{Shape(tensor.shape)};
  tensor.copy_to(value.mutable_data());
  return module.time_first ? swap_first_axes(value) : value;
}

Ids read_ids(const SafetensorsFile& file, const std::string& name) {
  const FileTensor& tensor = file.at(name);
  if (tensor.shape.size() != 2)
    throw Error(fmt::format("{}: {} has shape {}; expected (texts, tokens)", file.path(), name,
                            to_string(Shape(tensor.shape))));
  const std::vector<double> values = tensor.to_doubles();
  for (const double value : values)
    if (!(value >= 0 && value <= std::numeric_limits<int32_t>::max()) || value != std::floor(value))
      throw Error(fmt::format("{}: {} has the value {}, which is no id of a token", file.path(), name, value));
  return Ids(Shape(tensor.shape), std::vector<int32_t>(values.begin(), values.end()));
}

/// The largest difference, as a share of the largest element of `wanted`, of the elements that count; infinite where
/// one is not finite.
template <class Counts>
double difference_of(const Array& computed, const Array& wanted, const Counts& counts) {
  double difference = 0, largest = 0;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    if (!counts(i)) continue;
    const double a = static_cast<double>(wanted[i]), b = static_cast<double>(computed[i]);
    if (!std::isfinite(a) || !std::isfinite(b)) return INFINITY;
    difference = std::max(difference, std::abs(a - b));
    largest = std::max(largest, std::abs(a));
  }
  return largest > 0 ? difference / largest : difference;
}

/// Throws Error for a difference above the tolerance, or returns the line that says how well outputs are met. `what`:
/// the name of the outputs; `of`: module or model; `check`: what the user should look at first.
std::string verified(double difference, const std::string& path, const char* what, const char* of, const char* check) {
  constexpr double tolerance = 1e-5;
  if (!(difference <= tolerance))
    throw Error(fmt::format(
        "{}: its {} are not those of the imported {}: they differ by {:.2g} of the largest one (at most {} is "
        "allowed); check {} and whether the {} was evaluated without dropout",
        path, what, of, difference, tolerance, check, of));
  return fmt::format("verified: the {} in {} are met to {:.2g} of the largest one", what, path, difference);
}

}  // namespace

void fill(ParamStore& params, const ImportedTensors& tensors, const std::string& prefix) {
  for (const auto& [name, tensor] : tensors) {
    const Param& param = params.find(prefix + name);
    if (param.var.shape().to_vector() != tensor.shape)
      throw Error(fmt::format("import: {} has shape {}, the model needs {}", name, to_string(Shape(tensor.shape)),
                              param.var.shape()));
    for (const float value : tensor.values)
      if (!std::isfinite(value)) throw Error(fmt::format("import: {} has a value that is not finite", name));
    std::copy(tensor.values.begin(), tensor.values.end(), params.values() + param.offset);
  }
}

std::string verify_import(const ImportedModule& module, const std::string& path, bool causal) {
  const SafetensorsFile file(path);
  const Array x = read(file, "x", module), y = read(file, "y", module);
  if (x.shape() != y.shape()) throw Error(fmt::format("{}: x has shape {}, y has {}", path, x.shape(), y.shape()));
  if (module.max_length > 0 && x.dim(1) > module.max_length)
    throw Error(fmt::format("{}: {} tokens are more than the {} of the module", path, x.dim(1), module.max_length));
  const TapePause no_tape;
  ParamStore params;
  const MixerShape shape{module.width, std::max<int64_t>(module.max_length, 1), causal, 1};
  const Context context = Context::evaluation(x.dim(0), x.dim(1));
  const auto output = [&] {
    if (!module.is_block) {
      const auto mixer = make_mixer(Scope(params, 1), shape, module.layer.mixer);
      params.finalize();
      fill(params, module.parameters, "");
      return mixer->forward(Var(x), context).value();
    }
    const Block block(Scope(params, 1), shape, module.layer, 0);
    params.finalize();
    fill(params, module.parameters, "mixer.");
    fill(params, module.block, "");
    return block.forward(Var(x), context).value();
  }();
  return verified(difference_of(output, y, [](int64_t) { return true; }), path, "outputs", "module",
                  causal ? "the options, --causal included" : "the options (a causal module needs --causal)");
}

std::string verify_import(const Model& model, const std::string& path) {
  const SafetensorsFile file(path);
  const Ids tokens = read_ids(file, "tokens");
  const Segments segments = file.find("segment_ids") != nullptr ? Segments(read_ids(file, "segment_ids"))
                                                                : Segments::full(tokens.dim(0), tokens.dim(1));
  if (segments.spans().empty()) throw Error(fmt::format("{}: there are no tokens: nothing would be verified", path));
  Array wanted{Shape(file.at("logits").shape)};
  file.at("logits").copy_to(wanted.mutable_data());
  const TapePause no_tape;
  const Array computed = model.logits(tokens, Context{segments}).value();
  if (computed.shape() != wanted.shape())
    throw Error(fmt::format("{}: logits has shape {}, the model gives {}", path, wanted.shape(), computed.shape()));
  const int64_t width = computed.dim(-1);
  const auto counts = [&](int64_t i) { return computed.rank() < 3 || segments.ids()[i / width] != 0; };
  return verified(difference_of(computed, wanted, counts), path, "logits", "model", "the options");
}

}  // namespace capstan
