// capstan report: an HTML page about runs. tests/cli/runs/test_report.cpp.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/log.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/strings/strings.hpp"
#include "run/predictions/completions.hpp"
#include "run/report/page.hpp"
#include "run/setup/file_safety.hpp"

namespace capstan {
namespace {

struct ReportOptions {
  std::vector<std::string> runs;            // run folders, or folders of runs
  std::string output, split, text;          // the HTML file; the split and the example text, empty: chosen
  bool curves_only = false, trust = false;  // trust: show texts of files that may not be the run's own
};

/// Throws ConfigError for models of different types: their losses cannot share an axis.
void check_one_task(const std::vector<RunRecord>& runs) {
  const auto task = [](const RunRecord& run) { return run.config.model.index(); };
  for (const RunRecord& run : runs)
    if (task(run) != task(runs.front()))
      throw ConfigError(fmt::format("report: {} is a {} and {} a {}: write one report for each kind",
                                    runs.front().folder, type_of(runs.front().config.model), run.folder,
                                    type_of(run.config.model)));
}

/// Refuses a file that cannot be written, before models are opened and evaluated for minutes.
void check_output(const std::string& output) {
  const std::filesystem::path folder = std::filesystem::absolute(output).parent_path();
  if (std::error_code unknown; !std::filesystem::is_directory(folder, unknown))
    throw ConfigError(fmt::format("--output: there is no folder {}: create it first", folder.string()));
  check_output_file(output);
}

/// A note in place of an error's message, which could quote the files: it has only their names.
std::string unread_files(const SavedRun& run) {
  std::vector<std::string> paths;
  for (const SourceFiles& files : facts_of(run.config.data).files)
    paths.insert(paths.end(), files.paths.begin(), files.paths.end());
  return fmt::format("{} could not be read, or may not be what the run was trained with", join(paths));
}

/// The beginning of a text, and what the model writes after it.
std::pair<std::string, std::string> sample_of(const SavedRun& run, const Batch& example) {
  constexpr int64_t begun = 24, written = 240;  // tokens
  std::vector<int32_t> prompt;
  for (int64_t t = 0; t < std::min(begun, example.tokens.size()); ++t)
    if (example.segment_ids[t] == example.segment_ids[0] && example.tokens[t] < run.tokenizer->vocabulary_size())
      prompt.push_back(example.tokens[t]);
  CompletionOptions options;
  options.tokens = written;
  const std::string text = run.tokenizer->decode(prompt);
  return {text, completions_of(run, text, options).front().text};
}

/// Adds what needs the data: figures, as capstan eval prints them, and, if the data are known to be those of the run's
/// training or the user trusts it, texts.
std::optional<Batch> add_from_data(const ReportOptions& options, const SavedRun& run, ReportedRun& reported) {
  const ModelFacts facts = facts_of(run.config.model);
  const bool writes_targets = facts_of(run.config.data).has_pairs;
  std::optional<Batch> example;
  if (!options.text.empty()) example = example_of(run, options.text);
  if (example && !facts.classifies() && !writes_targets) return example;
  const auto data = open_saved_data(run);
  const Split split = held_out_split(options.split, *data);
  if ((facts.classifies() || writes_targets) && !(writes_targets && split == Split::train))
    reported.evaluation = evaluate_split(run, *data, split);
  const bool known = options.trust || are_known(run, *data, split);
  if (!known && reported.evaluation && reported.evaluation->pairs) reported.evaluation->pairs->examples.clear();
  if (example) return example;
  if (!known)
    throw Error(
        fmt::format("the files of the {} split are not known to be those that the run was trained with: show "
                    "their texts with --trust",
                    to_string(split)));
  return example_of(*data, split);
}

/// Adds the results of a linear classifier, and the n-grams with its largest weights, whose names are in the training
/// texts. `attempt` makes an error a note.
template <class Attempt>
void add_from_texts(const ReportOptions& options, SavedRun& run, ReportedRun& reported, const Attempt& attempt) {
  std::unique_ptr<DataSource> data;
  attempt("no results", [&] {
    data = open_saved_data(run);
    const Split split = held_out_split(options.split, *data);
    if (!options.split.empty() || data->has(split)) reported.evaluation = evaluate_split(run, *data, split);
  });
  attempt("no n-grams", [&] {
    if (!data) data = open_saved_data(run, Split::train);  // the test data may be what is missing
    if (!options.trust && !are_known(run, *data, Split::train))
      throw Error(
          "the training texts, which have the names of the n-grams, are not known to be those of the run: use "
          "them with --trust");
    reported.ngrams = ngram_view(run, data->texts(Split::train));
  });
}

/// Adds what needs the trained model. An error becomes a note on the page: the curves are useful without the model.
void add_model_view(const ReportOptions& options, ReportedRun& reported) {
  const auto note = [&](const std::string& missing, const std::exception& error) {
    reported.notes.push_back(fmt::format("{}: {}", missing, error.what()));
    log_warning(fmt::format("{}: {}", reported.record.folder, reported.notes.back()));
  };
  try {
    SavedRun run = open_run(reported.record.folder);
    const ModelFacts facts = facts_of(run.config.model);
    set_threads(static_cast<int>(run.config.threads));
    use_kernels(run.config.train);
    reserve_product_memory();
    const auto attempt = [&](const char* wanted, const auto& add) {
      try {
        add();
      } catch (const std::exception& error) {
        const char* const missing = facts.classifies() && reported.evaluation ? wanted : "no results";
        note(missing, error);
        // The message may quote what the files hold, which must not be on the page of a stranger's run.
        if (!options.trust) reported.notes.back() = fmt::format("{}: {}", missing, unread_files(run));
      }
    };
    if (facts.reads_texts) return add_from_texts(options, run, reported, attempt);
    std::optional<Batch> example;
    attempt("no example text", [&] { example = add_from_data(options, run, reported); });
    reported.model = view_of(run, example);
    if (example && facts.predicts == Predicts::next_token && !facts_of(run.config.data).has_pairs)
      reported.sample = sample_of(run, *example);
  } catch (const std::exception& error) {
    note("the model is not shown", error);
  }
}

/// The page is written at the end, whole or not at all. What is wrong with the options is found before any model is
/// opened.
int write_report(const ReportOptions& options) {
  if (!options.split.empty()) split_named(options.split);
  check_output(options.output);
  if (!options.trust)
    for (const std::string& run : options.runs) refuse_links_outside(run);
  std::vector<RunRecord> records = read_records(options.runs);
  check_one_task(records);
  for (const RunRecord& record : records) refuse_data_file(options.output, record.config);
  std::vector<ReportedRun> runs;
  for (RunRecord& record : records) {
    runs.push_back({std::move(record)});
    if (!options.curves_only) add_model_view(options, runs.back());
  }
  replace_file(options.output, report_page(runs));
  log_info(fmt::format("{}: {} {}", options.output, runs.size(), runs.size() == 1 ? "run" : "runs"));
  return exit_done;
}

}  // namespace

void add_report_command(CommandParser& cli) {
  const auto [command, options] = cli.add_subcommand<ReportOptions>(
      "report", "Write an HTML page about runs: results, comparison, learning curves, and what the models learnt",
      write_report);
  command.add_option("runs", options.runs, "run folders, or folders of runs", "RUN")->required();
  command.add_option("-o,--output", options.output, "HTML file to write", "FILE")->required();
  command.add_option("--split", options.split,
                     "split for results and example texts: train, valid or test; default: as of capstan eval");
  command.add_option(
      "--text", options.text,
      "text that the mixing weights are shown for, and that a language model continues; default: one of the split",
      "TEXT");
  command.add_flag("--trust", options.trust, trust_help);
  command.add_flag("--curves-only", options.curves_only, "leave out everything that needs the models and their data");
  command.footer(
      R"(The page is one file that loads nothing else. Of classifiers it has the figures of capstan eval, of pairs and
language models examples of what they write, and of the layers the position biases of aft-full, aft-local and
aft-conv and the weights that fastformer, flash, gau and attention give to the tokens of an example text.
For example:  capstan report runs/listops/* --output listops.html)");
}

}  // namespace capstan
