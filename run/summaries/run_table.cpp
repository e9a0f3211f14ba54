// Makes tables of runs: one row for each run, and one for runs that differ in their seed or fold alone. A comparison
// leaves out columns that are equal in all runs. Scripts read the CSV, whose headings must stay:
// tests/run/test_run_table.cpp.
#include "run/summaries/run_table.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/strings/printable.hpp"
#include "core/strings/quantities.hpp"
#include "core/strings/strings.hpp"
#include "train/records/reporter.hpp"

namespace capstan {
namespace {

using Row = std::vector<std::string>;

/// Formats the values of a cell in either style. A missing value is "-" for people and empty for programs.
class Cells {
 public:
  explicit Cells(TableStyle style) : programs_(style == TableStyle::programs) {}

  std::string none() const { return programs_ ? "" : "-"; }
  std::string number(double value, int digits) const {
    if (!std::isfinite(value)) return none();
    return programs_ ? fmt::format("{}", value) : fmt::format("{:.{}f}", value, digits);
  }
  std::string time(double seconds) const { return programs_ ? number(seconds, 1) : short_time(seconds); }
  std::string count(double value) const { return programs_ ? number(value, 1) : short_count(value); }
  std::string megabytes(int64_t bytes) const { return number(static_cast<double>(bytes) / 1e6, 0); }

 private:
  bool programs_;
};

/// The metrics of which any run has a value, and always loss and accuracy, in the order of metrics().
std::vector<const Metric*> metrics_of(const std::vector<RunRecord>& runs) {
  std::vector<const Metric*> shown;
  for (const Metric& metric : metrics())
    if (metric.of == Metric::Of::all || std::any_of(runs.begin(), runs.end(), [&](const RunRecord& run) {
          return run.best && std::isfinite(run.best->value(metric.name));
        }))
      shown.push_back(&metric);
  return shown;
}

/// The heading of a metric's column: "micro-F1", but "valid loss", since training has a loss, too.
std::string heading(const Metric& metric, TableStyle style) {
  if (style == TableStyle::programs) return std::string("valid_") + metric.name;
  std::string title = metric.title;
  title.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(title.front())));
  return metric.unit == Metric::Unit::nats ? "valid " + title : title;
}

Row run_header(const std::vector<DifferingKey>& keys, TableStyle style, const std::vector<const Metric*>& shown) {
  const bool programs = style == TableStyle::programs;
  Row row{"run"};
  for (const DifferingKey& key : keys) row.push_back(programs ? key.path : key.short_name);
  row.insert(row.end(), {"step", programs ? "train_loss" : "train loss"});
  for (const Metric* const metric : shown) row.push_back(heading(*metric, style));
  const Row rest = programs ? Row{"best_step", "seconds", "tokens_per_second", "peak_rss_mb", "evaluated_on"}
                            : Row{"at step", "time", "tok/s", "RSS MB"};
  row.insert(row.end(), rest.begin(), rest.end());
  return row;
}

Row run_row(const RunRecord& run, size_t index, const std::vector<DifferingKey>& keys, TableStyle style,
            const std::vector<const Metric*>& shown) {
  const Cells cells(style);
  Row row{run.folder};
  for (const DifferingKey& key : keys) row.push_back(key.values[index]);
  row.push_back(std::to_string(run.step));
  row.push_back(cells.number(run.train_loss, 4));
  for (const Metric* const metric : shown)
    row.push_back(run.best ? cells.number(run.best->value(metric->name), 4) : cells.none());
  row.push_back(run.best ? std::to_string(run.best->step) : cells.none());
  row.push_back(cells.time(run.seconds));
  row.push_back(cells.count(run.tokens_per_second));
  row.push_back(cells.megabytes(run.peak_rss_bytes));
  if (style == TableStyle::programs) row.push_back(evaluated_on(run));
  return row;
}

std::string mean_and_deviation(const std::vector<double>& values) {
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  if (!std::isfinite(mean)) return "-";  // a measure that these runs do not have
  const double deviation = values.size() > 1 ? std::sqrt(squares / static_cast<double>(values.size() - 1)) : NAN;
  return std::isfinite(deviation) ? fmt::format("{:.4f} ± {:.4f}", mean, deviation) : fmt::format("{:.4f}", mean);
}

/// Prints a list after its title, wrapped after commas into lines of `width` columns.
void print_list(const std::string& title, const std::vector<std::string>& list, std::ostream& out, size_t width) {
  std::string line = title;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string next = " " + list[i] + (i + 1 < list.size() ? "," : "");
    if (width > 0 && i > 0 && display_columns(line) + display_columns(next) > width) {
      out << line << '\n';
      line = " ";
    }
    line += next;
  }
  out << line << '\n';
}

