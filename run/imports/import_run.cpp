// Writes a run folder from an imported model: configuration, tokenizer and weights. tests/cli/runs/test_import_run.cpp.
#include "run/imports/import_run.hpp"

#include <filesystem>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "core/io/safetensors.hpp"
#include "core/strings/printable.hpp"
#include "core/strings/strings.hpp"
#include "data/files/text_file.hpp"
#include "data/labelled/class_names.hpp"
#include "data/tokenizers/blank_separated.hpp"
#include "run/imports/import_module.hpp"
#include "run/imports/imported_module.hpp"
#include "run/setup/file_safety.hpp"
#include "run/setup/run_model.hpp"
#include "run/yaml/config.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

std::vector<std::string> class_names(const std::string& file, int64_t count) {
  std::vector<std::string> names;
  if (file.empty()) {
    for (int64_t label = 0; label < count; ++label) names.push_back(std::to_string(label));
    return names;
  }
  names = ClassNames::from_file(file).names();
  if (static_cast<int64_t>(names.size()) != count)
    throw Error(fmt::format("{}: {} names for the {} classes of the model: one line for each is needed", file,
                            names.size(), count));
  return names;
}

/// Layers that are alike as one with `repeat`.
std::vector<LayerConfig> joined_layers(const std::vector<LayerConfig>& layers) {
  std::vector<LayerConfig> joined;
  for (const LayerConfig& layer : layers) {
    LayerConfig once = layer;
    if (!joined.empty()) once.repeat = joined.back().repeat;
    if (!joined.empty() && to_yaml(once) == to_yaml(joined.back()))
      ++joined.back().repeat;
    else
      joined.push_back(layer);
  }
  return joined;
}

/// The run's configuration, before --config and --set: the model, and data that its user has to name.
RunConfig base_config(const ImportedModel& model, const fs::path& folder, const std::vector<std::string>& classes) {
  RunConfig config;
  config.name = folder.filename().string();
  config.folder = folder.has_parent_path() ? folder.parent_path().string() : ".";
  config.model = model.config;
  config.train.steps = 1000;  // a run must end
  model_of(config).layers = joined_layers(model_of(config).layers);
  const SavedTokenizerConfig tokenizer{(folder / "tokenizer.json").string()};
  const auto limit = position_limit(model_of(config));
  if (model.classes > 0) {
    LabelledSourceConfig data;
    data.train = {"train.tsv"};
    data.classes = classes;
    data.max_length = std::min(data.max_length, limit.value_or(data.max_length));
    data.tokenizer = tokenizer;
    config.data = data;
  } else {
    TextSourceConfig data;
    data.train = {"train.txt"};
    data.sequence_length = std::min(data.sequence_length, limit.value_or(data.sequence_length));
    data.tokenizer = tokenizer;
    config.data = data;
  }
  return config;
}

RunConfig run_config(const RunConfig& base, const ConfigOptions& options) {
  ProblemList problems;
  return read_config<RunConfig>(load_tree(to_node(base), options.files, options.overrides, problems), problems);
}

/// The tokenizer of a run: that of a file, or ids as numbers without one. Throws Error unless its tokens and the
/// `added` ones of the data are as many as the rows of the embedding.
std::shared_ptr<const Tokenizer> tokenizer_for(const std::string& file, int64_t vocabulary, int64_t added) {
  std::shared_ptr<const Tokenizer> tokenizer;
  if (file.empty())
    tokenizer = std::make_shared<NumberTokenizer>(std::max<int64_t>(1, vocabulary - added));
  else if (ends_with(file, ".model"))
    tokenizer = std::make_shared<SentencePieceTokenizer>(SentencePieceTokenizer::from_file(file, {}));
  else
    tokenizer = tokenizer_from_json(read_text_file(file), file);
  if (const int64_t found = tokenizer->vocabulary_size() + added; found != vocabulary)
    throw Error(fmt::format(
        "{}: {} tokens{}, but the model's vocabulary has {}: this is not the tokenizer that it was trained with",
        file.empty() ? "ids as numbers" : file, tokenizer->vocabulary_size(),
        added > 0 ? fmt::format(" and {} that the data add", added) : "", vocabulary));
  return tokenizer;
}

/// Writes the run folder with a checkpoint of step 0, whole or not at all.
void save(const fs::path& folder, const RunConfig& config, const Tokenizer& tokenizer,
          const std::vector<std::string>& classes, const Ancestor& origin, RunModel& model) {
  RunState state;
  state.seed = static_cast<uint64_t>(config.seed);
  state.identity = {
      {"model", to_yaml(config.model)}, {"tokenizer", identity_of(tokenizer)}, {"classes", identity_of(classes)}};
  state.settings = settings_of(config.train);
  state.machine = this_machine(config.train);
  state.working_folder = fs::current_path().string();
  state.ancestry = {origin};
  Optimizer optimizer(config.train.optimizer, model.params());
  write_new_folder(folder.string(), [&](const fs::path& unfinished) {
    write_run_files(unfinished, config, tokenizer, classes);
    Checkpoints(unfinished / "checkpoints").save({model.params(), optimizer, nullptr, state}, /*best=*/true, 1);
  });
}

}  // namespace

void import_run(const ImportRunOptions& options, std::ostream& out) {
  const fs::path given = options.folder;
  if (fs::exists(given / "config.yaml") || fs::exists(given / "checkpoints"))
    throw Error(fmt::format("{}: there is a run already: give another folder", given.string()));
  refuse_file_of_run(given);
  const fs::path folder = new_folder(options.folder);
  const SafetensorsFile file(options.file);
  const ImportedModel imported = import_model(file, options.prefix, options.hints);
  const std::vector<std::string> classes =
      imported.classes > 0 ? class_names(options.classes, imported.classes) : std::vector<std::string>{};
  const RunConfig config = run_config(base_config(imported, folder, classes), options.config);
  const auto tokenizer = tokenizer_for(options.tokenizer, imported.vocabulary, facts_of(config.data).added_tokens);
  RunModel model(config, imported.vocabulary, imported.classes);
  fill(model.params(), imported.parameters);
  for (const Param& param : model.params().params())
    if (imported.parameters.count(param.name) == 0)
      throw Error(fmt::format("import: {} has no {}: was the model changed with --set or --config?", imported.source,
                              param.name));
  if (!options.verify.empty()) out << verify_import(model.model(), options.verify) << '\n';

  std::error_code unknown;
  const fs::path whole = fs::canonical(options.file, unknown);
  std::string note = "imported from " + imported.source;
  for (const std::string& difference : imported.approximations) note += "; approximate: " + difference;
  const Ancestor origin{printable_line((unknown ? fs::path(options.file) : whole).string()),
                        hash_hex(read_file(options.file)), -1, note};
  save(folder, config, *tokenizer, classes, origin, model);
  out << fmt::format("{} of {} parameters, written to {}; tokenizer: {}\n", imported.source, model.params().count(),
                     folder.string(), identity_of(*tokenizer));
  out << fmt::format("To train it further, set train.init_from: {} in a run of another name.\n", folder.string());
  print_notes(imported.notes, imported.approximations, out);
}

namespace {

/// Where the parameters of the mixer and those beside it in its block go.
struct ModelPlaces {
  std::string mixer, block;
  bool in_block = false;
};

ModelPlaces places_of(const std::string& into, const ImportedModule& module) {
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
  const ModelPlaces places = places_of(options.into, module);
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
