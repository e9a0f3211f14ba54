#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "apps/commands.hpp"
#include "apps/options.hpp"
#include "apps/run_record.hpp"
#include "core/error.hpp"
#include "train/reporter.hpp"

namespace capstan {
namespace {

struct CompareOptions {
  std::vector<std::string> runs;
  std::string format = "text";
};

using Row = std::vector<std::string>;

/// Whole numbers and times for programs in csv, for people in text.
Row row_of(const RunRecord& run, size_t index, const std::vector<DifferingKey>& keys, bool csv) {
  Row row{run.folder};
  for (const DifferingKey& key : keys) row.push_back(key.values[index]);
  const auto figure = [&](double value, int digits) {
    return csv ? fmt::format("{}", value) : fmt::format("{:.{}f}", value, digits);
  };
  row.push_back(std::to_string(run.step));
  row.push_back(figure(run.train_loss, 4));
  row.push_back(run.best ? figure(run.best->loss, 4) : csv ? "" : "-");
  row.push_back(run.best ? figure(run.best->accuracy, 4) : csv ? "" : "-");
  row.push_back(run.best ? std::to_string(run.best->step) : csv ? "" : "-");
  row.push_back(csv ? figure(run.seconds, 1) : short_time(run.seconds));
  row.push_back(csv ? figure(run.tokens_per_second, 1) : short_count(run.tokens_per_second));
  row.push_back(figure(static_cast<double>(run.peak_rss_bytes) / 1e6, 0));
  return row;
}

Row header_of(const std::vector<DifferingKey>& keys, bool csv) {
  Row row{"run"};
  for (const DifferingKey& key : keys) row.push_back(csv ? key.path : key.short_name);
  const Row names = csv ? Row{"step",      "train_loss", "valid_loss",        "valid_accuracy",
                              "best_step", "seconds",    "tokens_per_second", "peak_rss_mb"}
                        : Row{"step", "train loss", "valid loss", "accuracy", "at step", "time", "tok/s", "RSS MB"};
  row.insert(row.end(), names.begin(), names.end());
  return row;
}

void print_text(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const Row& row : rows) {
    std::cout << fmt::format("{:<{}}", row[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i) std::cout << fmt::format("  {:>{}}", row[i], widths[i]);
    std::cout << '\n';
  }
}

/// RFC 4180.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

void print_csv(const std::vector<Row>& rows) {
  for (const Row& row : rows)
    for (size_t i = 0; i < row.size(); ++i) std::cout << csv_field(row[i]) << (i + 1 < row.size() ? ',' : '\n');
}

int compare(const CompareOptions& options) {
  if (options.format != "text" && options.format != "csv")
    throw ConfigError(fmt::format("--format: {} is none of text, csv", options.format));
  const bool csv = options.format == "csv";
  std::vector<RunRecord> runs;
  for (const std::string& folder : options.runs) {
    std::error_code unknown;
    if (options.runs.size() > 1 && std::filesystem::is_regular_file(folder, unknown)) continue;  // runs/* holds any
    try {
      runs.push_back(read_record(folder));
    } catch (const Error& error) {
      spdlog::warn("{}; left out", error.what());
    }
  }
  if (runs.empty()) throw Error("compare: none of the folders is that of a run");
  // The best first; without validation by the loss of training, behind the others.
  std::stable_sort(runs.begin(), runs.end(), [](const RunRecord& a, const RunRecord& b) {
    if (a.best.has_value() != b.best.has_value()) return a.best.has_value();
    return a.best ? a.best->loss < b.best->loss : a.train_loss < b.train_loss;
  });
  const std::vector<DifferingKey> keys = differing_keys(runs);
  std::vector<Row> rows{header_of(keys, csv)};
  for (size_t i = 0; i < runs.size(); ++i) rows.push_back(row_of(runs[i], i, keys, csv));
  (csv ? print_csv : print_text)(rows);
  return exit_done;
}

}  // namespace

void add_compare_command(CLI::App& cli, const Choose& choose) {
  CLI::App* const command =
      cli.add_subcommand("compare", "One table of several runs: where their configurations differ, and what came out");
  const auto options = std::make_shared<CompareOptions>();
  command->add_option("runs", options->runs, "run folders")->required()->type_name("RUN");
  command->add_option("--format", options->format, "text or csv")->capture_default_str();
  command->footer(
      "The lowest validation loss first; accuracy and \"at step\" belong to it. Runs still training are shown as far "
      "as "
      "they are.\n"
      "For example:  capstan compare runs/*\n"
      "              capstan compare runs/listops/* --format csv > listops.csv");
  command->callback([options, choose] { choose([options] { return compare(*options); }); });
}

}  // namespace capstan
