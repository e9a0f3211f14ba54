#include <unistd.h>

#include <iostream>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/strings/line.hpp"
#include "data/files/text_file.hpp"
#include "models/generate.hpp"
#include "run/setup/run_model.hpp"
#include "train/records/log.hpp"

namespace capstan {
namespace {

struct GenerateCommandOptions {
  std::string run, prompt, prompt_file;
  std::vector<std::string> stop;
  std::string weights = "float32";
  int64_t tokens = 256, samples = 1;
  bool no_slide = false, interactive = false;
  SamplingConfig sampling;
};

/// Passes text on, except for what may be the beginning of a stop string.
class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// The text that can be shown now; done() is true from the end of a stop string on.
  std::string push(const std::string& text) {
    pending_ += text;
    for (const std::string& stop : stops_) {
      const size_t at = pending_.find(stop);
      if (at == std::string::npos) continue;
      done_ = true;
      return std::exchange(pending_, "").substr(0, at);
    }
    size_t keep = 0;
    for (const std::string& stop : stops_)
      for (size_t length = std::min(stop.size() - 1, pending_.size()); length > keep; --length)
        if (pending_.compare(pending_.size() - length, length, stop, 0, length) == 0) keep = length;
    const std::string shown = pending_.substr(0, pending_.size() - keep);
    pending_.erase(0, shown.size());
    return shown;
  }
  std::string finish() { return std::exchange(pending_, ""); }
  bool done() const { return done_; }

 private:
  std::vector<std::string> stops_;
  std::string pending_;
  bool done_ = false;
};

std::vector<std::string> weight_names() {
  std::vector<std::string> names;
  for (const auto& known : enum_names(DecodeWeights{})) names.emplace_back(known.name);
  return names;
}

DecodeWeights weights_named(const std::string& name) {
  for (const auto& known : enum_names(DecodeWeights{}))
    if (name == known.name) return known.value;
  throw ConfigError(fmt::format("--weights: {} is not a number format for weights", name));
}

/// The text of one sample, from its tokens.
class SampleText {
 public:
  SampleText(const SavedRun& run, const std::vector<std::string>& stops, int32_t previous)
      : decoder_(run.tokenizer, previous), filter_(stops) {}

  std::string push(int32_t token) { return filter_.push(decoder_.push(token)); }
  std::string finish() { return filter_.done() ? "" : filter_.push(decoder_.finish()) + filter_.finish(); }
  bool done() const { return filter_.done(); }

 private:
  StreamingDecoder decoder_;
  StopFilter filter_;
};

/// Continues texts with one model.
class Continuation {
 public:
  Continuation(const SavedRun& run, const GenerateCommandOptions& options)
      : run_(run), options_(options), model_(run.model->language_model()) {
    generation_.sampling = options.sampling;
    generation_.weights = weights_named(options.weights);
    generation_.max_tokens = options.tokens;
    generation_.slide = !options.no_slide;
    generation_.stop_token = end_of_document(run);
    if (const auto unknown = run.tokenizer->unknown_token()) generation_.banned.push_back(*unknown);
    if (facts_of(run.config.data).has_pairs)
      generation_.banned.push_back(*generation_.stop_token + 1);  // the separator
    generation_.on_slide = [this] {
      log_info(fmt::format("the model has only {} positions: generation continues from the last half of the text",
                           *model_.position_limit()));
    };
  }

  /// Prints the samples; a single one as it is written.
  void print(const std::string& text, const std::string& name) {
    Prompt prompt{run_.tokenizer->encode(text, name), 0};
    const std::optional<int32_t> end = end_of_document(run_);
    const int32_t previous = !prompt.tokens.empty() ? prompt.tokens.back() : end ? -1 : start_token(run_);
    if (prompt.tokens.empty() || end)
      prompt.tokens.insert(prompt.tokens.begin(), start_token(run_));  // the beginning of a document, as in training
    std::vector<Prompt> prompts;
    std::vector<SampleText> samples;
    std::vector<std::string> texts;  // of several samples
    for (int64_t i = 0; i < options_.samples; ++i) {
      prompts.push_back({prompt.tokens, i});
      samples.emplace_back(run_, options_.stop, previous);
      texts.push_back(text);
    }
    const bool streamed = options_.samples == 1;
    if (streamed) std::cout << text;
    generation_.on_token = [&](int64_t sample, int32_t token) {
      SampleText& writing = samples[static_cast<size_t>(sample)];
      const std::string more = writing.push(token);
      if (streamed)
        std::cout << more << std::flush;
      else
        texts[static_cast<size_t>(sample)] += more;
      return !writing.done() && std::cout.good();
    };
    const std::vector<Generated> results = generate_together(model_, prompts, generation_);
    for (size_t i = 0; i < samples.size(); ++i)
      std::cout << (i > 0 ? "---\n" : "") << (streamed ? "" : texts[i]) << samples[i].finish() << std::endl;
    if (!streamed) return;
    if (results.front().end == GenerateEnd::stop_token) log_info("the document ends here");
    if (results.front().end == GenerateEnd::window) log_info("stopped at the model's last position (--no-slide)");
  }

