// Adds the options of commands that read texts, opens the texts, and hands them on in batches. A text that cannot be
// used must not keep those in front of it from being computed: tests/cli/runs/test_commands.cpp ("predict answers for
// ...").
#include "apps/command_line/text_options.hpp"

#include <utility>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/output.hpp"

namespace capstan {

/// The values of --input: those of data.format, with "lines" inserted after their first one, "auto".
static std::vector<std::string> input_formats() {
  std::vector<std::string> names = data_format_names();
  names.insert(names.begin() + 1, "lines");
  return names;
}

void add_set_option(CommandParser& command, std::vector<std::string>& overrides) {
  command
      .add_option("-s,--set", overrides, "change a key of the run: --set data.test=[other.txt] (repeatable)",
                  "KEY=VALUE")
      ->repeats();
}

void add_text_options(CommandParser& command, TextOptions& options) {
  TextInputOptions& input = options.input;
  command.add_option("run", options.run, "run folder, or the folder of a checkpoint", "RUN")->required();
  command.add_option("file", input.file, "the texts, or a folder of such files; - is standard input", "FILE");
  command.add_choice(
      "--input", input.format, input_formats(),
      "lines (one text per line), the format of a table with the columns of the run's data, or folders (one text per "
      "file); auto: by the name of the file, tsv where all its first lines have more columns than a text, folders "
      "for a folder, and for a file if the run was trained on folders");
  command
      .add_option("--text-column", input.text_columns,
                  "number, name or key of the column of the texts, for a table with other columns than the run's data; "
                  "repeated for a pair of texts",
                  "COLUMN")
      ->one_each();
  add_set_option(command, options.overrides);
}

void add_adapt_options(CommandParser& command, AdaptOptions& options, const std::string& purpose) {
  command.add_number("--cache", options.cache, between(0, max_cached_tokens),
                     purpose + " a continuous cache of so many tokens, whose rule is chosen on the validation data");
  command.add_number("--adapt", options.rate, between(0, 1),
                     purpose +
                         " weights that go on learning, at this rate, from each window after it was scored (dynamic "
                         "evaluation); 1e-4 to 3e-4 is a good start");
  command.add_number("--adapt-decay", options.decay, between(0, 1),
                     "for --adapt: share of the way back to the trained weights that each window goes");
}

void check_adapt_options(const AdaptOptions& options) {
  if (options.decay != AdaptOptions().decay && options.rate == 0)
    throw ConfigError("--adapt-decay: is for --adapt RATE");
}

TextInput open_texts(const Run& run, TextOptions options, const std::string& command) {
  TextInputOptions& input = options.input;
  input.utf8 = run.saved().tokenizer->needs_utf8();
  input.classes = run.classes();
  input.command = command + " " + options.run;
  return TextInput(input, run.config().data);
}

void for_each_batch(TextInput& texts, size_t size, const std::function<void(const std::vector<InputText>&)>& take) {
  std::vector<InputText> batch;
  const auto hand_on = [&] {
    const std::vector<InputText> full = std::exchange(batch, {});
    if (full.empty()) return;
    try {
      take(full);
    } catch (const TextError& error) {
      const auto index = static_cast<std::ptrdiff_t>(error.index());
      if (index > 0) take({full.begin(), full.begin() + index});
      flush_output();
      throw;
    }
    flush_output();
  };
  try {
    for (InputText text; texts.next(text);) {
      batch.push_back(std::move(text));
      if (batch.size() >= size || texts.idle()) hand_on();
    }
  } catch (const Error&) {
    hand_on();  // the texts that precede the one that cannot be read
    throw;
  }
  hand_on();
}

}  // namespace capstan