void print_block(const std::vector<RunRecord>& runs, std::ostream& out, size_t width) {
  const auto [common, table] = compared(runs);
  if (!common.empty()) print_list("the same in all:", common, out, width);
  print_text(table, out, width);
  const Table seeds = seed_table(runs);
  if (seeds.empty()) return;
  out << "\nOver seeds and folds, mean ± standard deviation:\n";
  print_text(seeds, out, width);
}

}  // namespace

Table run_table(const std::vector<RunRecord>& runs, TableStyle style) {
  const std::vector<DifferingKey> keys = differing_keys(runs);
  const std::vector<const Metric*> shown = metrics_of(runs);
  Table table{run_header(keys, style, shown)};
  for (size_t i = 0; i < runs.size(); ++i) table.push_back(run_row(runs[i], i, keys, style, shown));
  return table;
}

Table seed_table(const std::vector<RunRecord>& runs) {
  std::vector<DifferingKey> keys = differing_keys(runs);
  const auto repeats = [](const DifferingKey& key) { return key.path == "seed" || key.path == "data.fold"; };
  const auto kept = std::remove_if(keys.begin(), keys.end(), repeats);
  if (kept == keys.end()) return {};  // runs that are alike are copies, such as slim ones
  keys.erase(kept, keys.end());
  struct Group {
    std::string settings;
    Row values;
    std::vector<const RunRecord*> members;
  };
  std::vector<Group> groups;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string settings = repeated_settings(runs[i]);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.settings == settings; });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {settings, {}, {}});
      for (const DifferingKey& key : keys) group->values.push_back(key.values[i]);
    }
    group->members.push_back(&runs[i]);
  }
  if (groups.size() == runs.size()) return {};
  const bool validated = std::all_of(runs.begin(), runs.end(), [](const RunRecord& run) { return run.best; });
  Table table{Row{}};
  for (const DifferingKey& key : keys) table[0].push_back(key.short_name);
  table[0].emplace_back("runs");
  const std::vector<const Metric*> shown = validated ? metrics_of(runs) : std::vector<const Metric*>{};
  if (!validated) table[0].emplace_back("train loss");
  for (const Metric* const metric : shown) table[0].push_back(heading(*metric, TableStyle::people));
  for (const auto& [settings, values, members] : groups) {
    Row row = values;
    row.push_back(std::to_string(members.size()));
    const auto add = [&, &of_group = members](const auto& value) {
      std::vector<double> of_runs;
      for (const RunRecord* const run : of_group) of_runs.push_back(value(*run));
      row.push_back(mean_and_deviation(of_runs));
    };
    if (!validated) add([](const RunRecord& run) { return run.train_loss; });
    for (const Metric* const metric : shown) add([&](const RunRecord& run) { return run.best->value(metric->name); });
    table.push_back(row);
  }
  return table;
}

RunComparison compared(const std::vector<RunRecord>& runs) {
  Table table = run_table(runs, TableStyle::people);
  std::vector<std::string> common;
  const bool solved = std::all_of(runs.begin(), runs.end(), [](const RunRecord& run) {
    return facts_of(run.config.model).is_solved;  // then steps say nothing: there is one
  });
  for (size_t i = table.front().size(); i-- > 1;) {
    const std::string value = table[1][i];
    if (std::any_of(table.begin() + 2, table.end(), [&](const Row& row) { return row[i] != value; })) continue;
    const bool says = value != "-" && !(solved && (table[0][i] == "step" || table[0][i] == "at step"));
    if (says && runs.size() == 1) continue;
    if (says) common.insert(common.begin(), table[0][i] + " " + printable_line(value));
    for (Row& row : table) row.erase(row.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return {std::move(common), std::move(table)};
}

std::string what_is_compared(const std::vector<RunRecord>& group) {
  const std::string texts = evaluated_on(group.front());
  return fmt::format("{}: {}", type_of(group.front().config.model), texts.empty() ? "without validation" : texts);
}

void print_comparison(const std::vector<RunRecord>& runs, std::ostream& out, size_t width) {
  std::string before;
  for (const std::vector<RunRecord>& group : comparable(runs)) {
    const std::string what = what_is_compared(group);
    out << (before.empty() ? "" : "\n");
    out << printable_line(what) << (what == before ? ", whose content was another" : "") << '\n';
    print_block(group, out, width);
    before = what;
  }
}

}  // namespace capstan
