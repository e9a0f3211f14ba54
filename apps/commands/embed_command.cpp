// capstan embed: texts as vectors, printed or in a file for NumPy. tests/cli/runs/test_predictions.cpp.
#include <iostream>
#include <utility>

#include "apps/command_line/next_commands.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/command_line/text_options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/log.hpp"
#include "core/strings/strings.hpp"
#include "run/predictions/text_vectors.hpp"
#include "run/setup/file_safety.hpp"

namespace capstan {
namespace {

struct EmbedOptions {
  std::string output;  // the .npy file to write; empty: vectors are printed as JSON lines
  TextOptions texts;
};

/// Everything that can be refused is checked before the texts are read. Vectors for a file are kept until the last one,
/// since its header has their number.
int embed(const EmbedOptions& options) {
  if (!options.output.empty() && !ends_with(options.output, ".npy"))
    throw ConfigError(fmt::format(
        "--output: {} does not end in .npy; without --output the vectors are printed as jsonl", options.output));
  if (!options.output.empty()) check_output_file(options.output, {options.texts.input.file});
  const Run run = Run::open(options.texts.run, options.texts.overrides);
  if (!options.output.empty()) refuse_data_file(options.output, run.config, run.folder);
  const int64_t size = run.embedding_size();  // refuses a model without vectors before the texts are read
  TextInput input = open_texts(run, options.texts, "capstan embed");
  std::vector<std::vector<float>> rows;
  for_each_batch(input, 256, [&](const std::vector<InputText>& texts) {  // 256: work for all threads, little memory
    std::vector<std::vector<float>> vectors = run.embed(texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      if (options.output.empty())
        std::cout << vector_json(vectors[i], texts[i]);
      else
        rows.push_back(std::move(vectors[i]));
    }
    flush_output();
  });
  if (options.output.empty()) return exit_done;
  replace_file(options.output, npy_content(rows, size));
  say_next(fmt::format("{}: {} vectors of {} elements", options.output, rows.size(), size),
           fmt::format("numpy.load(\"{}\") in Python", options.output),
           fmt::format("{} {}", facts_of(run.config.model).command, options.texts.run));
  return exit_done;
}

}  // namespace

void add_embed_command(CLI::App& program) {
  const auto [command, options] = add_command(program, "embed", "Turn texts into vectors with a trained model", embed);
  add_text_options(command, options.texts);
  add_output(command, options.output, "FILE",
             "file to write, .npy (texts x features, float32); without it, jsonl is printed");
  command.footer(
      R"(The vector of a text is what a classifier's head reads; of other models, the mean of the last states over its
tokens. Texts are cut as in training. A text without tokens gets zeros.
For example:  capstan embed runs/ag-news texts.txt --output vectors.npy)");
}

}  // namespace capstan
