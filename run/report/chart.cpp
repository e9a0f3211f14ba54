#include "run/report/chart.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "run/report/html.hpp"

namespace capstan {
namespace {

constexpr int colours = 6, dash_patterns = 4;
constexpr double width = 480, height = 300, left = 58, right = 20, top = 12, bottom = 46;
constexpr size_t most_points = 300;

bool finite(const ChartPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

struct Range {
  double low = INFINITY, high = -INFINITY;
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

/// The 95th percentile of a line: the start of training would squeeze the rest of the chart.
double top_without_outliers(const ChartLine& line) {
  std::vector<double> values;
  for (const ChartPoint& point : line.points)
    if (finite(point)) values.push_back(point.y);
  if (values.empty()) return -INFINITY;
  std::sort(values.begin(), values.end());
  return values[((values.size() - 1) * 95 + 99) / 100];
}

/// The axes of a chart: the position of a point in the picture.
class Axes {
 public:
  explicit Axes(const Chart& chart) {
    Range x, y;
    double usual = -INFINITY;
    for (const ChartLine& line : chart.lines) {
      usual = std::max(usual, top_without_outliers(line));
      for (const ChartPoint& point : line.points) {
        if (!finite(point)) continue;
        x.include(point.x);
        y.include(point.y);
      }
    }
    if (x.empty()) return;
    y.low = chart.from_zero ? std::min(0.0, y.low) : y.low;
    x_ticks_ = axis_ticks(std::min(0.0, x.low), x.high, 5);
    y_ticks_ = axis_ticks(y.low, usual, 5);
    cut_ = y.high > y_ticks_.back();
  }
  bool empty() const { return x_ticks_.empty(); }
  bool cut() const { return cut_; }
  const std::vector<double>& x_ticks() const { return x_ticks_; }
  const std::vector<double>& y_ticks() const { return y_ticks_; }
  double x(double value) const {
    return left + (value - x_ticks_.front()) / (x_ticks_.back() - x_ticks_.front()) * (width - left - right);
  }
  double y(double value) const {
    return height - bottom -
           (value - y_ticks_.front()) / (y_ticks_.back() - y_ticks_.front()) * (height - top - bottom);
  }

 private:
  std::vector<double> x_ticks_, y_ticks_;
  bool cut_ = false;
};

std::string colour_class(int colour) {
  return fmt::format("c{} d{}", colour % colours, colour / colours % dash_patterns);
}

std::string axes_svg(const Axes& axes, const Chart& chart) {
  std::string out;
  const std::vector<double>&xs = axes.x_ticks(), &ys = axes.y_ticks();
  for (const double value : ys)
    out += fmt::format(
        "<line class=\"grid\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>",
        left, width - right, axes.y(value), axes.y(value), left - 6, axes.y(value) + 4,
        tick_text(value, ys[1] - ys[0]));
  for (const double value : xs)
    out += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"middle\" x=\"{0:.1f}\" y=\"{3:.1f}\">{4}</text>",
        axes.x(value), height - bottom, height - bottom + 4, height - bottom + 18, tick_text(value, xs[1] - xs[0]));
  out += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>", left,
                     width - right, height - bottom);
  out += fmt::format("<text class=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", (left + width - right) / 2,
                     height - 8, escaped(chart.x_label));
  out += fmt::format("<text class=\"middle\" transform=\"translate(13 {:.1f}) rotate(-90)\">{}</text>",
                     (top + height - bottom) / 2, escaped(chart.y_label));
  return out;
}

std::string line_svg(const Axes& axes, const ChartLine& line) {
  const bool marked = line.style == LineStyle::marked;
  const std::vector<ChartPoint> points = thinned(line.points, most_points);
  std::string path, dots;
  for (const ChartPoint& point : points) {
    const double x = axes.x(point.x), y = axes.y(point.y);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
    if (marked && points.size() <= 60) dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\"/>", x, y);
  }
  if (path.empty()) return "";
  return fmt::format("<g class=\"{} {}\"><title>{}</title><path d=\"{}\"/>{}</g>", colour_class(line.colour),
                     marked ? "marked" : "thin", escaped(line.name), path, dots);
}

}  // namespace

std::vector<double> axis_ticks(double low, double high, int count) {
  // A step must be a number that counts beside the values: neither lost in their rounding, nor 0, nor infinite.
  constexpr double largest = 1e300, smallest = 1e-300, least_share = 1e-9;
  low = std::clamp(low, -largest, largest);
  high = std::clamp(high, -largest, largest);
  const double magnitude = std::max(std::abs(low), std::abs(high));
  const double span =
      high > low ? std::max({high - low, least_share * magnitude, smallest}) : std::max(magnitude, 1e-3);
  const double rough = span / count, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.5, 2.0, 1.0})
    if (factor * power >= rough * (1 - 1e-9)) step = factor * power;
  const auto first = std::floor(low / step + 1e-9);
  std::vector<double> ticks;
  for (double i = first; ticks.size() < 2 || ticks.back() < high - 1e-9 * span; ++i) ticks.push_back(i * step);
  return ticks;
}

std::string tick_text(double value, double step) {
  const char* unit = "";
  double factor = 1;
  if (step >= 1e6)
    unit = "M", factor = 1e6;
  else if (step >= 500)
    unit = "k", factor = 1e3;
  if (value == 0) return "0";
  int digits = 0;  // of the step after the decimal point
  for (double shown = step / factor; digits < 8 && std::abs(shown - std::round(shown)) > 1e-6 * shown; ++digits)
    shown *= 10;
  return fmt::format("{:.{}f}{}", value / factor, digits, unit);
}

std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, size_t count) {
  std::vector<ChartPoint> good;
  std::copy_if(points.begin(), points.end(), std::back_inserter(good), finite);
  if (good.size() <= count) return good;
  std::vector<ChartPoint> out;
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * good.size() / count, end = (i + 1) * good.size() / count;
    ChartPoint mean;
    for (size_t k = begin; k < end; ++k) {
      mean.x += good[k].x / static_cast<double>(end - begin);
      mean.y += good[k].y / static_cast<double>(end - begin);
    }
    out.push_back(mean);
  }
  return out;
}

std::string to_svg(const Chart& chart) {
  const Axes axes(chart);
  if (axes.empty()) return "";
  std::string lines;
  for (const ChartLine& line : chart.lines) lines += line_svg(axes, line);
  return fmt::format(
      "<figure class=\"chart\"><figcaption>{0}{1}</figcaption><svg viewBox=\"0 0 {2} {3}\" role=\"img\" "
      "aria-label=\"{0}\">{4}<svg x=\"{5}\" y=\"{6}\" width=\"{7}\" height=\"{8}\" viewBox=\"{5} {6} {7} {8}\">{9}"
      "</svg></svg></figure>\n",
      escaped(chart.title), axes.cut() ? " <small>(the highest values are above the chart)</small>" : "", width, height,
      axes_svg(axes, chart), left - 4, top - 4, width - left - right + 8, height - top - bottom + 8, lines);
}

std::string colour_sample(int colour) {
  return fmt::format(
      "<svg class=\"sample\" viewBox=\"0 0 28 10\" aria-hidden=\"true\"><g class=\"{} marked\"><path d=\"M1 5L27 5\"/>"
      "</g></svg>",
      colour_class(colour));
}

}  // namespace capstan
