// Puts the page of `capstan report` together from the parts of this folder. tests/cli/runs/test_report.cpp.
#include "run/report/page.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "core/strings/strings.hpp"
#include "run/report/chart.hpp"
#include "run/report/evaluation_html.hpp"
#include "run/report/html.hpp"
#include "run/report/model_view.hpp"
#include "run/summaries/run_record.hpp"
#include "run/summaries/run_table.hpp"
#include "train/records/reporter.hpp"

namespace capstan {
namespace {

/// What metrics.jsonl tells about runs: charts of training and validation with a legend; `names` are those of the runs.
/// Empty for models that are solved for, which have no curves.
std::string curves_html(const std::vector<RunRecord>& runs, const std::vector<std::string>& names);

/// A readable unit for this many seconds, and its length in seconds.
std::pair<const char*, double> time_unit(double seconds) {
  if (seconds >= 2 * 3600) return {"hours", 3600};
  return seconds >= 2 * 60 ? std::make_pair("minutes", 60.0) : std::make_pair("seconds", 1.0);
}

/// Adds the lines of all runs to charts.
class Curves {
 public:
  Curves(const std::vector<RunRecord>& runs, const std::vector<std::string>& names) : runs_(runs), names_(names) {}

  /// Lines through the values that `y` gives for the points of training.
  template <class X, class Y>
  void add_training(Chart& chart, const X& x, const Y& y, bool beside_validation = false) const {
    for (size_t i = 0; i < runs_.size(); ++i) {
      // Training and validation of a run share a colour, unless there is one run alone.
      ChartLine line{name(i, "training"), {}, static_cast<int>(beside_validation && runs_.size() == 1 ? 1 : i)};
      for (const TrainPoint& point : runs_[i].train) line.points.push_back({x(point), y(point)});
      chart.lines.push_back(std::move(line));
    }
  }

  template <class X>
  void add_validation(Chart& chart, const X& x, const Metric& metric) const {
    const double factor = metric.unit == Metric::Unit::share ? 100 : 1;
    for (size_t i = 0; i < runs_.size(); ++i) {
      const auto at = [&](const ValidPoint& point) { return ChartPoint{x(point), factor * point.value(metric.name)}; };
      ChartLine line{name(i, "validation"), {}, static_cast<int>(i), LineStyle::marked};
      for (const ValidPoint& point : runs_[i].valid) line.points.push_back(at(point));
      if (runs_[i].best && line.points.size() > 1) line.best = at(*runs_[i].best);
      chart.lines.push_back(std::move(line));
    }
  }

 private:
  std::string name(size_t run, const char* what) const {
    return runs_.size() == 1 ? what : fmt::format("{}: {}", what, names_[run]);
  }

