// The axes of a chart over any two numbers.
#include <cmath>
#include <cstring>

#include "run/report/chart.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {
namespace {

void make_axis(std::string_view input) {
  double low = 0, high = 0;
  if (input.size() < 16) return;
  std::memcpy(&low, take(input, 8).data(), 8);
  std::memcpy(&high, take(input, 8).data(), 8);
  if (!std::isfinite(low) || !std::isfinite(high)) return;
  if (low > high) std::swap(low, high);
  const std::vector<double> ticks = axis_ticks(low, high, 5);
  require(ticks.size() >= 2 && ticks.size() < 20, "an axis has a few ticks");
  for (size_t i = 1; i < ticks.size(); ++i) {
    require(std::isfinite(ticks[i]) && ticks[i] > ticks[i - 1], "ticks ascend");
    tick_text(ticks[i], ticks[1] - ticks[0]);
  }
  if (input.empty()) return;  // drawing takes much longer
  Chart chart;
  ChartLine line;
  line.points = {{0, low}, {1, high}, {high, low}};
  chart.lines = {line};
  to_html(chart);
  chart.may_be_log = true;
  chart.most = 100;
  to_html(chart);
}

const Registered ticks_target("ticks", make_axis);

}  // namespace
}  // namespace capstan::fuzz
