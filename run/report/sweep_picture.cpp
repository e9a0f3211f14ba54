// Runs are grouped into lines by the keys in which they differ, except the key of the axis, and a point is the mean
// over the runs that differ in seed or fold alone. Places on the axis are equally far apart, whatever their values.
// tests/run/test_sweep_picture.cpp.
#include "run/report/sweep_picture.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/base/error.hpp"
#include "core/strings/printable.hpp"
#include "core/strings/strings.hpp"
#include "run/report/chart.hpp"
#include "run/report/html.hpp"
#include "run/summaries/run_table.hpp"
#include "run/yaml/config_node.hpp"

namespace capstan {
namespace {

constexpr double picture_height = 400, plot_right = 460, at_left = 58, at_top = 40, at_bottom = 52;
constexpr size_t longest_name = 40;   // of a line, in characters
constexpr double between_names = 16;  // pixels between the names of two lines, at least
constexpr const char* picture_style =
    "text{font:13px system-ui,sans-serif;fill:#333}.title{font-size:15px;font-weight:600}.grid{stroke:#8884}"
    ".line{fill:none;stroke-width:2}.dots{stroke-dasharray:none;stroke-linecap:round;stroke-width:6}"
    ".bars{stroke-dasharray:none;stroke-width:1.2}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}}";
// Colours that can be told apart on a light and on a dark page.
constexpr const char* line_colours[] = {"#1b7f79", "#d1383d", "#7a4fc4", "#b7791f",
                                        "#2f6fbf", "#c4508b", "#3a9d5d", "#8a6d3b"};
constexpr const char* line_dashes[] = {"none", "6 4", "2 3", "10 3 2 3"};

/// The runs of one line at one place.
struct SweepPoint {
  std::vector<const RunRecord*> runs;
  double mean = NAN, deviation = 0;
};

struct SweepLine {
  std::string name, hue;                     // hue: lines that share it share a colour
  std::map<std::string, SweepPoint> points;  // by the value of the key
  SweepPoint level;                          // of runs without the key
};

/// The values of a key, in the order of the axis: numbers ascending, others as they come.
std::vector<std::string> places_of(const DifferingKey& key) {
  std::vector<std::string> places;
  for (const std::string& value : key.values)
    if (!value.empty() && std::find(places.begin(), places.end(), value) == places.end()) places.push_back(value);
  std::map<std::string, double> numbers;
  for (const std::string& place : places)
    if (double number = 0; parse_number(place, number) == std::errc()) numbers[place] = number;
  if (numbers.size() == places.size())
    std::sort(places.begin(), places.end(),
              [&](const std::string& a, const std::string& b) { return numbers[a] < numbers[b]; });
  return places;
}

/// Whether another key changes along the axis, and runs at one place of it always have the same value of that key.
bool follows_from(const DifferingKey& other, const DifferingKey& over) {
  std::map<std::string, std::string> known;
  bool changes = false;
  for (size_t i = 0; i < over.values.size(); ++i) {
    if (over.values[i].empty()) continue;
    if (known.emplace(over.values[i], other.values[i]).first->second != other.values[i]) return false;
    changes = changes || known.begin()->second != other.values[i];
  }
  return changes;
}

/// The key with this path or this end of a path. Throws Error where there is none, or more than one.
DifferingKey key_called(const std::string& name, const std::vector<RunRecord>& runs) {
  std::vector<DifferingKey> matches;
  std::vector<std::string> names;
  for (DifferingKey& key : differing_keys(runs, KeysOf::any_run)) {
    if (key.path == name || ends_with(key.path, "." + name)) matches.push_back(key);
    names.push_back(key.path);
  }
  if (matches.size() == 1) return matches.front();
  if (matches.empty())
    throw Error(fmt::format("--over {}: the runs do not differ in such a key{}", printable_line(name),
                            names.empty() ? "" : ", but in " + join(names)));
  std::vector<std::string> paths;
  for (const DifferingKey& key : matches) paths.push_back(key.path);
  throw Error(fmt::format("--over {}: give more of the key, one of {}", printable_line(name), join(paths)));
}

/// The keys by whose values a line is named: those in which runs differ at one place of the axis.
std::vector<DifferingKey> line_keys(const std::vector<RunRecord>& runs, const DifferingKey& over) {
  std::vector<DifferingKey> keys;
  for (DifferingKey& key : differing_keys(runs, KeysOf::any_run))
    if (key.path != over.path && key.path != "seed" && key.path != "data.fold" && !follows_from(key, over))
      keys.push_back(std::move(key));
  return keys;
}

/// Name and hue of each run's line. Key by key, a run's value is added to the name of its line if runs with the same
/// name so far differ in the key: names have no more parts than it takes to tell lines apart.
std::vector<SweepLine> named_lines(const std::vector<RunRecord>& runs, const DifferingKey& over) {
  std::vector<SweepLine> of_runs(runs.size());
  for (const DifferingKey& key : line_keys(runs, over)) {
    const std::vector<SweepLine> before = of_runs;
    const bool is_type = ends_with(key.path, ".type");
    for (size_t i = 0; i < runs.size(); ++i) {
      bool differs = false;
      for (size_t k = 0; k < runs.size(); ++k)
        differs = differs || (before[k].name == before[i].name && key.values[k] != key.values[i]);
      if (!differs || key.values[i].empty()) continue;
      const std::string part = is_type ? key.values[i] : key.short_name + " " + key.values[i];
      of_runs[i].name += (of_runs[i].name.empty() ? "" : ", ") + part;
      if (of_runs[i].hue.empty()) of_runs[i].hue = part;
    }
  }
  return of_runs;
}

std::vector<SweepLine> lines_of(const std::vector<RunRecord>& runs, const DifferingKey& over) {
  std::vector<SweepLine> names = named_lines(runs, over), lines;
  for (size_t i = 0; i < runs.size(); ++i) {
    SweepLine& fresh = names[i];
    auto line =
        std::find_if(lines.begin(), lines.end(), [&](const SweepLine& known) { return known.name == fresh.name; });
    if (line == lines.end()) line = lines.insert(lines.end(), std::move(fresh));
    (over.values[i].empty() ? line->level : line->points[over.values[i]]).runs.push_back(&runs[i]);
  }
  std::sort(lines.begin(), lines.end(), [](const SweepLine& a, const SweepLine& b) { return a.name < b.name; });
  return lines;
}

/// Seconds of training until the validation loss was `loss`, interpolated linearly between two validations; NAN: never.
double seconds_until(const RunRecord& run, double loss) {
  double last_loss = NAN, last_seconds = 0;
  for (const ValidPoint& point : run.valid) {
    const double next_loss = point.value("loss");
    if (next_loss <= loss) {
      if (!(last_loss > loss)) return point.seconds;
      return last_seconds + (point.seconds - last_seconds) * (last_loss - loss) / (last_loss - next_loss);
    }
    last_loss = next_loss;
    last_seconds = point.seconds;
  }
  return NAN;
}

/// The value of a run on the vertical axis; NAN if it has none.
double value_of(const RunRecord& run, PictureValue value) {
  switch (value) {
    case PictureValue::score:
      return run.best ? run.best->value(metric_of(run.config.train.monitor).name) : NAN;
    case PictureValue::bits:
      return run.best ? run.best->bits : NAN;
    case PictureValue::seconds:
      return run.seconds;
    case PictureValue::tokens_per_second:
      return run.tokens_per_second;
    case PictureValue::peak_rss_mb:
      return static_cast<double>(run.peak_rss_bytes) / 1e6;
  }
  return NAN;
}

template <class Value>
void measure(SweepPoint& point, const Value& value) {
  std::vector<double> values;
  for (const RunRecord* const run : point.runs)
    if (const double v = value(*run); std::isfinite(v)) values.push_back(v);
  if (values.empty()) return;
  point.mean = 0;
  double squares = 0;
  for (const double v : values) point.mean += v / static_cast<double>(values.size());
  for (const double v : values) squares += (v - point.mean) * (v - point.mean);
  if (values.size() > 1) point.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
}

/// The best validation loss of the line called `name`, which the others are to reach, by place.
std::map<std::string, double> losses_to_reach(std::vector<SweepLine>& lines, const std::string& name) {
  std::vector<std::string> names;
  for (SweepLine& line : lines) {
    names.push_back(line.name);
    if (line.name != name) continue;
    std::map<std::string, double> losses;
    for (auto& [place, point] : line.points) {
      measure(point, [](const RunRecord& run) { return run.best ? run.best->value("loss") : NAN; });
      losses[place] = point.mean;
    }
    return losses;
  }
  throw Error(fmt::format("--reach {}: no line has this name, but {}", printable_line(name), join(names)));
}

std::string axis_title(const std::vector<RunRecord>& runs, const SweepPictureOptions& options) {
  if (!options.reach.empty()) return "seconds to the loss of " + options.reach;
  switch (options.value) {
    case PictureValue::score:
      return std::string("valid ") + metric_of(runs.front().config.train.monitor).name;
    case PictureValue::bits:
      return "valid bits per token";
    case PictureValue::seconds:
      return "seconds of training";
    case PictureValue::tokens_per_second:
      return "tokens per second of training";
    case PictureValue::peak_rss_mb:
      return "peak memory, MB";
  }
  return "";
}

/// Heights of names near the wanted ones, in the same order: moved down until they are apart, then up where the last
/// ones would be below the chart.
std::vector<double> apart(const std::vector<double>& wanted) {
  std::vector<double> placed;
  for (const double height : wanted)
    placed.push_back(placed.empty() ? height : std::max(height, placed.back() + between_names));
  double most = picture_height - at_bottom;
  for (size_t i = placed.size(); i-- > 0; most = placed[i] - between_names) placed[i] = std::min(placed[i], most);
  return placed;
}

/// Draws lines over places that are equally far apart.
class SweepDrawing {
 public:
  SweepDrawing(const std::vector<SweepLine>& lines, std::vector<std::string> places)
      : lines_(lines), places_(std::move(places)) {
    double low = INFINITY, high = -INFINITY;
    const auto include = [&](const SweepPoint& point) {
      if (!std::isfinite(point.mean)) return;
      low = std::min(low, point.mean - point.deviation);
      high = std::max(high, point.mean + point.deviation);
    };
    for (const SweepLine& line : lines_) {
      include(line.level);
      for (const auto& [place, point] : line.points) include(point);
    }
    if (low > high) throw Error("compare: no run has the value that the picture shows");
    log_ = low > 0 && high / low >= 10;
    ticks_ = log_ ? log_ticks(low, high) : axis_ticks(low, high, 5);
  }

