// Line charts as SVG.
#pragma once

#include <string>
#include <vector>

namespace capstan {

struct ChartPoint {
  double x = 0, y = 0;
};

enum class LineStyle { thin, marked };  // marked: thick, with a dot at every point

/// A line. `colour` is a number that the page's style sheet gives a colour and,
/// from the second round of colours on, a dash pattern.
struct ChartLine {
  std::string name;
  std::vector<ChartPoint> points;
  int colour = 0;
  LineStyle style = LineStyle::thin;
};

struct Chart {
  std::string title, x_label, y_label;  // labels with their units
  std::vector<ChartLine> lines;
  bool from_zero = false;  // the y axis begins at 0
};

/// Round numbers that divide [low, high] into about `count` parts, the first at most `low`, the last at least `high`.
std::vector<double> axis_ticks(double low, double high, int count);
/// The number of a tick where ticks are `step` apart: "0.25", "12k".
std::string tick_text(double value, double step);

/// At most `count` points: neighbours are averaged.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, size_t count);

/// A `<figure>`. Points that are not finite are left out; the few highest of a line (above its 95th percentile) may lie
/// above the chart, which the caption then says. Empty when there is no point.
std::string to_svg(const Chart& chart);

/// The sample of a line's colour for legends and tables.
std::string colour_sample(int colour);

}  // namespace capstan
