// The picture of a sweep: which runs make a line, what it is called, and where its points are.
#include "run/report/sweep_picture.hpp"

#include <doctest/doctest.h>

#include <regex>

#include "core/base/error.hpp"

using namespace capstan;

namespace {

/// A run of two validations, after 10 and 20 seconds, of which the second is better by 1.
RunRecord window_run(const MixerConfig& mixer, double loss, int64_t seed = 1) {
  RunRecord run;
  run.config.seed = seed;
  LanguageModelConfig model;
  model.layers.resize(1);
  model.layers[0].mixer = mixer;
  run.config.model = model;
  run.seconds = 20;
  run.valid = {{1, 10, 0, 8, {{"loss", loss + 1}}}, {2, 20, 0, 8, {{"loss", loss}}}};
  run.best = run.valid.back();
  return run;
}

AftLocalConfig window_of(int64_t window, bool dense = false) {
  AftLocalConfig mixer;
  mixer.window = window;
  if (dense) mixer.position_bias = PositionBias::dense;
  return mixer;
}

std::vector<RunRecord> window_runs() {
  return {window_run(AftSimpleConfig(), 3), window_run(window_of(4), 2),       window_run(window_of(4), 2.5, 2),
          window_run(window_of(16), 1),     window_run(window_of(4, true), 4), window_run(window_of(128), 1.5)};
}

bool has_part(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

size_t occurrences(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// The points of the line that is called so, which is the line with the stroke of this name.
std::vector<std::pair<double, double>> points_of(const std::string& svg, const std::string& name) {
  std::smatch found;
  const std::regex of_name("stroke=\"(#[0-9a-f]+)\" stroke-dasharray=\"([^\"]+)\" d=\"[^\"]+h18\"/><text[^>]*>" + name +
                           "<");
  REQUIRE(std::regex_search(svg, found, of_name));
  const std::string look = "stroke=\"" + found[1].str() + "\" stroke-dasharray=\"" + found[2].str() + "\" d=\"";
  const size_t at = svg.find(look) + look.size();
  const std::string path = svg.substr(at, svg.find('"', at) - at);
  std::vector<std::pair<double, double>> points;
  const std::regex point("[ML]([0-9.]+) ([0-9.]+)");
  for (std::sregex_iterator next(path.begin(), path.end(), point), end; next != end; ++next)
    points.emplace_back(std::stod((*next)[1]), std::stod((*next)[2]));
  return points;
}

TEST_CASE("picture of a sweep: lines are called by what differs, seeds are one point, a run without the key is level") {
  const std::string svg = sweep_picture(window_runs(), {"window", PictureValue::score, ""});
  CHECK(occurrences(svg, "h18") == 3);  // lines
  const auto local = points_of(svg, "aft-local, position_bias f[^<]*"), simple = points_of(svg, "aft-simple");
  CHECK(has_part(svg, ">16</text>"));
  REQUIRE(local.size() == 3);
  CHECK(local[1].first - local[0].first == doctest::Approx(local[2].first - local[1].first));
  CHECK(local[0].second < local[2].second);  // 2.25 is above 1.5, and so nearer to the top
  CHECK(local[2].second < local[1].second);
  REQUIRE(simple.size() == 2);
  CHECK(simple[0].second == simple[1].second);
}

TEST_CASE("picture of a sweep: the time to the loss of another line") {
  std::vector<RunRecord> runs = {window_run(window_of(4), 2), window_run(window_of(16), 2.5)};
  AftConvConfig conv;
  for (const auto& [window, loss] : {std::pair<int64_t, double>{4, 1.5}, {16, 3}}) {
    conv.window = window;
    runs.push_back(window_run(conv, loss));
  }
  const std::string svg = sweep_picture(runs, {"window", PictureValue::score, "aft-local"});
  CHECK(points_of(svg, "aft-local").size() == 2);
  const auto conv_points = points_of(svg, "aft-conv");  // 15 of 20 seconds at window 4; does not get there at 16
  REQUIRE(conv_points.size() == 1);
  CHECK(conv_points[0].second > points_of(svg, "aft-local")[0].second);
}

TEST_CASE("picture of a sweep: keys and lines that are not there are named, with those that are") {
  const auto message = [](const SweepPictureOptions& options) {
    try {
      sweep_picture(window_runs(), options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(has_part(message({"chunk", PictureValue::score, ""}), "do not differ in such a key, but in "));
  CHECK(has_part(message({"chunk", PictureValue::score, ""}), "model.layers.0.mixer.window"));
  CHECK(has_part(message({"window", PictureValue::score, "gau"}), "--reach gau: no line has this name, but "));
}

}  // namespace
