#include "run/report/curves.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "run/report/chart.hpp"
#include "run/report/html.hpp"

namespace capstan {
namespace {

/// A readable unit for this many seconds, and its length in seconds.
std::pair<const char*, double> time_unit(double seconds) {
  if (seconds >= 2 * 3600) return {"hours", 3600};
  return seconds >= 2 * 60 ? std::make_pair("minutes", 60.0) : std::make_pair("seconds", 1.0);
}

class Curves {
 public:
  Curves(const std::vector<RunRecord>& runs, const std::vector<std::string>& names) : runs_(runs), names_(names) {}

  /// Lines through the values that `y` gives for the points of training.
  template <class X, class Y>
  void add_training(Chart& chart, const X& x, const Y& y, bool beside_validation = false) const {
    for (size_t i = 0; i < runs_.size(); ++i) {
      // One run alone has a second colour to spare.
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

}  // namespace

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

}  // namespace capstan
