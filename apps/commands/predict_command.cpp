#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/command_line/rank_options.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/text_options.hpp"
#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "runs/predictions/predictor.hpp"
#include "runs/setup/log.hpp"
#include "runs/setup/output.hpp"
#include "runs/setup/rank_agreement.hpp"

namespace capstan {
namespace {

std::string text_of(const std::vector<InputText>& texts) {
  nlohmann::json all = nlohmann::json::array();
  const auto bytes = [](const std::string& text) { return nlohmann::json::binary({text.begin(), text.end()}); };
  for (const InputText& text : texts) {
    nlohmann::json columns = nlohmann::json::array();
    for (const std::string& column : text.columns) columns.push_back(bytes(column));
    all.push_back({bytes(text.text), columns, bytes(text.label), bytes(text.place), text.line});
  }
  const std::vector<uint8_t> packed = nlohmann::json::to_cbor(all);
  return {packed.begin(), packed.end()};
}

std::vector<InputText> texts_from(const std::string& packed) {
  const auto string = [](const nlohmann::json& bytes) {
    return std::string(bytes.get_binary().begin(), bytes.get_binary().end());
  };
  std::vector<InputText> texts;
  for (const nlohmann::json& entry : nlohmann::json::from_cbor(packed)) {
    InputText text;
    text.text = string(entry.at(0));
    for (const nlohmann::json& column : entry.at(1)) text.columns.push_back(string(column));
    text.label = string(entry.at(2));
    text.place = string(entry.at(3));
    text.line = entry.at(4).get<int64_t>();
    texts.push_back(std::move(text));
  }
  return texts;
}

void predict_batch(Predictor& predictor, std::vector<InputText> texts) {
  for (InputText& text : texts) predictor.add(std::move(text));
  predictor.flush();
}

/// Of the ranks but the first: predicts what that sends, and answers with what was printed, and then with the error.
void serve(Predictor& predictor, Communicator& ranks) {
  const Communicator::Patience input(ranks);
  for (std::string packed; !(packed = ranks.receive_text(0)).empty();) {
    std::ostringstream printed;
    std::streambuf* const before = std::cout.rdbuf(printed.rdbuf());
    std::string problem;
    try {
      predict_batch(predictor, texts_from(packed));
    } catch (const Error& error) {
      problem = error.what();
    }
    std::cout.rdbuf(before);
    ranks.send_text(0, printed.str());
    ranks.send_text(0, problem);
  }
}

/// A batch for each rank, printed in the order of the texts.
void predict_batches(Predictor& predictor, std::vector<std::vector<InputText>> batches, Communicator& ranks) {
  if (batches.empty()) return;
  for (size_t rank = 1; rank < batches.size(); ++rank) ranks.send_text(static_cast<int>(rank), text_of(batches[rank]));
  predict_batch(predictor, std::move(batches.front()));
  const Communicator::Patience others(ranks);
  for (size_t rank = 1; rank < batches.size(); ++rank) {
    std::cout << ranks.receive_text(static_cast<int>(rank));
    flush_output();
    if (const std::string problem = ranks.receive_text(static_cast<int>(rank)); !problem.empty()) throw Error(problem);
  }
}

int predict(PredictOptions options, Communicator& ranks) {
  const SavedRun run = open_run(options.run);
  set_threads(threads_of_rank(ranks, run.config.threads));
  reserve_product_memory();
  const std::unique_ptr<Predictor> predictor = make_predictor(run, options);
  if (!ranks.first()) {
    serve(*predictor, ranks);
    return exit_done;
  }
  options.input.labels = options.errors;
  options.input.utf8 = run.tokenizer->needs_utf8();
  options.input.command = fmt::format("capstan predict {}", options.run);
  TextInput input(options.input, run.config.data);
  predictor->print_header();
  // What is counted over all texts, or drawn one after the other, is for one rank alone.
  const bool shared = !options.errors && options.completions.sampling.temperature == 0;
  const size_t most = shared ? static_cast<size_t>(ranks.size()) : 1;
  std::vector<std::vector<InputText>> batches;
  bool open = false;  // may the last batch grow?
  try {
    for (InputText text; input.next(text);) {
      if (!open) batches.emplace_back();
      batches.back().push_back(std::move(text));
      open = static_cast<int64_t>(batches.back().size()) < options.batch_size;
      // Input from a pipe: print what there is instead of waiting for a full batch.
      const bool idle = input.idle();
      if (idle) open = false;
      if (open || (batches.size() < most && !(idle && options.input.file == "-"))) continue;
      predict_batches(*predictor, std::exchange(batches, {}), ranks);
    }
  } catch (const Error&) {
    predict_batches(*predictor, std::move(batches), ranks);  // what precedes the text that cannot be read
    throw;
  }
  predict_batches(*predictor, std::move(batches), ranks);
  for (int rank = 1; rank < ranks.size(); ++rank) ranks.send_text(rank, "");
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
  const auto ranks = std::make_shared<RankOptions>();
  add_rank_options(*command, *ranks);
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
  command->callback([options, ranks, choose] {
    choose(
        [options, ranks] { return run_on_ranks(*ranks, [&](Communicator& all) { return predict(*options, all); }); });
  });
}

}  // namespace capstan
