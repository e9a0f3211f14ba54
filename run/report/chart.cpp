// Draws a line chart as SVG: axes, ticks, lines with their dots. report.js reads the attributes of the lines.
// tests/run/test_report_parts.cpp.
#include "run/report/chart.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "run/report/html.hpp"

namespace capstan {
namespace {

// Colours and dash patterns are classes c0 ... and d0 ... of report.css; sizes are in pixels of the picture.
constexpr double width = 360, height = 216, left = 46, right = 16, top = 10, bottom = 38;
constexpr size_t max_points = 300, max_dots = 60;

bool finite(const ChartPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

struct Range {
  double low = INFINITY, high = -INFINITY;
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
};

/// The highest value of a line, or its 95th percentile where the highest value is more than twice as far above the
/// lowest as that percentile: the start of training would squeeze the rest of the chart.
double top_without_outliers(const ChartLine& line) {
  std::vector<double> values;
  for (const ChartPoint& point : line.points)
    if (finite(point)) values.push_back(point.y);
  if (values.empty()) return -INFINITY;
  std::sort(values.begin(), values.end());
  const double usual = values[((values.size() - 1) * 95 + 99) / 100];
  return values.back() - values.front() > 2 * (usual - values.front()) ? usual : values.back();
}

/// The axes of a chart: the position of a point in the picture.
class ChartAxes {
 public:
  explicit ChartAxes(const Chart& chart) {
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
    x_low_ = std::clamp(x.low, -1e300, 0.0);
    x_high_ = x.high > x_low_ ? std::min(x.high, 1e300) : x_low_ + 1;
    x_ticks_ = axis_ticks(x_low_, x_high_, 4);
    while (x_ticks_.size() > 1 && x_ticks_.back() > x_high_ * (1 + 1e-9)) x_ticks_.pop_back();
    log_ = chart.may_be_log && y.low > 1e-200 && y.high < 1e200 && y.high / y.low >= 10 && y.high / y.low <= 1e12;
    const bool flat_share = chart.most && y.low == y.high;
    if (chart.from_zero || flat_share) y.low = std::min(0.0, y.low);
    if (chart.most) usual = flat_share ? *chart.most : std::min(usual, *chart.most);
    y_ticks_ = log_ ? log_ticks(y.low, y.high) : axis_ticks(y.low, usual, 4);
    cut_ = y.high > y_ticks_.back();
  }
  bool empty() const { return x_ticks_.empty(); }
  bool cut() const { return cut_; }
  bool log() const { return log_; }
  const std::vector<double>& x_ticks() const { return x_ticks_; }
  const std::vector<double>& y_ticks() const { return y_ticks_; }
  double x(double value) const { return left + (value - x_low_) / (x_high_ - x_low_) * (width - left - right); }
  double y(double value) const {
    const auto scaled = [this](double v) { return log_ ? std::log10(v) : v; };
    const double low = scaled(y_ticks_.front()), high = scaled(y_ticks_.back());
    return height - bottom - (scaled(value) - low) / (high - low) * (height - top - bottom);
  }

 private:
  std::vector<double> x_ticks_, y_ticks_;
  double x_low_ = 0, x_high_ = 1;
  bool cut_ = false, log_ = false;
};

std::string axes_svg(const ChartAxes& axes, const Chart& chart) {
  std::string out;
  const std::vector<double>&xs = axes.x_ticks(), &ys = axes.y_ticks();
  for (const double value : ys)
    out += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text class=\"end\" x=\"{3:.1f}\" y=\"{4:.1f}\">{5}</text>",
        left, width - right, axes.y(value), left - 6, axes.y(value) + 4,
        tick_text(value, axes.log() ? value : ys[1] - ys[0]));
  for (const double value : xs)
    out += fmt::format("<text class=\"middle\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", axes.x(value),
                       height - bottom + 16, tick_text(value, xs.size() > 1 ? xs[1] - xs[0] : 1));
  out += fmt::format("<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>", left,
                     width - right, height - bottom);
  return out + fmt::format("<text class=\"end\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", width - right, height - 5,
                           escaped(chart.x_label));
}

/// A line with its dots, and its values for the page's script. At most max_points points are drawn, and dots only if
/// they can be told apart.
std::string line_svg(const ChartAxes& axes, const ChartLine& line) {
  const bool marked = line.style == LineStyle::marked;
  const std::vector<ChartPoint> points = thinned(line.points, max_points);
  std::string path, dots, values;
  for (const ChartPoint& point : points) {
    const double x = axes.x(point.x), y = axes.y(point.y);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, y);
    values += fmt::format("{}{} {}", values.empty() ? "" : ",", point.x, point.y);
    if ((marked && points.size() <= max_dots) || points.size() == 1)
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\"/>", x, y);
  }
  if (path.empty()) return "";
  if (line.best && finite(*line.best))
    dots += fmt::format("<circle class=\"best\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.5\"/>", axes.x(line.best->x),
                        axes.y(line.best->y));
  return fmt::format("<g class=\"{} {}\" data-name=\"{}\" data-values=\"{}\"><path d=\"{}\"/>{}</g>",
                     colour_class(line.colour), marked ? "marked" : "thin", escaped(line.name), values, path, dots);
}

