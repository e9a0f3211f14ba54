#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/command_parser.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/options.hpp"
#include "apps/runs/run_model.hpp"
#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/machine/parallel.hpp"
#include "core/ops/softmax.hpp"
#include "core/products/blas_info.hpp"
#include "core/text/line.hpp"
#include "core/text/utf8.hpp"
#include "data/batches/batcher.hpp"

namespace capstan {
namespace {

struct PredictOptions {
  std::string run, file = "-", format = "tsv";
  int64_t batch_size = 64;
};

/// The texts' labels, in their order.
class Predictor {
 public:
  Predictor(const SavedRun& run, const PredictOptions& options)
      : run_(run), classifier_(run.model->text_classifier()), options_(options), rule_(facts_of(run.config.data).text) {
    if (options.format != "tsv" && options.format != "jsonl")
      throw ConfigError(fmt::format("--format: {} is not one of tsv, jsonl", options.format));
    if (const auto limit = classifier_.position_limit())
      rule_.max_length = rule_.max_length > 0 ? std::min(rule_.max_length, *limit) : *limit;
  }

  void add(const std::string& text, int64_t line) {
    try {
      rows_.push_back(tokens_of(text, line));
    } catch (const Error&) {
      flush();  // print the labels of the preceding texts
      throw;
    }
    texts_.push_back(text);
    if (static_cast<int64_t>(rows_.size()) >= options_.batch_size) flush();
  }

  void flush() {
    if (rows_.empty()) return;
    const Batch batch = pad_rows(rows_);
    Context context;
    context.segments = Segments(batch.segment_ids);
    const Array probabilities = softmax(classifier_.logits(batch.tokens, context)).value();
    for (size_t row = 0; row < rows_.size(); ++row)
      write(texts_[row], probabilities.data() + static_cast<int64_t>(row) * classes());
    flush_output();
    rows_.clear();
    texts_.clear();
  }

 private:
  int64_t classes() const { return static_cast<int64_t>(run_.classes.size()); }

  std::vector<int32_t> tokens_of(const std::string& text, int64_t line) const {
    const std::string file = options_.file == "-" ? "stdin" : options_.file;
    if (run_.tokenizer->needs_utf8()) check_utf8(text, file, line);
    // Tokenizers that check the text name the place within it themselves.
    return encode_text(columns_of(text, file, line), *run_.tokenizer, rule_, fmt::format("{}:{}", file, line));
  }

  /// The columns of a text pair, or the whole line.
  std::vector<std::string_view> columns_of(const std::string& text, const std::string& file, int64_t line) const {
    if (rule_.columns == 1) return {text};
    std::vector<std::string_view> columns;
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find('\t', at), text.size());
      columns.push_back(std::string_view(text).substr(at, end - at));
      at = end + 1;
    }
    if (columns.size() != rule_.columns)
      throw Error(
          fmt::format("{}:{}: found {} texts, but the model was trained with {} (data.text_columns): separate "
                      "them by a tab",
                      file, line, columns.size(), rule_.columns));
    return columns;
  }

  void write(const std::string& text, const float* probabilities) const {
    const int64_t best = std::max_element(probabilities, probabilities + classes()) - probabilities;
    const std::string& label = run_.classes[static_cast<size_t>(best)];
    if (options_.format == "jsonl") {
      nlohmann::ordered_json all;
      for (int64_t i = 0; i < classes(); ++i) all[run_.classes[static_cast<size_t>(i)]] = probabilities[i];
      const nlohmann::ordered_json line{
          {"label", label}, {"probability", probabilities[best]}, {"probabilities", all}, {"text", text}};
      std::cout << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
      return;
    }
    std::cout << label;
    for (int64_t i = 0; i < classes(); ++i) std::cout << fmt::format("\t{:.4f}", probabilities[i]);
    std::cout << '\n';
  }

  const SavedRun& run_;
  const TextClassifier& classifier_;
  const PredictOptions& options_;
  TextRule rule_;  // how a text was cut in training
  std::vector<std::vector<int32_t>> rows_;
  std::vector<std::string> texts_;
};

int predict(const PredictOptions& options) {
  const SavedRun run = open_run(options.run);
  set_threads(static_cast<int>(run.config.threads));
  reserve_product_memory();
  Predictor predictor(run, options);
  std::ifstream file;
  if (options.file != "-") {
    if (std::error_code unknown; std::filesystem::is_directory(options.file, unknown))
      throw Error(
          fmt::format("{} is a folder: give a file with one text per line, or - for standard input", options.file));
    if (std::error_code unknown; !std::filesystem::exists(options.file, unknown))
      throw Error(fmt::format("{}: no such file; to label a text itself: echo TEXT | capstan predict {}", options.file,
                              options.run));
    file.open(options.file, std::ios::binary);
    if (!file) throw_file_error("read", options.file, errno);
    if (file.peek() == std::ifstream::traits_type::eof())
      throw Error(fmt::format("{}: the file is empty: give a file with one text per line, or - for standard input",
                              options.file));
  }
  std::istream& in = options.file == "-" ? std::cin : file;
  if (options.format == "tsv") {
    std::cout << "label";
    for (const std::string& name : run.classes) std::cout << '\t' << name;
    std::cout << '\n';
  }
  int64_t line = 0;
  for (std::string text; read_line(in, text);) {
    if (!text.empty() && text.back() == '\r') text.pop_back();
    predictor.add(text, ++line);
    // Input from a pipe: print what there is instead of waiting for a full batch.
    if (in.rdbuf()->in_avail() <= 0) predictor.flush();
  }
  predictor.flush();
  return exit_done;
}

}  // namespace

void add_predict_command(CommandParser& cli, const Choose& choose) {
  CommandParser* const command = cli.add_subcommand("predict", "Label texts, one per line, with a trained classifier");
  const auto options = std::make_shared<PredictOptions>();
  command->add_option("run", options->run, "run folder, or the folder of a checkpoint")->required()->type_name("RUN");
  command->add_option("file", options->file, "texts, one per line; - is standard input")
      ->capture_default_str()
      ->type_name("FILE");
  command->add_option("--format", options->format, "tsv (label, then the probability of every class) or jsonl")
      ->capture_default_str();
  command->add_option("--batch-size", options->batch_size, "number of texts per batch")
      ->capture_default_str()
      ->check(number_check(between(1, 65536)));
  command->on_stray_argument([](const std::string&) {
    return "texts are read from one file or from standard input: echo TEXT | capstan predict RUN";
  });
  command->footer(
      "Texts longer than those the model was trained with are shortened according to data.truncate. The two texts\n"
      "of a pair are separated by a tab. At the first text that cannot be read, predict stops with an error, after\n"
      "printing the labels of the texts before it.\n"
      "For example:  capstan predict runs/ag-news texts.txt\n"
      "              echo \"[MAX 2 9 [MIN 4 7 ] 0 ]\" | capstan predict runs/quickstart-classifier");
  command->callback([options, choose] { choose([options] { return predict(*options); }); });
}

}  // namespace capstan
