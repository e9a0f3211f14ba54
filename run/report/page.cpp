#include "run/report/page.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "run/report/chart.hpp"
#include "run/report/confusion.hpp"
#include "run/report/html.hpp"
#include "run/report/model_html.hpp"
#include "run/report/style.hpp"
#include "run/summaries/run_table.hpp"

namespace capstan {
namespace {

constexpr size_t long_name = 120;

bool is_classifier(const ReportedRun& run) { return facts_of(run.record.config.model).classifies(); }

/// A readable unit for this many seconds, and its length in seconds.
std::pair<const char*, double> time_unit(double seconds) {
  if (seconds >= 2 * 3600) return {"hours", 3600};
  return seconds >= 2 * 60 ? std::make_pair("minutes", 60.0) : std::make_pair("seconds", 1.0);
}

/// A line per run through the values that `y` gives for its points of training or validation.
template <class Points, class X, class Y>
void add_line(Chart& chart, const ReportedRun& run, size_t index, const Points& points, const char* what,
              LineStyle style, const X& x, const Y& y) {
  ChartLine line{fmt::format("{}, {}", run.record.folder, what), {}, static_cast<int>(index), style};
  for (const auto& point : points) line.points.push_back({x(point), y(point)});
  chart.lines.push_back(std::move(line));
}

/// Training and validation loss over the values that `x` gives.
template <class X>
Chart loss_chart(const std::vector<ReportedRun>& runs, Chart chart, const X& x) {
  for (size_t i = 0; i < runs.size(); ++i) {
    add_line(chart, runs[i], i, runs[i].record.train, "training", LineStyle::thin, x,
             [](const TrainPoint& point) { return point.loss; });
    add_line(chart, runs[i], i, runs[i].record.valid, "validation", LineStyle::marked, x,
             [](const ValidPoint& point) { return point.value("loss"); });
  }
  return chart;
}

std::string charts_html(const std::vector<ReportedRun>& runs) {
  double longest = 0;
  for (const ReportedRun& run : runs) longest = std::max(longest, run.record.seconds);
  const auto [unit, length] = time_unit(longest);
  const std::string loss = is_classifier(runs.front()) ? "loss (nats per example)" : "loss (nats per token)";
  const std::string time = fmt::format("training time ({})", unit);
  const auto step = [](const auto& point) { return static_cast<double>(point.step); };
  const auto when = [length = length](const auto& point) { return point.seconds / length; };
  Chart speed{"Throughput", "step", "tokens per second", {}, true};
  Chart accuracy{"Accuracy on the validation data", "step", "accuracy (%)", {}};
  for (size_t i = 0; i < runs.size(); ++i) {
    add_line(speed, runs[i], i, runs[i].record.train, "training", LineStyle::thin, step,
             [](const TrainPoint& point) { return point.tokens_per_second; });
    add_line(accuracy, runs[i], i, runs[i].record.valid, "validation", LineStyle::marked, step,
             [](const ValidPoint& point) { return 100 * point.value("accuracy"); });
  }
  return "<div class=\"charts\">" + to_svg(loss_chart(runs, {"Loss over steps", "step", loss, {}}, step)) +
         to_svg(loss_chart(runs, {"Loss over time", time, loss, {}}, when)) + to_svg(accuracy) + to_svg(speed) +
         "</div>\n";
}

std::string legend_html(const std::vector<ReportedRun>& runs) {
  std::string out = "<ul class=\"legend\">";
  for (size_t i = 0; i < runs.size(); ++i)
    out += fmt::format("<li title=\"{}\">{}{}</li>", escaped(runs[i].record.folder), colour_sample(static_cast<int>(i)),
                       escaped_short(runs[i].record.folder, long_name));
  return out + "</ul><p><small>Thick lines with dots: validation; thin lines: training.</small></p>\n";
}

/// `coloured`: row i has the colour of run i.
std::string table_html(const Table& table, bool coloured) {
  std::string out = "<div class=\"wide\"><table><thead><tr>";
  for (const std::string& cell : table.front()) out += fmt::format("<th>{}</th>", escaped(cell));
  out += "</tr></thead><tbody>";
  for (size_t row = 1; row < table.size(); ++row) {
    out += "<tr>";
    for (size_t i = 0; i < table[row].size(); ++i) {
      const std::string& cell = table[row][i];
      const bool is_long = cell.size() > 24;
      out += fmt::format("<td{}{}>{}{}</td>", is_long ? " class=\"key\"" : "",
                         is_long ? fmt::format(" title=\"{}\"", escaped(cell)) : "",
                         coloured && i == 0 ? colour_sample(static_cast<int>(row) - 1) : "",
                         escaped_short(cell, long_name));
    }
    out += "</tr>";
  }
  return out + "</tbody></table></div>\n";
}

std::string tables_html(const std::vector<RunRecord>& records) {
  std::string out = table_html(run_table(records, TableStyle::people), true);
  const Table seeds = seed_table(records);
  if (!seeds.empty()) out += "<p>Over seeds and folds, mean ± standard deviation:</p>" + table_html(seeds, false);
  return out;
}

std::string run_html(const ReportedRun& run) {
  std::string out = fmt::format("<h3>{}</h3>\n", escaped_short(run.record.folder, long_name));
  for (const std::string& note : run.notes) out += fmt::format("<p class=\"note\">{}</p>\n", escaped(note));
  if (run.evaluation) out += confusion_html(*run.evaluation);
  if (run.model) out += model_html(*run.model);
  return out;
}

}  // namespace

std::string report_page(const std::vector<ReportedRun>& runs) {
  std::vector<RunRecord> records;
  for (const ReportedRun& run : runs) records.push_back(run.record);
  const std::string title =
      runs.size() == 1 ? escaped_short(runs.front().record.folder, long_name) : fmt::format("{} runs", runs.size());
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\">\n<title>Capstan: {0}</title>\n<style>{1}</style></head>\n<body>"
      "<h1>Capstan: {0}</h1>\n",
      title, report_style);
  out += "<h2>Learning curves</h2>\n" + legend_html(runs) + charts_html(runs);
  out += "<h2>Comparison</h2>\n" + tables_html(records);
  const bool any_model =
      std::any_of(runs.begin(), runs.end(), [](const ReportedRun& run) { return run.model || !run.notes.empty(); });
  if (any_model) out += "<h2>What the models learned</h2>\n";
  for (const ReportedRun& run : runs)
    if (any_model) out += run_html(run);
  return out + "</body></html>\n";
}

}  // namespace capstan
