// capstan generate: what a language model writes after a prompt, or after each line of standard input.
// tests/cli/runs/test_commands.cpp.
#include <unistd.h>

#include <iostream>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "data/files/text_file.hpp"
#include "run/run.hpp"

namespace capstan {
namespace {

struct GenerateCommandOptions {
  std::string run, prompt, prompt_file;        // the prompt is a text or the content of a file; both empty: no prompt
  std::string weights = "float32";             // a name of DecodeWeights
  bool no_slide = false, interactive = false;  // interactive: each line of standard input is a prompt
  CompletionOptions completion;                // its weights and slide are set from the fields above
};

/// Prints the samples at their end, separated by ---. A single one is printed piece by piece while it is written.
void print_completions(const Run& run, const InputText& prompt, CompletionOptions options) {
  const std::string given = prompt.text + (facts_of(run.config().data).has_pairs ? "\t" : "");
  if (options.samples > 1) {
    bool first = true;
    options.on_piece = [](int64_t, std::string_view) { return std::cout.good(); };
    for (const Completion& completion : run.generate(prompt, options)) {
      std::cout << (first ? "" : "---\n") << given << completion.text << std::endl;
      first = false;
    }
    return;
  }
  std::cout << given;
  options.on_piece = [](int64_t, std::string_view piece) { return (std::cout << piece << std::flush).good(); };
  const Completion only = run.generate(prompt, options).front();
  std::cout << std::endl;
  if (only.end == GenerateEnd::stop_token) log_info("the document ends here");
  if (only.end == GenerateEnd::window) log_info("stopped at the model's last position");
}

/// A text from a file or the keyboard; `place` names it in messages.
InputText prompt_from(const std::string& text, const std::string& place) {
  InputText prompt(text);
  prompt.place = place;
  return prompt;
}

/// Reads a prompt per line of standard input; a terminal shows a sign for it.
void answer_lines(const Run& run, const CompletionOptions& options) {
  const bool terminal = isatty(STDIN_FILENO) != 0;
  TextReader in = TextReader::input("-");
  int64_t number = 0;
  for (std::string line;;) {
    if (terminal) std::cerr << "> " << std::flush;
    if (!in.read_line(line)) break;
    print_completions(run, prompt_from(line, fmt::format("stdin:{}", ++number)), options);
  }
}

/// The text of --prompt or --prompt-file. At most 64 million bytes; the end of a file's last line is not
/// part of it.
std::string prompt_text(const GenerateCommandOptions& options) {
  if (options.prompt_file.empty()) return options.prompt;
  std::string text = TextReader::input(options.prompt_file, 64).read_rest();  // 64: a stray file cannot fill memory
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

int generate_text(const GenerateCommandOptions& options) {
  refuse_ranks("capstan generate");
  for (const std::string& stop : options.completion.stop)
    if (stop.empty()) throw ConfigError("--stop: the text must not be empty");
  if (static_cast<int>(!options.prompt.empty()) + static_cast<int>(!options.prompt_file.empty()) +
          static_cast<int>(options.interactive) >
      1)
    throw ConfigError("give one of --prompt, --prompt-file and --interactive");
  const Run run = Run::open(options.run);
  run.saved().model->that_predicts(Predicts::next_token);
  CompletionOptions completion = options.completion;
  completion.weights = weights_named(options.weights);
  completion.slide = !options.no_slide;
  const RawOutput raw;
  const std::string place = options.prompt_file.empty() ? "--prompt" : options.prompt_file;
  if (options.interactive)
    answer_lines(run, completion);
  else
    print_completions(run, prompt_from(prompt_text(options), place), completion);
  return exit_done;
}

void add_sampling_options(CommandParser& command, SamplingConfig& sampling) {
  command.add_number("--temperature", sampling.temperature, at_least(0),
                     "0 = always the most probable token; above 1 = more random");
  command.add_number("--top-k", sampling.top_k, size_from(0), "sample from this many most probable tokens; 0 = all");
  command.add_number("--top-p", sampling.top_p, between(0, 1),
                     "sample from the most probable tokens that together have this probability");
  command.add_number("--min-p", sampling.min_p, between(0, 1),
                     "sample from the tokens that are at least this many times as probable as the most probable one");
  command.add_number("--repetition-penalty", sampling.repetition_penalty, greater(0),
                     "above 1 = tokens that occurred before become less likely");
  command.add_number("--seed", sampling.seed, at_least(0), "the same seed gives the same text");
}

}  // namespace

void add_generate_command(CommandParser& cli) {
  const auto [command, options] = cli.add_subcommand<GenerateCommandOptions>(
      "generate", "Generate text with a trained language model", generate_text);
  CompletionOptions& completion = options.completion;
  command.add_option("run", options.run, "run folder, or the folder of a checkpoint", "RUN")->required();
  command.add_option("-p,--prompt", options.prompt, "text to continue", "TEXT");
  command.add_option("--prompt-file", options.prompt_file,
                     "file whose text is continued, without the end of its last line; - is standard input", "FILE");
  command.add_flag("--interactive", options.interactive,
                   "continue every line of standard input as it comes; each is a text of its own");
  command.add_number("--num-samples", completion.samples, between(1, 65536),
                     "number of texts, written together; they are separated by a line ---");
  command.add_number("-n,--tokens", completion.tokens, count_from(-1), "largest number of new tokens; -1 = no limit");
  add_sampling_options(command, options.completion.sampling);
  add_weights_option(command, options.weights,
                     "number format of the weights: float32, bf16 (8 bits of mantissa) or int8 (8 bits and a scale per "
                     "output); half or a quarter as much memory is read per token, which takes less time");
  command.add_option("--stop", completion.stop, "generation stops before this text, which is not printed (repeatable)",
                     "TEXT");
  command.add_flag(
      "--no-slide", options.no_slide,
      "stop at the model's last position instead of going on from the last tokens, half as many as positions");
  command.on_stray_argument([](const std::string&) { return "a text to continue is given with --prompt TEXT"; });
  command.footer(
      R"(For example:  capstan generate runs/quickstart-lm --prompt "The " --tokens 400 --temperature 0.8 --seed 7
              capstan generate runs/quickstart-lm --prompt-file start.txt --num-samples 4 --min-p 0.05)");
}

}  // namespace capstan
