#include <memory>
#include <utility>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/text_options.hpp"
#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "run/predictions/predictor.hpp"
#include "train/records/log.hpp"

namespace capstan {
namespace {

int predict(PredictOptions options) {
  refuse_ranks("capstan predict");
  const SavedRun run = open_run(options.run);
  set_threads(static_cast<int>(run.config.threads));
  reserve_product_memory();
  const std::unique_ptr<Predictor> predictor = make_predictor(run, options);
  options.input.labels = options.errors;
  options.input.utf8 = run.tokenizer->needs_utf8();
  options.input.command = fmt::format("capstan predict {}", options.run);
  TextInput input(options.input, run.config.data);
  predictor->print_header();
  try {
    for (InputText text; input.next(text);) {
      predictor->add(std::move(text));
      if (input.idle()) predictor->flush();  // a pipe: print what there is instead of waiting for a full batch
    }
  } catch (const Error&) {
    predictor->flush();  // what precedes the text that cannot be read
    throw;
  }
  predictor->flush();
  if (const std::string summary = predictor->summary(); !summary.empty()) log_info(summary);
  return exit_done;
}

}  // namespace

void add_predict_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command = cli.add_subcommand(
      "predict", "Label texts, fill their blanks or complete them with a trained model, one text after the other");
  const auto options = std::make_shared<PredictOptions>();
  CompletionOptions& completions = options->completions;
  add_text_options(*command, options->run, options->input);
  command->add_option("--format", options->format, "output: tsv or jsonl")->capture_default_str();
  command->add_option("--batch-size", options->batch_size, "number of texts per batch")
      ->capture_default_str()
      ->check(number_check(between(1, 65536)));
  command
      ->add_option("-k,--top-k", options->top_k,
                   "show this many of the likeliest classes, tokens of a blank or completions (with --beam)")
      ->check(number_check(between(1, 65536)));
  command
      ->add_option("--threshold", options->threshold,
                   "for multi-label classifiers: probability from which a text has a label; 0 = the one that training "
                   "chose on the validation data")
      ->capture_default_str()
      ->check(number_check(between(0, 1)));
  command->add_flag("--echo", options->echo, "print the text, too (jsonl always has it)");
  command->add_flag("--errors", options->errors,
                    "read a table with labels (or targets) and print only what is predicted wrongly");
  command->add_option("--blank", options->blank, "for masked language models: what marks a blank")
      ->capture_default_str()
      ->type_name("TEXT");
  command
      ->add_option("-n,--tokens", completions.tokens,
                   "for pairs: largest number of new tokens; 0 = what data.max_length leaves")
      ->capture_default_str()
      ->check(number_check(length_from(0)));
  command->add_option("--beam", completions.beam, "for pairs: width of the beam search; 1 = greedy decoding")
      ->capture_default_str()
      ->check(number_check(between(1, 1024)));
  command
      ->add_option("--length-penalty", completions.length_penalty,
                   "for beam search: texts of n tokens are compared by ln p / n^PENALTY")
      ->capture_default_str()
      ->check(number_check(between(-10, 10)));
  command
      ->add_option("--temperature", completions.sampling.temperature,
                   "for pairs: above 0 = sample; 0 = always the most probable token")
      ->capture_default_str()
      ->check(number_check(at_least(0)));
  command->add_option("--top-p", completions.sampling.top_p, "for sampling: as in capstan generate")
      ->capture_default_str()
      ->check(number_check(between(0, 1)));
  command->add_option("--min-p", completions.sampling.min_p, "for sampling: as in capstan generate")
      ->capture_default_str()
      ->check(number_check(between(0, 1)));
  command->add_option("--seed", completions.sampling.seed, "for sampling: the same seed gives the same texts")
      ->capture_default_str()
      ->check(number_check(at_least(0)));
  command->on_stray_argument([](const std::string&) {
    return "texts are read from one file or from standard input: echo TEXT | capstan predict RUN";
  });
  command->footer(
      "Texts longer than those the model was trained with are shortened according to data.truncate. The two texts\n"
      "of a pair are separated by a tab. At the first text that cannot be read, predict stops with an error, after\n"
      "printing the labels of the texts before it.\n"
      "For example:  capstan predict runs/ag-news texts.txt\n"
      "              capstan predict runs/ag-news --errors test.csv\n"
      "              echo \"[MAX 2 9 [MIN 4 7 ] 0 ]\" | capstan predict runs/quickstart-classifier\n"
      "              echo \"The <mask> is out.\" | capstan predict runs/masked-lm --top-k 5\n"
      "              echo \"nine plus twelve\" | capstan predict runs/pairs --beam 4");
  command->callback([options, choose] { choose([options] { return predict(*options); }); });
}

}  // namespace capstan