/// The values of lines of one point each, as text instead of a picture.
std::string numbers_html(const Chart& chart) {
  std::string out;
  for (const ChartLine& line : chart.lines)
    for (const ChartPoint& point : thinned(line.points, 1))
      out += fmt::format("<p>{}<b>{}</b> {} <small>{}</small></p>", line_sample(line.colour, line.style),
                         fmt::format("{:.5g}", point.y), escaped(chart.unit), escaped(line.name));
  return fmt::format("<figure class=\"chart single\"><figcaption>{}</figcaption>{}</figure>\n", escaped(chart.title),
                     out);
}

}  // namespace

std::vector<double> axis_ticks(double low, double high, int count) {
  // A step must be a number that counts beside the values: neither lost in their rounding, nor 0, nor infinite.
  constexpr double largest = 1e300, smallest = 1e-300, min_share = 1e-9;
  low = std::clamp(low, -largest, largest);
  high = std::clamp(high, -largest, largest);
  const double magnitude = std::max(std::abs(low), std::abs(high));
  const double span = high > low ? std::max({high - low, min_share * magnitude, smallest}) : std::max(magnitude, 1e-3);
  const double rough = span / count, power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.5, 2.0, 1.0})
    if (factor * power >= rough * (1 - 1e-9)) step = factor * power;
  const auto first = std::floor(low / step + 1e-9);
  std::vector<double> ticks;
  for (double i = first; ticks.size() < 2 || ticks.back() < high - 1e-9 * span; ++i) ticks.push_back(i * step);
  return ticks;
}

std::vector<double> log_ticks(double low, double high) {
  const int first = static_cast<int>(std::floor(std::log10(low))), last = static_cast<int>(std::ceil(std::log10(high)));
  const bool few = last - first <= 2;
  std::vector<double> ticks;
  for (int power = first, stride = std::max(1, (last - first + 3) / 5); power < last + stride; power += stride)
    for (const double factor : {1.0, 2.0, 5.0})
      if ((few || factor == 1) && (power < last || factor == 1)) ticks.push_back(factor * std::pow(10, power));
  while (ticks.size() > 2 && ticks[1] <= low) ticks.erase(ticks.begin());
  while (ticks.size() > 2 && ticks[ticks.size() - 2] >= high) ticks.pop_back();
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
  if (std::abs(step) < 5e-3 && std::abs(value) < 0.1) {
    const auto power_of = [](double v) { return static_cast<int>(std::floor(std::log10(std::abs(v)) + 1e-9)); };
    const int power = power_of(value);
    return fmt::format("{:.{}g}e{}", value / std::pow(10, power), std::clamp(power - power_of(step), 0, 10) + 2, power);
  }
  int digits = 0;  // that the step has after the decimal point
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

std::vector<ChartPoint> smoothed(const std::vector<ChartPoint>& points) {
  std::vector<ChartPoint> good;
  std::copy_if(points.begin(), points.end(), std::back_inserter(good), finite);
  const size_t around = std::min<size_t>(good.size() / 20, 12);
  std::vector<ChartPoint> out = good;
  for (size_t i = 0; i < good.size(); ++i) {
    const size_t begin = i - std::min(i, around), end = std::min(good.size(), i + around + 1);
    out[i].y = 0;
    for (size_t k = begin; k < end; ++k) out[i].y += good[k].y / static_cast<double>(end - begin);
  }
  return out;
}

std::string to_html(const Chart& chart) {
  const ChartAxes axes(chart);
  if (axes.empty()) return "";
  const auto is_curve = [](const ChartLine& line) { return thinned(line.points, 2).size() > 1; };
  if (std::none_of(chart.lines.begin(), chart.lines.end(), is_curve)) return numbers_html(chart);
  std::string lines, unit = chart.unit;
  for (const ChartLine& line : chart.lines) lines += line_svg(axes, line);
  if (axes.log()) unit += ", log scale";
  if (axes.cut()) unit += "; the highest are above the chart";
  return fmt::format(
      "<figure class=\"chart\"><figcaption>{0} <small>{1}</small></figcaption><svg viewBox=\"0 0 {2} {3}\" "
      "role=\"img\" "
      "tabindex=\"0\" aria-label=\"{0}, {1}; the arrow keys show values\" data-x=\"{10}\">{4}<svg x=\"{5}\" y=\"{6}\" "
      "width=\"{7}\" height=\"{8}\" viewBox=\"{5} {6} {7} {8}\">{9}</svg></svg></figure>\n",
      escaped(chart.title), escaped(unit), width, height, axes_svg(axes, chart), left - 6, top - 6,
      width - left - right + 12, height - top - bottom + 12, lines, escaped(chart.x_label));
}

}  // namespace capstan
