// Reads runs for a report. A page may be of a stranger's run: texts of files are shown only where these are known to be
// what the run was trained with, and messages that could quote files go to the log alone.
// tests/cli/runs/test_strange_runs.cpp.
#include "run/report/reported_run.hpp"
#include "run/setup/run_data.hpp"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/strings/strings.hpp"
#include "run/predictions/completions.hpp"
#include "run/setup/file_safety.hpp"
#include "run/summaries/comparable_runs.hpp"

namespace capstan {
namespace {

void check_one_task(const std::vector<RunRecord>& runs) {
  const auto task = [](const RunRecord& run) { return run.config.model.index(); };
  for (const RunRecord& run : runs)
    if (task(run) != task(runs.front()))
      throw ConfigError(fmt::format("report: {} is a {} and {} a {}: write one report for each kind",
                                    runs.front().folder, type_of(runs.front().config.model), run.folder,
                                    type_of(run.config.model)));
}

void check_output(const std::string& output) {
  const std::filesystem::path folder = std::filesystem::absolute(output).parent_path();
  if (std::error_code unknown; !std::filesystem::is_directory(folder, unknown))
    throw ConfigError(fmt::format("--output: there is no folder {}: create it first", folder.string()));
  check_output_file(output);
}

/// The beginning of a text, and what the model writes after it.
std::pair<std::string, std::string> sample_of(const SavedRun& run, const Batch& example) {
  constexpr int64_t begun = 24, written = 240;  // tokens
  std::vector<int32_t> prompt;
  for (int64_t t = 0; t < std::min(begun, example.tokens.size()); ++t)
    if (example.segment_ids[t] == example.segment_ids[0] && example.tokens[t] < run.tokenizer->vocabulary_size())
      prompt.push_back(example.tokens[t]);
  CompletionOptions options;
  options.max_tokens = written;
  const std::string text = run.tokenizer->decode(prompt);
  return {text, completions_of(run, text, options).front().text};
}

/// Adds to a run what its model and its data tell.
class ModelReader {
 public:
  ModelReader(const ReportOptions& options, ReportedRun& reported)
      : options_(options),
        reported_(reported),
        run_(open_run(reported.record.folder)),
        split_(split_to_evaluate(options.split.empty() ? std::nullopt : std::optional(split_named(options.split)),
                                 run_.config)) {
    set_threads(static_cast<int>(run_.config.threads));
    use_kernels(run_.config.train);
    reserve_product_memory();
  }

  void read() {
    const ModelFacts facts = facts_of(run_.config.model);
    if (facts.reads_texts) {
      attempt("no results", [&] { evaluate(/*needed=*/!options_.split.empty()); });
      attempt("no n-grams", [&] { add_ngrams(); });
      return;
    }
    std::optional<Batch> example;
    if (!options_.text.empty()) attempt("no example text", [&] { example = example_of(run_, options_.text); });
    const bool pairs = facts_of(run_.config.data).has_pairs;
    if (facts.classifies() || pairs) attempt("no results", [&] { evaluate(/*needed=*/true); });
    if (!example) attempt("no example text", [&] { example = example_of_data(); });
    reported_.model = view_of(run_, example);
    if (example && facts.predicts == Predicts::next_token && !pairs) reported_.sample = sample_of(run_, *example);
  }

 private:
  /// An error becomes a note. Its message may quote what files hold, so the note names the files alone.
  void attempt(const char* missing, const std::function<void()>& add) {
    try {
      add();
    } catch (const std::exception& error) {
      log_warning(fmt::format("{}: {}: {}", reported_.record.folder, missing, error.what()));
      const std::string reason = options_.trust ? error.what() : unread_files();
      reported_.notes.push_back(fmt::format("{}: {}", missing, reason));
    }
  }

  std::string unread_files() const {
    std::vector<std::string> paths;
    for (const SourceFiles& files : facts_of(run_.config.data).files)
      paths.insert(paths.end(), files.paths.begin(), files.paths.end());
    return fmt::format("{} could not be read, or may not be what the run was trained with", join(paths));
  }

  const DataSource& data(Split first) {
    if (!data_) data_ = open_saved_data(run_, first);
    return *data_;
  }

  bool may_show(const DataSource& source, Split split) const {
    return options_.trust || has_data_of_training(run_, source, split);
  }

  /// Adds the figures that capstan eval prints. Not `needed`: nothing where there are no held-out data.
  void evaluate(bool needed) {
    const DataSource& source = data(split_);
    const bool pairs = facts_of(run_.config.data).has_pairs;
    if ((pairs && split_ == Split::train) || (!needed && !source.has(split_))) return;
    reported_.evaluation = evaluate_split(run_, source, split_);
    if (pairs && !may_show(source, split_)) reported_.evaluation->pairs->examples.clear();
  }

  Batch example_of_data() {
    const DataSource& source = data(split_);
    if (!may_show(source, split_))
      throw Error(
          fmt::format("the files of the {} split are not known to be those that the run was trained with: show "
                      "their texts with --trust",
                      to_string(split_)));
    return example_of(source, split_);
  }

  /// The names of the n-grams are in the training texts, which are there even if the test data are not.
  void add_ngrams() {
    const DataSource& source = data(Split::train);
    if (!may_show(source, Split::train))
      throw Error(
          "the training texts, which have the names of the n-grams, are not known to be those of the run: use them "
          "with --trust");
    reported_.ngrams = ngram_view(run_, source.texts(Split::train));
  }

  const ReportOptions& options_;
  ReportedRun& reported_;
  SavedRun run_;
  const Split split_;
  std::unique_ptr<DataSource> data_;
};

}  // namespace

std::vector<ReportedRun> reported_runs(const ReportOptions& options) {
  if (!options.split.empty()) split_named(options.split);
  check_output(options.output);
  if (!options.trust)
    for (const std::string& run : options.runs) refuse_links_outside(run);
  const std::vector<RunRecord> records = read_records(options.runs);
  check_one_task(records);
  for (const RunRecord& record : records) refuse_data_file(options.output, record.config, record.folder);
  std::vector<ReportedRun> runs;
  for (const RunRecord& record : records) {
    runs.push_back({record});
    if (options.curves_only) continue;
    try {
      ModelReader(options, runs.back()).read();
    } catch (const std::exception& error) {
      runs.back().notes.push_back(fmt::format("the model is not shown: {}", error.what()));
      log_warning(fmt::format("{}: {}", record.folder, runs.back().notes.back()));
    }
  }
  return runs;
}

}  // namespace capstan