  const std::vector<RunRecord>& runs_;
  const std::vector<std::string>& names_;
};

std::string legend_html(const std::vector<std::string>& names, bool curved) {
  std::string out;
  for (size_t i = 0; names.size() > 1 && i < names.size(); ++i)
    out += fmt::format("<li>{}{}</li>", line_sample(static_cast<int>(i)), escaped_short(names[i]));
  if (!out.empty()) out = "<ul class=\"legend\">" + out + "</ul>\n";
  if (!curved) return out;
  return out + fmt::format(
                   "<p class=\"hint\">{}training {}validation <span class=\"ring\"></span>best by the measure that the "
                   "run watches. Values show under the pointer, and with the arrow keys.</p>\n",
                   line_sample(1, LineStyle::thin), line_sample(0));
}

std::string curves_html(const std::vector<RunRecord>& runs, const std::vector<std::string>& names) {
  const Curves curves(runs, names);
  double longest = 0;
  for (const RunRecord& run : runs) longest = std::max(longest, run.seconds);
  const auto [unit, length] = time_unit(longest);
  const ModelFacts facts = facts_of(runs.front().config.model);
  if (facts.is_solved) return "";
  const std::string nats = facts.classifies() ? "nats per example" : "nats per token";
  const auto step = [](const auto& point) { return static_cast<double>(point.step); };
  const auto when = [length = length](const auto& point) { return point.seconds / length; };
  std::vector<Chart> charts;
  const auto add_loss = [&](const char* title, const std::string& x_label, const auto& x) {
    Chart chart{title, nats, x_label, {}, false, /*may_be_log=*/true};
    curves.add_training(
        chart, x, [](const TrainPoint& point) { return point.loss; }, /*beside_validation=*/true);
    curves.add_validation(chart, x, metrics().front());
    charts.push_back(std::move(chart));
  };
  add_loss("Loss", "step", step);
  for (auto metric = metrics().begin() + 1; metric != metrics().end(); ++metric) {
    charts.push_back({metric->title, "%", "step", {}, false, false, /*most=*/100.0});
    curves.add_validation(charts.back(), step, *metric);
  }
  if (runs.size() > 1) add_loss("Loss over time", fmt::format("training time in {}", unit), when);
  charts.push_back({"Learning rate", "", "step", {}, /*from_zero=*/true});
  curves.add_training(charts.back(), step, [](const TrainPoint& point) { return point.learning_rate; });
  charts.push_back({"Gradient norm", "before clipping", "step", {}, false, /*may_be_log=*/true});
  curves.add_training(charts.back(), step, [](const TrainPoint& point) { return point.gradient_norm; });
  charts.push_back({"Throughput", "tokens per second, smoothed", "step", {}, /*from_zero=*/true});
  curves.add_training(charts.back(), step, [](const TrainPoint& point) { return point.tokens_per_second; });
  for (ChartLine& line : charts.back().lines) line.points = smoothed(line.points);
  std::string figures;
  for (const Chart& chart : charts) figures += to_html(chart);
  const bool curved = figures.find("data-values") != std::string::npos;
  return legend_html(names, curved) + "<div class=\"charts\">" + figures + "</div>\n";
}

/// A view into a trained model, as HTML; empty if there is nothing to show.
std::string model_html(const ModelView& view);

/// A word on one line: line ends are shown as a symbol.
std::string on_one_line(const std::string& word) {
  std::string out;
  for (const char c : word) out += c == '\n' ? std::string("\xE2\x86\xB5") : std::string(1, c);  // U+21B5
  return out;
}

/// The text, each word the darker the more of the head's weight it has.
std::string words_html(const std::vector<std::string>& words, const std::vector<float>& weights, size_t head) {
  const float most = std::max(1e-9F, *std::max_element(weights.begin(), weights.end()));
  std::string out = fmt::format("<p class=\"words\"><b>head {}</b> ", head + 1);
  for (size_t i = 0; i < words.size(); ++i)
    out += fmt::format("<span style=\"--share:{:.3f}\" title=\"{:.2f} %\">{}</span>", weights[i] / most,
                       100 * weights[i], escaped(on_one_line(words[i])));
  return out + fmt::format("<small>strongest: {:.1f} %</small></p>\n", 100 * most);
}

std::string layer_html(const LayerView& layer, const std::vector<std::string>& words, bool open) {
  std::string out = fmt::format("<details{}><summary>{}</summary>", open ? " open" : "", escaped(layer.name));
  if (!layer.position_bias.empty()) {
    out += "<p class=\"sub\">position bias</p>";
    out += to_html(layer.position_bias, "w, added to the key of source s for target t (the logarithm of a factor)");
  }
  for (const WeightsView& weights : layer.weights) {
    out += fmt::format("<p class=\"sub\">{}</p>", escaped(weights.name));
    for (size_t head = 0; head < weights.words.size(); ++head) out += words_html(words, weights.words[head], head);
    out += to_html(weights.maps, "weight of source s for target t, tokens of the text above");
  }
  if (layer.heads_left_out > 0)
    out += fmt::format("<p><small>{} more heads left out</small></p>", layer.heads_left_out);
  return out + "</details>\n";
}

std::string model_html(const ModelView& view) {
  if (view.layers.empty()) return "";
  std::string out;
  const bool shows_text = std::any_of(view.layers.begin(), view.layers.end(),
                                      [](const LayerView& layer) { return !layer.weights.empty(); });
  if (shows_text) {
    out += "<p class=\"hint\">The text that the weights are of:</p><blockquote>";
    for (const std::string& word : view.words) out += escaped(word);
    out += "</blockquote>\n";
  }
  for (size_t i = 0; i < view.layers.size(); ++i) out += layer_html(view.layers[i], view.words, i == 0);
  if (view.layers_left_out > 0)
    out += fmt::format("<p><small>{} more layers left out</small></p>\n", view.layers_left_out);
  return out;
}

/// What the folders of all runs begin with, up to a slash.
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

/// The name of the data that the figures of a run's best validation are from.
const char* held_out(const RunRecord& run) {
  return run.best && !run.best->by.empty() ? run.best->by.c_str() : "validation";
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
  for (const SourceFiles& source : facts_of(best.config.data).files)
    if (files.empty()) files = source.paths;
  std::string out = fmt::format("<p>A {} on data of type {}{}{}.", type_of(best.config.model),
                                type_of(best.config.data), files.empty() ? "" : ": ", escaped_short(join_first(files)));
  constexpr size_t day = 11;  // "2026-11-24 "
  if (begun.substr(0, day) == ended.substr(0, day) && begun != ended) ended.erase(0, day);
  if (!ended.empty()) out += fmt::format(" Trained {}{}.", escaped(begun), begun == ended ? "" : "–" + escaped(ended));
  out += "</p>\n";
  if (runs.size() > 1 && comparable(runs).size() == 1) {
    const std::string& monitor = best.config.train.monitor;
    const bool same = std::all_of(runs.begin(), runs.end(),
                                  [&](const RunRecord& run) { return run.config.train.monitor == monitor; });
    out += fmt::format("<p>The best of {} runs{}: <strong>{}</strong></p>\n", runs.size(),
                       best.best ? fmt::format(" by {} {}", held_out(best), same ? monitor : "loss") : "",
                       escaped_short(names.front()));
  }
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

std::string block_html(const std::vector<ReportedRun>& reported, const std::vector<std::string>& names) {
  std::vector<RunRecord> runs;
  for (const ReportedRun& run : reported) runs.push_back(run.record);
  auto [common, table] = compared(runs);
  for (size_t i = 0; i < names.size(); ++i) table[i + 1][0] = names[i];
  add_test_column(reported, table);
  std::string out =
      fmt::format("<p>{}</p>\n", escaped(what_is_compared(runs))) + table_html(table, "comparison of the runs", true);
  if (!common.empty()) out += fmt::format("<p class=\"hint\">The same in all: {}.</p>\n", escaped(join(common)));
  const Table seeds = seed_table(runs);
  if (!seeds.empty()) out += "<p>Over seeds and folds, mean ± standard deviation:</p>" + table_html(seeds, "means");
  return out;
}

/// A block for each group of comparable() runs.
std::string comparison_html(const std::vector<ReportedRun>& reported, const std::vector<RunRecord>& runs,
                            const std::vector<std::string>& names) {
  std::string out = "<h2>Comparison</h2>\n";
  for (const std::vector<size_t>& places : comparable(runs)) {
    std::vector<ReportedRun> group;
    std::vector<std::string> names_of_group;
    for (const size_t place : places) {
      group.push_back(reported[place]);
      names_of_group.push_back(names[place]);
    }
    out += block_html(group, names_of_group);
  }
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
