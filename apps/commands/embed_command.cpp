#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/text_options.hpp"
#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/strings/affixes.hpp"
#include "run/predictions/text_vectors.hpp"
#include "train/records/log.hpp"

namespace capstan {
namespace {

struct EmbedOptions {
  std::string run, output;
  TextInputOptions input;
};

void print_vectors(const std::vector<InputText>& texts, const Array& vectors) {
  for (size_t i = 0; i < texts.size(); ++i) {
    const float* const row = vectors.data() + static_cast<int64_t>(i) * vectors.dim(1);
    const nlohmann::ordered_json line{{"vector", std::vector<float>(row, row + vectors.dim(1))},
                                      {"text", texts[i].text}};
    std::cout << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
  }
  flush_output();
}

int embed(EmbedOptions options) {
  refuse_ranks("capstan embed");
  if (!options.output.empty() && !ends_with(options.output, ".npy"))
    throw ConfigError(fmt::format(
        "--output: {} does not end in .npy; without --output the vectors are printed as jsonl", options.output));
  if (!options.output.empty()) check_replaceable(options.output);
  const SavedRun run = open_run(options.run);
  set_threads(static_cast<int>(run.config.threads));
  reserve_product_memory();
  options.input.utf8 = run.tokenizer->needs_utf8();
  options.input.command = fmt::format("capstan embed {}", options.run);
  TextInput input(options.input, run.config.data);
  std::vector<InputText> texts;
  std::vector<float> all;
  int64_t count = 0;
  const auto take = [&] {
    if (texts.empty()) return;
    const Array vectors = vectors_of(run, texts);
    if (options.output.empty())
      print_vectors(texts, vectors);
    else
      all.insert(all.end(), vectors.data(), vectors.data() + vectors.size());
    texts.clear();
  };
  for (InputText text; input.next(text); ++count) {
    texts.push_back(std::move(text));
    if (texts.size() >= 256 || input.idle()) take();
  }
  take();
  if (options.output.empty()) return exit_done;
  const int64_t width = run.model->stack().config().width;
  replace_file(options.output, npy_content(all, width));
  log_info(fmt::format("{}: {} vectors of {} elements", options.output, count, width));
  return exit_done;
}

}  // namespace

void add_embed_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command = cli.add_subcommand("embed", "Turn texts into vectors with a trained model");
  const auto options = std::make_shared<EmbedOptions>();
  add_text_options(*command, options->run, options->input);
  command
      ->add_option("-o,--output", options->output,
                   "file to write, .npy (texts x features, float32); without it, jsonl is printed")
      ->type_name("FILE");
  command->on_stray_argument(one_run);
  command->footer(
      "The vector of a text is what a classifier's head reads; of other models, the mean of the last states over its\n"
      "tokens. Texts are cut as in training. A text without tokens gets zeros.\n"
      "For example:  capstan embed runs/ag-news texts.txt --output vectors.npy");
  command->callback([options, choose] { choose([options] { return embed(*options); }); });
}

}  // namespace capstan