 private:
  const SavedRun& run_;
  const GenerateCommandOptions& options_;
  const LanguageModel& model_;
  GenerateOptions generation_;
};

/// One prompt per line of standard input; on a terminal with a sign that it is waited for.
void answer_lines(Continuation& continuation) {
  const bool terminal = isatty(STDIN_FILENO) != 0;
  int64_t number = 0;
  for (std::string line;;) {
    if (terminal) std::cerr << "> " << std::flush;
    if (!read_line(std::cin, line)) break;
    continuation.print(line, fmt::format("stdin:{}", ++number));
  }
}

/// The text of --prompt or --prompt-file. At most 64 million bytes; the end of a file's last line is not
/// part of it.
std::string prompt_text(const GenerateCommandOptions& options) {
  if (options.prompt_file.empty()) return options.prompt;
  std::string text = options.prompt_file == "-" ? read_all(std::cin, "stdin", size_t{1} << 26)
                                                : read_text_file(options.prompt_file, 64);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

int generate_text(const GenerateCommandOptions& options) {
  refuse_ranks("capstan generate");
  for (const std::string& stop : options.stop)
    if (stop.empty()) throw ConfigError("--stop: the text must not be empty");
  if (static_cast<int>(!options.prompt.empty()) + static_cast<int>(!options.prompt_file.empty()) +
          static_cast<int>(options.interactive) >
      1)
    throw ConfigError("give one of --prompt, --prompt-file and --interactive");
  const SavedRun run = open_run(options.run);
  set_threads(static_cast<int>(run.config.threads));
  reserve_product_memory();
  Continuation continuation(run, options);
  const RawOutput raw;
  if (options.interactive)
    answer_lines(continuation);
  else
    continuation.print(prompt_text(options), options.prompt_file.empty() ? "--prompt" : options.prompt_file);
  return exit_done;
}

}  // namespace

void add_generate_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command = cli.add_subcommand("generate", "Generate text with a trained language model");
  const auto options = std::make_shared<GenerateCommandOptions>();
  SamplingConfig& sampling = options->sampling;
  command->add_option("run", options->run, "run folder, or the folder of a checkpoint")->required()->type_name("RUN");
  command->add_option("-p,--prompt", options->prompt, "text to continue")->type_name("TEXT");
  command
      ->add_option("--prompt-file", options->prompt_file,
                   "file whose text is continued, without the end of its last line; - is standard input")
      ->type_name("FILE");
  command->add_flag("--interactive", options->interactive,
                    "continue every line of standard input as it comes; each is a text of its own");
  command
      ->add_option("--num-samples", options->samples,
                   "number of texts, written together; they are separated by a line ---")
      ->capture_default_str()
      ->check(number_check(between(1, 65536)));
  command->add_option("-n,--tokens", options->tokens, "largest number of new tokens; -1 = no limit")
      ->capture_default_str()
      ->check(number_check(count_from(-1)));
  command
      ->add_option("--temperature", sampling.temperature, "0 = always the most probable token; above 1 = more random")
      ->capture_default_str()
      ->check(number_check(at_least(0)));
  command->add_option("--top-k", sampling.top_k, "sample from this many most probable tokens; 0 = all")
      ->capture_default_str()
      ->check(number_check(size_from(0)));
  command
      ->add_option("--top-p", sampling.top_p,
                   "sample from the most probable tokens that together have this probability")
      ->capture_default_str()
      ->check(number_check(between(0, 1)));
  command
      ->add_option("--min-p", sampling.min_p,
                   "sample from the tokens that are at least this many times as probable as the most probable one")
      ->capture_default_str()
      ->check(number_check(between(0, 1)));
  command
      ->add_option("--repetition-penalty", sampling.repetition_penalty,
                   "above 1 = tokens that occurred before become less likely")
      ->capture_default_str()
      ->check(number_check(greater(0)));
  command->add_option("--seed", sampling.seed, "the same seed gives the same text")
      ->capture_default_str()
      ->check(number_check(at_least(0)));
  command
      ->add_option(
          "--weights", options->weights,
          "number format of the weights: float32, or bf16 (rounded to 8 bits of mantissa; half as much memory is "
          "read per token, which takes less time)")
      ->capture_default_str()
      ->one_of(weight_names());
  command->add_option("--stop", options->stop, "generation stops before this text, which is not printed (repeatable)")
      ->type_name("TEXT");
  command->add_flag("--no-slide", options->no_slide,
                    "stop at the model's last position instead of continuing from the last half of the text");
  command->on_stray_argument([](const std::string&) { return "a text to continue is given with --prompt TEXT"; });
  command->footer(
      "For example:  capstan generate runs/quickstart-lm --prompt \"The \" --tokens 400 --temperature 0.8 --seed 7\n"
      "              capstan generate runs/quickstart-lm --prompt-file start.txt --num-samples 4 --min-p 0.05");
  command->callback([options, choose] { choose([options] { return generate_text(*options); }); });
}

}  // namespace capstan