  std::string svg(const std::string& title, const std::string& over) const {
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\"><style>{}</style>\n"
        "<title>{}</title>\n<text class=\"title\" x=\"{}\" y=\"22\">{}</text>\n",
        width(), picture_height, picture_style, escaped(title + " over " + over), at_left, escaped(title));
    for (const double tick : ticks_)
      out += fmt::format(
          "<path class=\"grid\" d=\"M{0:.1f} {1:.1f}H{2:.1f}\"/><text x=\"{3:.1f}\" y=\"{4:.1f}\" "
          "text-anchor=\"end\">{5}</text>\n",
          at_left, y(tick), plot_right, at_left - 7, y(tick) + 4, tick_text(tick, log_ ? tick : ticks_[1] - ticks_[0]));
    for (size_t i = 0; i < places_.size(); ++i)
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x(i),
                         picture_height - at_bottom + 20, escaped_short(places_[i], 16));
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", (at_left + plot_right) / 2,
                       picture_height - 8, escaped(over));
    return out + lines_svg() + "</svg>\n";
  }

 private:
  /// Of the plot, and of the longest name beside it, whose letters may be wide.
  double width() const {
    size_t longest = 0;
    for (const SweepLine& line : lines_) longest = std::max(longest, std::min(line.name.size(), longest_name));
    return plot_right + 40 + 8 * static_cast<double>(longest);
  }
  double x(size_t place) const {
    const double wide = plot_right - at_left;
    return places_.size() == 1 ? at_left + wide / 2
                               : at_left + wide * static_cast<double>(place) / static_cast<double>(places_.size() - 1);
  }
  double y(double value) const {
    const auto scaled = [this](double v) { return log_ ? std::log10(v) : v; };
    const double low = scaled(ticks_.front()), high = scaled(ticks_.back());
    return picture_height - at_bottom - (scaled(value) - low) / (high - low) * (picture_height - at_top - at_bottom);
  }

  /// Colour and dash pattern of a line: lines of one hue share the colour and differ in the pattern.
  std::string look(const SweepLine& line) const {
    std::vector<std::string> hues;
    std::map<std::string, size_t> with_hue;
    size_t dash = 0;
    for (const SweepLine& other : lines_) {
      if (std::find(hues.begin(), hues.end(), other.hue) == hues.end()) hues.push_back(other.hue);
      if (&other == &line) dash = with_hue[other.hue];
      ++with_hue[other.hue];
    }
    const auto hue = static_cast<size_t>(std::find(hues.begin(), hues.end(), line.hue) - hues.begin());
    return fmt::format("stroke=\"{}\" stroke-dasharray=\"{}\"", line_colours[hue % std::size(line_colours)],
                       line_dashes[dash % std::size(line_dashes)]);
  }

  /// The line, its dots and bars; `last` receives the height at its end, and stays as it is if nothing is drawn.
  std::string line_svg(const SweepLine& line, double& last) const {
    std::string path, dots, bars;
    const auto add = [&](double at, const SweepPoint& point, bool dot) {
      if (!std::isfinite(point.mean)) return;
      last = y(point.mean);
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", at, last);
      if (dot) dots += fmt::format("M{0:.1f} {1:.1f}h.1", at, last);
      if (point.deviation > 0)
        bars += fmt::format("M{0:.1f} {1:.1f}V{2:.1f}", at, y(point.mean - point.deviation),
                            y(point.mean + point.deviation));
    };
    for (size_t i = 0; i < places_.size(); ++i)
      if (const auto point = line.points.find(places_[i]); point != line.points.end()) add(x(i), point->second, true);
    if (path.empty()) {
      add(x(0), line.level, false);
      add(x(places_.size() - 1), line.level, false);
    }
    if (path.empty()) return "";
    const std::string look_of = look(line);
    return fmt::format(
        "<path class=\"line\" {0} d=\"{1}\"/><path class=\"dots\" {0} d=\"{2}\"/><path class=\"bars\" {0} "
        "d=\"{3}\"/>\n",
        look_of, path, dots, bars);
  }

  /// All lines, and a legend at their ends: names in the order of the ends, moved apart.
  std::string lines_svg() const {
    std::string out;
    std::vector<std::pair<double, const SweepLine*>> ends;
    for (const SweepLine& line : lines_) {
      double last = NAN;
      out += line_svg(line, last);
      if (std::isfinite(last)) ends.emplace_back(last, &line);
    }
    std::sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<double> wanted;
    for (const auto& [height, line] : ends) wanted.push_back(height);
    const std::vector<double> heights = apart(wanted);
    const double at = plot_right + 10;
    for (size_t i = 0; i < ends.size(); ++i)
      out += fmt::format("<path class=\"line\" {} d=\"M{:.1f} {:.1f}h18\"/><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                         look(*ends[i].second), at, heights[i], at + 24, heights[i] + 4,
                         escaped_short(ends[i].second->name, longest_name));
    return out;
  }

  const std::vector<SweepLine>& lines_;
  std::vector<std::string> places_;
  std::vector<double> ticks_;
  bool log_ = false;
};

}  // namespace

std::string sweep_picture(const std::vector<RunRecord>& runs, const SweepPictureOptions& options) {
  const DifferingKey over = key_called(options.over, runs);
  std::vector<SweepLine> lines = lines_of(runs, over);
  std::map<std::string, double> wanted;
  if (!options.reach.empty()) wanted = losses_to_reach(lines, options.reach);
  for (SweepLine& line : lines) {
    measure(line.level, [&](const RunRecord& run) { return value_of(run, options.value); });
    for (auto& [place, point] : line.points)
      measure(point, [&, &at = place](const RunRecord& run) {
        return options.reach.empty() ? value_of(run, options.value) : seconds_until(run, wanted[at]);
      });
  }
  return SweepDrawing(lines, places_of(over)).svg(axis_title(runs, options), over.short_name);
}

}  // namespace capstan
