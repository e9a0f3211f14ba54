// capstan generate: what a language model writes after a prompt, or after each line of standard input.
// tests/cli/runs/test_commands.cpp.
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <iostream>
#include <limits>

#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "data/files/text_file.hpp"
#include "run/run.hpp"

namespace capstan {
namespace {

struct GenerateCommandOptions {
  std::string run, prompt, prompt_file;  // the prompt is a text or the content of a file; both empty: no prompt
  bool interactive = false;              // each line of standard input is a prompt
  std::vector<std::string> logit_bias;   // each TOKEN=NUMBER
  CompletionOptions completion;
};

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
    print_completions(run, prompt_from(line, fmt::format("stdin:{}", ++number)), options, std::cout);
  }
}

/// The text of --prompt or --prompt-file. At most 64 million bytes; the end of a file's last line is not
/// part of it.
std::string prompt_text(const GenerateCommandOptions& options) {
  if (options.prompt_file.empty()) return options.prompt;
  std::string text = TextReader::input(options.prompt_file, 64).read_rest();  // 64: a stray file cannot fill memory
  if (!text.empty() && text.back() == '\n') text.pop_back();
  if (!text.empty() && text.back() == '\r') text.pop_back();
  return text;
}

/// TOKEN=NUMBER, as in --logit-bias 17=-100.
std::pair<int32_t, double> bias_of(const std::string& given) {
  const size_t equals = std::min(given.find('='), given.size());
  const auto token = parse_integer(given.substr(0, equals));
  double bias = std::nan("");
  std::from_chars(given.data() + std::min(equals + 1, given.size()), given.data() + given.size(), bias);
  if (!token || *token < 0 || *token > std::numeric_limits<int32_t>::max() || !(std::abs(bias) <= 100))
    throw ConfigError(
        fmt::format("--logit-bias {}: expected TOKEN=NUMBER, a token id and a number from -100 to 100", given));
  return {static_cast<int32_t>(*token), bias};
}

/// A text of --stop, in which \n is the end of a line, \t a tab and \\ a backslash: a shell passes them on as two
/// characters.
std::string stop_text(const std::string& given) {
  std::string text;
  for (size_t i = 0; i < given.size(); ++i) {
    const char next = given[i] == '\\' && i + 1 < given.size() ? given[i + 1] : '\0';
    const bool escape = next == 'n' || next == 't' || next == '\\';
    text += !escape ? given[i] : next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
    i += escape ? 1 : 0;
  }
  if (text.empty()) throw ConfigError("--stop: the text must not be empty");
  return text;
}

int generate_text(const GenerateCommandOptions& options) {
  CompletionOptions completion = options.completion;
  for (std::string& stop : completion.stop) stop = stop_text(stop);
  for (const std::string& bias : options.logit_bias) completion.sampling.logit_bias.insert(bias_of(bias));
  if (isatty(STDOUT_FILENO) == 0) completion.invalid = InvalidBytes::kept;  // another program reads them
  const Run run = Run::open(options.run);
  run.model->that_predicts(Predicts::next_token);
  const RawOutput raw;
  const std::string place = options.prompt_file.empty() ? "--prompt" : options.prompt_file;
  if (options.interactive)
    answer_lines(run, completion);
  else
    print_completions(run, prompt_from(prompt_text(options), place), completion, std::cout);
  return exit_done;
}

void add_sampling_options(CLI::App& command, SamplingConfig& sampling) {
  add_number(command, "--temperature", sampling.temperature, at_least(0),
             "0 = always the most probable token; above 1 = more random");
  add_number(command, "--top-k", sampling.top_k, size_from(0), "sample from this many most probable tokens; 0 = all");
  add_number(command, "--top-p", sampling.top_p, between(0, 1),
             "sample from the most probable tokens that together have this probability");
  add_number(command, "--min-p", sampling.min_p, between(0, 1),
             "sample from the tokens that are at least this many times as probable as the most probable one");
  add_number(command, "--repetition-penalty", sampling.repetition_penalty, greater(0),
             "above 1 = tokens that occurred before become less likely");
  add_number(command, "--frequency-penalty", sampling.frequency_penalty, between(-2, 2),
             "taken from a token's logit each time that it was written");
  add_number(command, "--presence-penalty", sampling.presence_penalty, between(-2, 2),
             "taken from the logit of a token that was written");
  add_number(command, "--seed", sampling.seed, at_least(0), "the same seed gives the same text");
}

/// What is continued: a text, that of a file, or each line of standard input.
void add_prompt_options(CLI::App& command, GenerateCommandOptions& options) {
  CLI::Option* const prompt = command.add_option("-p,--prompt", options.prompt, "text to continue");
  CLI::Option* const file =
      command
          .add_option("--prompt-file", options.prompt_file,
                      "file whose text is continued, without the end of its last line; - is standard input")
          ->type_name("FILE")
          ->excludes(prompt);
  command
      .add_flag("--interactive", options.interactive,
                "continue every line of standard input as it comes; each is a text of its own")
      ->excludes(prompt)
      ->excludes(file);
}

}  // namespace

void add_generate_command(CLI::App& program) {
  const auto [command, options] =
      add_command(program, "generate", "Generate text with a trained language model", generate_text);
  CompletionOptions& completion = options.completion;
  add_run(command, options.run);
  add_prompt_options(command, options);
  add_number(command, "--num-samples", completion.samples, between(1, 65536),
             "number of texts, written together; they are separated by a line ---");
  add_number(command, "-n,--tokens", completion.max_tokens, count_from(-1),
             "largest number of new tokens; -1 = no limit");
  add_sampling_options(command, completion.sampling);
  command.add_option("--logit-bias", options.logit_bias, "TOKEN=NUMBER: is added to the token's logit (repeatable)");
  add_word(command, "--weights", completion.weights,
           "number format of the weights: float32, bf16 (8 bits of mantissa) or int8 (8 bits and a scale per output); "
           "half or a quarter as much memory is read per token, which takes less time");
  command.add_option("--stop", completion.stop,
                     "generation stops before this text, which is not printed; \\n is a line end (repeatable)");
  command.add_flag_callback(
      "--no-slide", [&completion] { completion.slide = false; },
      "stop at the model's last position instead of going on from the last tokens, half as many as positions");
  command.footer(
      R"(For example:  capstan generate runs/quickstart-lm --prompt "The " --tokens 400 --temperature 0.8 --seed 7
              capstan generate runs/quickstart-lm --prompt-file start.txt --num-samples 4 --min-p 0.05)");
}

}  // namespace capstan
