#include <cmath>
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
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "run/predictions/scores.hpp"
#include "train/records/log.hpp"

namespace capstan {
namespace {

struct ScoreOptions {
  std::string run, format = "tsv";
  TextInputOptions input;
};

double per_token(const TextScore& score) {
  return score.log_probability / static_cast<double>(std::max<int64_t>(score.tokens, 1));
}

/// Scores and prints texts that were read; in parallel.
void print_scores(const SavedRun& run, const ScoreOptions& options, std::vector<InputText>& texts, TextScore& total) {
  std::vector<TextScore> scores(texts.size());
  std::vector<std::exception_ptr> errors(texts.size());
  parallel_units(static_cast<int64_t>(texts.size()), [&](int64_t i) {
    const OneThread alone;
    const auto at = static_cast<size_t>(i);
    try {
      scores[at] = score_of(run, texts[at]);
    } catch (...) {
      errors[at] = std::current_exception();
    }
  });
  for (size_t i = 0; i < texts.size(); ++i) {
    if (errors[i] != nullptr) std::rethrow_exception(errors[i]);
    total.log_probability += scores[i].log_probability;
    total.tokens += scores[i].tokens;
    if (options.format == "jsonl") {
      nlohmann::ordered_json line{{"log_probability", scores[i].log_probability},
                                  {"per_token", per_token(scores[i])},
                                  {"tokens", scores[i].tokens},
                                  {"text", texts[i].text}};
      if (!texts[i].label.empty()) line["target"] = texts[i].label;
      std::cout << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
    } else {
      std::cout << fmt::format("{:.6f}\t{:.6f}\t{}\n", scores[i].log_probability, per_token(scores[i]),
                               scores[i].tokens);
    }
  }
  flush_output();
  texts.clear();
}

int score(ScoreOptions options) {
  refuse_ranks("capstan score");
  if (options.format != "tsv" && options.format != "jsonl")
    throw ConfigError(fmt::format("--format: {} is not one of tsv, jsonl", options.format));
  const SavedRun run = open_run(options.run);
  run.model->language_model();
  set_threads(static_cast<int>(run.config.threads));
  reserve_product_memory();
  if (facts_of(run.config.data).has_pairs) {
    options.input.labels = true;
    if (options.input.format == "lines") throw ConfigError("--input: a pair has two columns; give tsv, csv or jsonl");
    if (options.input.format == "auto" && options.input.file == "-") options.input.format = "tsv";
  }
  options.input.utf8 = run.tokenizer->needs_utf8();
  options.input.command = fmt::format("capstan score {}", options.run);
  TextInput input(options.input, run.config.data);
  if (options.format == "tsv") std::cout << "log_probability\tper_token\ttokens\n";
  std::vector<InputText> texts;
  TextScore total;
  int64_t count = 0;
  for (InputText text; input.next(text); ++count) {
    texts.push_back(std::move(text));
    if (texts.size() >= 256 || input.idle()) print_scores(run, options, texts, total);
  }
  print_scores(run, options, texts, total);
  log_info(fmt::format("{} texts, {} tokens: log probability {:.4f}, per token {:.4f} (perplexity {:.3f})", count,
                       total.tokens, total.log_probability, per_token(total), std::exp(-per_token(total))));
  return exit_done;
}

}  // namespace

void add_score_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command =
      cli.add_subcommand("score", "Log probability of texts under a trained language model, one text after the other");
  const auto options = std::make_shared<ScoreOptions>();
  add_text_options(*command, options->run, options->input);
  command->add_option("--format", options->format, "output: tsv or jsonl")->capture_default_str();
  command->on_stray_argument(one_run);
  command->footer(
      "Each text is a document of its own. Natural logarithms; the number of tokens includes the end of a document,\n"
      "if the model knows documents. A model that was trained on pairs reads pairs and scores the target after its\n"
      "source.\n"
      "For example:  capstan score runs/quickstart-lm texts.txt\n"
      "              echo \"The tape turns.\" | capstan score runs/quickstart-lm");
  command->callback([options, choose] { choose([options] { return score(*options); }); });
}

}  // namespace capstan
