#include "run/report/page.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/strings/strings.hpp"
#include "run/report/curves.hpp"
#include "run/report/evaluation_html.hpp"
#include "run/report/html.hpp"
#include "run/report/model_html.hpp"
#include "run/report/page_files.hpp"
#include "run/report/tables.hpp"
#include "run/summaries/run_table.hpp"
#include "train/records/reporter.hpp"

namespace capstan {
namespace {

/// What all folders begin with, up to a slash.
std::string common_folder(const std::vector<RunRecord>& runs) {
  std::string common = runs.front().folder;
  for (const RunRecord& run : runs) {
    const auto end = std::mismatch(common.begin(), common.end(), run.folder.begin(), run.folder.end()).first;
    common.erase(end, common.end());
  }
  return common.substr(0, common.rfind('/') + 1);
}

/// "runs/mine/lr=1" of one run, "lr=1" of several below runs/mine.
std::vector<std::string> names_of(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  const size_t common = runs.size() > 1 ? common_folder(runs).size() : 0;
  for (const RunRecord& run : runs) names.push_back(run.folder.substr(common));
  return names;
}

std::string title_of(const std::vector<RunRecord>& runs) {
  if (runs.size() == 1) return runs.front().folder;
  std::string folder = common_folder(runs);
  if (!folder.empty()) folder.pop_back();
  return folder.empty() ? fmt::format("{} runs", runs.size()) : fmt::format("{}: {} runs", folder, runs.size());
}

/// What the figures of a run's best validation are from.
const char* held_out(const RunRecord& run) {
  return facts_of(run.config.model).is_solved ? "cross-validated" : "validation";
}

/// What was trained on what, and when.
std::string lead_html(const std::vector<RunRecord>& runs, const std::vector<std::string>& names) {
  const RunRecord& best = runs.front();
  std::string begun = best.begun, ended = best.ended;
  for (const RunRecord& run : runs) {
    if (!run.begun.empty()) begun = std::min(begun, run.begun);
    ended = std::max(ended, run.ended);
  }
  std::vector<std::string> files;
  for (const SourceFiles& of : facts_of(best.config.data).files)
    if (files.empty()) files = of.paths;
  std::string out = fmt::format("<p>A {} on data of type {}{}{}.", type_of(best.config.model),
                                type_of(best.config.data), files.empty() ? "" : ": ", escaped_short(join_first(files)));
  constexpr size_t day = 11;  // "2026-11-24 "
  if (begun.substr(0, day) == ended.substr(0, day) && begun != ended) ended.erase(0, day);
  if (!ended.empty()) out += fmt::format(" Trained {}{}.", escaped(begun), begun == ended ? "" : "–" + escaped(ended));
  out += "</p>\n";
  if (runs.size() > 1)
    out += fmt::format("<p>The best of {} runs{}: <strong>{}</strong></p>\n", runs.size(),
                       best.best ? fmt::format(" by {} {}", held_out(best), best.config.train.monitor) : "",
                       escaped_short(names.front()));
  return out;
}

/// The figures of a run's best validation, and what it took.
Table results_of(const RunRecord& run) {
  Table figures;
  const auto add = [&](const std::string& name, const std::string& value) { figures.push_back({name, value}); };
  for (const Metric& metric : metrics()) {
    const double value = run.best ? run.best->value(metric.name) : NAN;
    if (!std::isfinite(value)) continue;
    add(fmt::format("{} {}", held_out(run), metric.monitor),
        metric.unit == Metric::Unit::share ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.4f}", value));
  }
  if (run.best && run.step > 1) add("at step", fmt::format("{} of {}", run.best->step, run.step));
  if (!run.best) add("training loss", fmt::format("{:.4f}", run.train_loss));
  add("training time", short_time(run.seconds));
  add("tokens per second", short_count(run.tokens_per_second));
  add("memory", fmt::format("{:.0f} MB", static_cast<double>(run.peak_rss_bytes) / 1e6));
  return figures;
}

/// The accuracy on the test data, beside that of the validation, where a run was evaluated on them.
void add_test_column(const std::vector<ReportedRun>& runs, Table& table) {
  std::vector<std::string> cells{"test accuracy"};
  bool any = false;
  for (const ReportedRun& run : runs) {
    const bool tested = run.evaluation && run.evaluation->split == "test";
    cells.push_back(tested ? fmt::format("{:.4f}", run.evaluation->total.accuracy()) : "-");
    any = any || tested;
  }
  if (!any) return;
  const auto beside = std::find(table[0].begin(), table[0].end(), "accuracy");
  const auto at = std::min(beside - table[0].begin() + 1, std::distance(table[0].begin(), table[0].end()));
  for (size_t i = 0; i < table.size(); ++i) table[i].insert(table[i].begin() + at, cells[i]);
}

std::string comparison_html(const std::vector<ReportedRun>& reported, const std::vector<RunRecord>& runs,
                            const std::vector<std::string>& names) {
  auto [common, table] = compared(runs);
  for (size_t i = 0; i < names.size(); ++i) table[i + 1][0] = names[i];
  add_test_column(reported, table);
  std::string out = "<h2>Comparison</h2>\n" + table_html(table, "comparison of the runs", true);
  if (!common.empty()) out += fmt::format("<p class=\"hint\">The same in all: {}.</p>\n", escaped(join(common)));
  const Table seeds = seed_table(runs);
  if (!seeds.empty()) out += "<p>Over seeds and folds, mean ± standard deviation:</p>" + table_html(seeds, "means");
  return out;
}

/// What was derived from the model of a run; headings are of this level.
std::string run_html(const ReportedRun& run, int level) {
  std::string out;
  const auto add = [&](const std::string& title, const std::string& html) {
    if (!html.empty()) out += fmt::format("<h{0}>{1}</h{0}>\n{2}", level, title, html);
  };
  for (const std::string& note : run.notes) out += fmt::format("<p class=\"note\">{}</p>\n", escaped(note));
  if (run.evaluation)
    add(fmt::format("Results on the {} data", run.evaluation->split == "valid" ? "validation" : run.evaluation->split),
        evaluation_html(*run.evaluation));
  add("N-grams with the largest weights", ngrams_html(run.ngrams));
  if (!run.sample.second.empty())
    add("A sample of text", fmt::format("<blockquote><strong>{}</strong>{}</blockquote>\n", escaped(run.sample.first),
                                        escaped(run.sample.second)));
  if (run.model) add("What the mixers learnt", model_html(*run.model));
  add("Configuration", fmt::format("<details><summary>All keys</summary><pre tabindex=\"0\" role=\"region\" "
                                   "aria-label=\"all keys\">{}</pre></details>\n",
                                   escaped(to_yaml(run.record.config))));
  return out;
}

}  // namespace

std::string report_page(const std::vector<ReportedRun>& runs) {
  std::vector<RunRecord> records;
  for (const ReportedRun& run : runs) records.push_back(run.record);
  const std::vector<std::string> names = names_of(records);
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<meta "
      "name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{0} – Capstan</title>\n<style>{1}"
      "</style></head>\n<body><header><h1>{0}</h1>\n",
      escaped_short(title_of(records)), report_style);
  out += lead_html(records, names) + figures_html(results_of(records.front())) + "</header>\n<main>";
  if (runs.size() > 1) out += comparison_html(runs, records, names);
  if (const std::string curves = curves_html(records, names); !curves.empty())
    out += "<h2>Learning curves</h2>\n" + curves;
  if (runs.size() == 1) out += run_html(runs.front(), 2);
  if (runs.size() > 1) out += "<h2>The runs</h2>\n";
  for (size_t i = 0; runs.size() > 1 && i < runs.size(); ++i)
    out += fmt::format("<details class=\"run\"{}><summary>{}</summary>{}</details>\n", i == 0 ? " open" : "",
                       escaped_short(names[i]), run_html(runs[i], 3));
  return out + fmt::format("</main>\n<script>{}</script></body></html>\n", report_script);
}

}  // namespace capstan
