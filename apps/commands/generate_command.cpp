#include <iostream>
#include <memory>

#include "apps/commands/command_parser.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/options.hpp"
#include "apps/runs/log.hpp"
#include "apps/runs/output.hpp"
#include "apps/runs/run_model.hpp"
#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "models/generate.hpp"

namespace capstan {
namespace {

struct GenerateCommandOptions {
  std::string run, prompt;
  std::vector<std::string> stop;
  std::string weights = "float32";
  int64_t tokens = 256;
  bool no_slide = false;
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

int generate_text(const GenerateCommandOptions& options) {
  for (const std::string& stop : options.stop)
    if (stop.empty()) throw ConfigError("--stop: the text must not be empty");
  const SavedRun run = open_run(options.run);
  set_threads(static_cast<int>(run.config.threads));
  reserve_product_memory();
  const LanguageModel& model = run.model->language_model();
  std::vector<int32_t> prompt = run.tokenizer->encode(options.prompt, "--prompt");
  const std::optional<int32_t> end = end_of_document(run);
  StreamingDecoder decoder(run.tokenizer, !prompt.empty() ? prompt.back() : end ? -1 : start_token(run));
  if (prompt.empty() || end)
    prompt.insert(prompt.begin(), start_token(run));  // the beginning of a document, as in training
  StopFilter filter(options.stop);
  GenerateOptions generation;
  generation.sampling = options.sampling;
  generation.weights = weights_named(options.weights);
  generation.max_tokens = options.tokens;
  generation.slide = !options.no_slide;
  generation.stop_token = end;
  generation.on_slide = [&] {
    log_info(fmt::format("the model has only {} positions: generation continues from the last half of the text",
                         *model.position_limit()));
  };
  generation.on_token = [&](int32_t token) {
    std::cout << filter.push(decoder.push(token)) << std::flush;
    return !filter.done() && std::cout.good();
  };
  const RawOutput raw;
  std::cout << options.prompt;
  const Generated result = generate(model, prompt, generation);
  if (!filter.done()) std::cout << filter.push(decoder.finish()) << filter.finish();
  std::cout << std::endl;
  if (result.end == GenerateEnd::stop_token) log_info("the document ends here");
  if (result.end == GenerateEnd::window) log_info("stopped at the model's last position (--no-slide)");
  return exit_done;
}

}  // namespace

void add_generate_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command = cli.add_subcommand("generate", "Generate text with a trained language model");
  const auto options = std::make_shared<GenerateCommandOptions>();
  SamplingConfig& sampling = options->sampling;
  command->add_option("run", options->run, "run folder, or the folder of a checkpoint")->required()->type_name("RUN");
  command->add_option("-p,--prompt", options->prompt, "text to continue")->type_name("TEXT");
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
      "For example:  capstan generate runs/quickstart-lm --prompt \"The \" --tokens 400 --temperature 0.8 --seed 7");
  command->callback([options, choose] { choose([options] { return generate_text(*options); }); });
}

}  // namespace capstan
