// Line charts as SVG.
#pragma once

#include <string>
#include <vector>

namespace capstan {

struct ChartPoint {
  double x = 0, y = 0;
};

enum class LineStyle { thin, marked };  // marked: thick, with a dot at every point

/// A line. `colour` is an index into the colours of the page's style sheet;
/// beyond them they repeat with a dash pattern.
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

/// Round numbers that divide [low, high] into about `count` parts; the first is <= `low`, the last >= `high`. Both must
/// be finite; numbers beyond 1e300 count as 1e300.
std::vector<double> axis_ticks(double low, double high, int count);
/// The label of a tick when ticks are `step` apart: "0.25", "12k".
std::string tick_text(double value, double step);

/// At most `count` points: neighbours are averaged.
std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, size_t count);

/// A `<figure>`. Points that are not finite are left out; the highest of a line (above its 95th percentile) may be cut
/// off, which the caption then says. Empty if there are no points.
std::string to_svg(const Chart& chart);

/// A sample of a line's colour, for legends and tables.
std::string colour_sample(int colour);

}  // namespace capstan
