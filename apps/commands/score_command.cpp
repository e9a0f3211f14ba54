// capstan score: log probabilities of texts. tests/cli/runs/test_predictions.cpp.
#include <cmath>
#include <iostream>

#include "apps/command_line/options.hpp"
#include "apps/command_line/output.hpp"
#include "apps/command_line/text_options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/log.hpp"

namespace capstan {
namespace {

struct ScoreOptions {
  std::string format = "tsv";
  TextOptions texts;
};

/// Prints a line for each text, and the sum of all in the log.
int score(ScoreOptions options) {
  const Run run = Run::open(options.texts.run, options.texts.overrides);
  run.model->that_predicts(Predicts::next_token);
  if (facts_of(run.config.data).has_pairs) {
    TextInputOptions& input = options.texts.input;
    input.labels = true;
    if (input.format == "lines") throw ConfigError("--input: a pair has two columns; give tsv, csv or jsonl");
    if (input.format == "auto" && input.file == "-") input.format = "tsv";
  }
  TextInput input = open_texts(run, options.texts, "capstan score");
  const bool jsonl = options.format == "jsonl";
  if (!jsonl) std::cout << "log_probability\tper_token\ttokens\n";
  TextScore total;
  size_t count = 0;
  for_each_batch(input, 256, [&](const std::vector<InputText>& texts) {
    const std::vector<TextScore> scores = run.score(texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      std::cout << (jsonl ? score_json(scores[i], texts[i]) : score_tsv(scores[i]));
      total.log_probability += scores[i].log_probability;
      total.tokens += scores[i].tokens;
    }
    count += texts.size();
    flush_output();
  });
  if (count == 0) {
    log_warning("there is no text: nothing was scored");
    return exit_done;
  }
  log_info(fmt::format("{} texts, {} tokens: log probability {:.4f}, per token {:.4f} (perplexity {:.3f})", count,
                       total.tokens, total.log_probability, total.per_token(), std::exp(-total.per_token())));
  return exit_done;
}

}  // namespace

void add_score_command(CLI::App& program) {
  const auto [command, options] = add_command(
      program, "score", "Log probability of texts under a trained language model, one text after the other", score);
  add_text_options(command, options.texts);
  add_format(command, options.format, {"tsv", "jsonl"});
  command.footer(
      R"(Each text is a document of its own. Natural logarithms; the number of tokens includes the end of a document,
if the model knows documents. A model that was trained on pairs reads pairs and scores the target after its
source.
For example:  capstan score runs/quickstart-lm texts.txt
              echo "The tape turns." | capstan score runs/quickstart-lm)");
}

}  // namespace capstan
