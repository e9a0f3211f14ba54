// capstan data: what the files of a configuration hold, and what looks wrong with them.
// tests/cli/inputs/test_data_check.cpp.
#include <iostream>
#include <ostream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "apps/command_line/command_parser.hpp"
#include "apps/command_line/options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/strings/printable.hpp"
#include "data/checks/report.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/run_memory.hpp"
#include "run/summaries/run_table.hpp"
#include "run/training/train_run.hpp"

namespace capstan {
namespace {

std::string text_of(const DataTable::Cell& cell) {
  if (const auto* const number = std::get_if<double>(&cell)) return fmt::format("{:.1f}", *number);
  if (const auto* const count = std::get_if<int64_t>(&cell)) return fmt::format("{}", *count);
  return std::get<std::string>(cell);
}

/// Prints the first rows of a table. The JSON has all of them.
void print_table(const DataTable& table, std::ostream& out) {
  constexpr size_t shown = 50;  // rows: a table of many classes would push warnings off the screen
  Table text{table.columns};
  for (const auto& cells : table.rows) {
    if (text.size() > shown) break;
    std::vector<std::string> row;
    for (const DataTable::Cell& cell : cells) row.push_back(text_of(cell));
    text.push_back(std::move(row));
  }
  out << table.title << '\n';
  print_text(text, out);
  if (table.rows.size() > shown)
    out << fmt::format("... and {} more rows (--format json has all)\n", table.rows.size() - shown);
}

nlohmann::ordered_json json_of(const DataTable& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& cells : table.rows) {
    nlohmann::ordered_json row;
    for (size_t i = 0; i < cells.size(); ++i)
      std::visit([&](const auto& value) { row[table.columns[i]] = value; }, cells[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Prints warnings, errors and tables.
void print_text(const DataReport& report, std::ostream& out) {
  for (const DataWarning& warning : report.warnings) out << "warning: " << printable(warning.message) << '\n';
  for (const std::string& error : report.errors) out << "error: " << printable(error) << '\n';
  if (report.warnings.empty() && report.errors.empty()) out << "nothing unusual found\n";
  for (const DataTable& table : report.tables) {
    out << '\n';
    print_table(table, out);
  }
}

/// Prints one object on one line: a list of objects for each table, then "warnings" and "errors".
void print_json(const DataReport& report, std::ostream& out) {
  nlohmann::ordered_json json;
  for (const DataTable& table : report.tables) json[table.name] = json_of(table);
  json["warnings"] = nlohmann::ordered_json::array();
  for (const DataWarning& warning : report.warnings)
    json["warnings"].push_back({{"check", warning.check}, {"message", warning.message}});
  json["errors"] = report.errors;
  out << json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

struct DataCheckOptions {
  ConfigOptions config;
  std::string format = "text";
};

/// Refuses data that cannot be opened, or would not fit into memory, before anything is read.
void check_readable(const RunConfig& config, Problems& problems) {
  check_data_files(config, problems);
  if (const auto memory = data_memory_problem(config, memory_limit())) problems.add(memory->key, memory->message);
}

int check_data(const DataCheckOptions& options) {
  const RunConfig config = load_run(options.config, check_readable);
  const DataReport report = check_source(config.data, source_inputs(config));
  if (options.format == "json")
    print_json(report, std::cout);
  else
    print_text(report, std::cout);
  return report.errors.empty() ? exit_done : exit_failed;
}

}  // namespace

void add_data_command(CommandParser& cli) {
  CommandParser* const command = cli.add_subcommand("data", "Look at the data of a configuration");
  command->require_subcommand();
  command->footer("For example:  capstan data check --config configs/classify.yaml");
  const auto [check, options] = command->add_subcommand<DataCheckOptions>(
      "check", "Count and check the data before training, and warn of what looks wrong", check_data);
  add_config_options(check, options.config)->required();
  check.add_choice("--format", options.format, {"text", "json"}, "text, or json (everything on one line)");
  check.footer(
      R"(Shows for each split: examples, classes, lengths in tokens, truncated and duplicate texts, texts that two
splits share, unknown tokens, and how the files are encoded. "in train" counts the texts of a split that are
also in train; "other label" those that have a copy with another label. Warnings name the key to set, and are
repeated by capstan train. Exit code 0 with or without warnings, 1 with errors that would stop the training.
For example:  capstan data check --config configs/classify.yaml --set data.train=[mine.tsv] data.test=[])");
}

}  // namespace capstan
