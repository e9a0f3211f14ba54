// Line charts as SVG, for the page of `capstan report` and sweep_picture.cpp. report.css has the colours and report.js
// reads the attributes data-values and data-x. tests/run/test_report_parts.cpp and tests/fuzz/fuzz_ticks.cpp hold ticks
// and text.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/report/html.hpp"

namespace capstan {

struct ChartPoint {
  double x = 0, y = 0;
};

/// A line. `colour` is an index into the colours of the page's style sheet; beyond them they repeat with a dash
/// pattern. `best` gets a ring.
struct ChartLine {
  std::string name;
  std::vector<ChartPoint> points;
  int colour = 0;
  LineStyle style = LineStyle::thin;
  std::optional<ChartPoint> best = {};
};

struct Chart {
  std::string title, unit, x_label;  // x_label: with its unit
  std::vector<ChartLine> lines;
  bool from_zero = false;           // the y axis begins at 0
  bool may_be_log = false;          // the y axis is logarithmic if the greatest value is 10 times the least or more
  std::optional<double> most = {};  // no value can be greater
};

/// Round numbers that divide [low, high] into about `count` parts; the first is <= `low`, the last >= `high`. Both must
/// be finite; numbers beyond 1e300 count as 1e300.
std::vector<double> axis_ticks(double low, double high, int count);
/// Powers of ten, and 2 and 5 times these where there are few, from below `low` to above `high`; both above 0.
std::vector<double> log_ticks(double low, double high);
/// The label of a tick when ticks are `step` apart: "0.25", "12k", "3e-5".
std::string tick_text(double value, double step);

/// At most `count` points: neighbours are averaged.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, size_t count);
/// Each value becomes the mean of those around it, a tenth of the line or 25 points; those at the ends of fewer.
std::vector<ChartPoint> smoothed(const std::vector<ChartPoint>& points);

/// A `<figure>`; of lines of one point each, their values as text. Points that are not finite are left out; the highest
/// of a line, above its 95th percentile, may be cut off, which the caption then says. The values that are drawn are in
/// the attribute data-values of each line, "x y,x y", for the page's script. Empty if there are no points.
std::string to_html(const Chart& chart);

}  // namespace capstan
