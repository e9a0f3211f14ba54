// What the page of `capstan report` is made of: escaping, charts, pictures, words.
#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <fstream>

#include "core/io/log.hpp"
#include "run/report/chart.hpp"
#include "run/report/heat_map.hpp"
#include "run/report/html.hpp"
#include "run/report/model_view.hpp"
#include "run/run.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace capstan;

namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST_CASE("text cannot leave its place in HTML") {
  CHECK(escaped("a <b> & \"c\" 'd'") == "a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  CHECK(escaped("caf\xC3\xA9 \xE6\x97\xA5\n") == "caf\xC3\xA9 \xE6\x97\xA5\n");
  CHECK(escaped(std::string("\x01\x7F\xC2\x85\0", 5)) == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(escaped("\xFF"
                "a\xC3") ==
        "\xEF\xBF\xBD"
        "a\xEF\xBF\xBD");
  CHECK(escaped("") == "");
  CHECK(escaped("a\r\nb") == "a\xE2\x90\x8D\nb");  // CR LF as such
  CHECK(escaped_short("<<<<", 3) == "&lt;&lt;&lt;\xE2\x80\xA6");
  CHECK(escaped_short("\xC3\xA9\xC3\xA9", 2) == "\xC3\xA9\xC3\xA9");
}

TEST_CASE("ticks are round numbers that enclose the range") {
  struct Case {
    double low, high;
    std::vector<double> ticks;
  };
  for (const Case& c :
       {Case{0, 1, {0, 0.2, 0.4, 0.6, 0.8, 1}}, Case{0, 1000, {0, 200, 400, 600, 800, 1000}},
        Case{1.31, 2.2, {1.2, 1.4, 1.6, 1.8, 2, 2.2}}, Case{0, 6, {0, 2, 4, 6}}, Case{-1, 1, {-1, -0.5, 0, 0.5, 1}}}) {
    const std::vector<double> ticks = axis_ticks(c.low, c.high, 5);
    REQUIRE(ticks.size() == c.ticks.size());
    for (size_t i = 0; i < ticks.size(); ++i) CHECK(ticks[i] == doctest::Approx(c.ticks[i]));
  }
  for (const auto& [low, high] : {std::pair<double, double>{0, 0},
                                  {5, 5},
                                  {1e-9, 2e-9},
                                  {-3e12, 7e12},
                                  {2, 1},
                                  // nearly equal numbers, and such whose distance is 0 or infinite in double
                                  {1, 1 + 1e-15},
                                  {1, 1 + 2.3e-16},
                                  {1e16, 1e16 + 2},
                                  {0, 5e-324},
                                  {-9e299, 9e299}}) {
    const std::vector<double> ticks = axis_ticks(low, high, 5);
    REQUIRE(ticks.size() >= 2);
    CHECK(ticks.size() <= 9);
    CHECK(ticks.front() <= low + 1e-9 * std::abs(low));
    CHECK(ticks.back() >= high - 1e-6 * std::abs(high));
  }
}

TEST_CASE("ticks have the digits their step needs") {
  CHECK(tick_text(0.4, 0.2) == "0.4");
  CHECK(tick_text(1, 0.25) == "1.00");
  CHECK(tick_text(3, 1) == "3");
  CHECK(tick_text(0, 0.25) == "0");
  CHECK(tick_text(12000, 2000) == "12k");
  CHECK(tick_text(1500, 500) == "1.5k");
  CHECK(tick_text(200, 100) == "200");
  CHECK(tick_text(2e6, 1e6) == "2M");
  CHECK(tick_text(7.5e-5, 2.5e-5) == "7.5e-5");
  CHECK(tick_text(0.01, 0.0025) == "1e-2");
  CHECK(tick_text(99.998, 0.002) == "99.998");
}

TEST_CASE("thinning averages neighbours and leaves out what is not finite") {
  std::vector<ChartPoint> points;
  for (int i = 0; i < 1000; ++i) points.push_back({static_cast<double>(i), i % 2 == 0 ? 1.0 : 3.0});
  const std::vector<ChartPoint> thin = thinned(points, 100);
  REQUIRE(thin.size() == 100);
  for (const ChartPoint& point : thin) CHECK(point.y == doctest::Approx(2));
  CHECK(thin.front().x == doctest::Approx(4.5));
  CHECK(thin.back().x == doctest::Approx(994.5));
  CHECK(thinned({{0, 1}, {1, NAN}, {INFINITY, 2}, {2, 3}}, 10).size() == 2);
}

TEST_CASE("smoothing is the mean of what is around, and leaves out what is not finite") {
  std::vector<ChartPoint> points{{-1, NAN}};
  for (int i = 0; i < 100; ++i) points.push_back({static_cast<double>(i), i % 2 == 0 ? 1.0 : 3.0});
  const std::vector<ChartPoint> smooth = smoothed(points);
  REQUIRE(smooth.size() == 100);
  for (const ChartPoint& point : smooth) CHECK(std::abs(point.y - 2) < 0.2);
  CHECK(smooth[50].x == 50);
  CHECK(smoothed({{0, 1}, {1, 5}})[1].y == 5);  // too few to smooth
}

TEST_CASE("a chart draws every line, cuts what squeezes the rest, and is nothing without points") {
  Chart chart{"Loss <1>", "nats", "step", {}};
  CHECK(to_html(chart) == "");
  chart.lines.push_back({"empty", {{1, NAN}}, 0, LineStyle::thin});
  CHECK(to_html(chart) == "");
  chart.lines.push_back({"a & b", {{1, 2}, {2, 1.5}, {3, 1}}, 1, LineStyle::marked});
  chart.lines.push_back({"alone", {{2, 1.25}}, 8, LineStyle::marked});
  const std::string svg = to_html(chart);
  CHECK(count_of(svg, "<path") == 2);
  CHECK(count_of(svg, "<circle") == 4);
  CHECK(svg.find("data-name=\"a &amp; b\" data-values=\"1 2,2 1.5,3 1\"") != std::string::npos);
  CHECK(svg.find("Loss &lt;1&gt;") != std::string::npos);
  CHECK(svg.find("class=\"c2 d1 marked\"") != std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  CHECK(svg.find("above the chart") == std::string::npos);
  CHECK(count_of(svg, "class=\"best\"") == 0);
  chart.lines[1].best = ChartPoint{3, 1};
  CHECK(count_of(to_html(chart), "class=\"best\"") == 1);
  std::vector<ChartPoint> steep{{0, 1000}};
  for (int i = 1; i < 100; ++i) steep.push_back({static_cast<double>(i), 1});
  chart.lines = {{"steep", steep, 0, LineStyle::thin}};
  CHECK(to_html(chart).find("above the chart") != std::string::npos);
}

TEST_CASE("an axis of shares ends at 100 %, one of steps where the run does") {
  Chart chart{"Accuracy", "%", "step", {}, false, false, /*most=*/100.0};
  for (const std::vector<ChartPoint>& points : {std::vector<ChartPoint>{{1, 100}, {340, 100}},
                                                {{1, 99.93}, {340, 100}},
                                                {{1, 30}, {340, 81}},
                                                {{1, 0}, {340, 0}}}) {
    chart.lines = {{"", points, 0, LineStyle::marked}};
    const std::string svg = to_html(chart);
    for (const char* const beyond : {">100.05<", ">102<", ">105<", ">120<", ">150<", ">400<"})
      CHECK_MESSAGE(svg.find(beyond) == std::string::npos, beyond);
    CHECK(svg.find(">300<") != std::string::npos);
  }
}

TEST_CASE("values of several sizes get a logarithmic axis, and none is cut off") {
  Chart chart{"Gradient norm", "", "step", {}, false, /*may_be_log=*/true};
  chart.lines = {{"", {{1, 200}, {2, 0.3}, {3, 0.02}}, 0, LineStyle::thin}};
  const std::string svg = to_html(chart);
  for (const char* const part : {"log scale", ">0.01<", ">0.1<", ">1<", ">10<", ">100<", ">1k<"})
    CHECK_MESSAGE(svg.find(part) != std::string::npos, part);
  CHECK(svg.find("above the chart") == std::string::npos);
  chart.lines[0].points[2].y = 0;  // has no logarithm
  CHECK(to_html(chart).find("log scale") == std::string::npos);
  chart.lines[0].points = {{1, 0.3}, {2, 0.2}};
  CHECK(to_html(chart).find("log scale") == std::string::npos);
}

TEST_CASE("a chart of one point is its value") {
  const Chart chart{"Accuracy", "%", "step", {{"held out", {{1, 88.8333333}}, 0, LineStyle::marked}}};
  const std::string figure = to_html(chart);
  CHECK(figure.find("<b>88.833</b> %") != std::string::npos);
  CHECK(figure.find("held out") != std::string::npos);
  CHECK(figure.find("data-values") == std::string::npos);
}

TEST_CASE("tables align columns of numbers, can be scrolled by keyboard, and name their rows") {
  const std::string html =
      table_html({{"run", "mixer", "loss"}, {"a<b", "gau", "1.5"}, {"c", "aft", "-"}}, "x & y", true);
  for (const char* const part : {"tabindex=\"0\" role=\"region\" aria-label=\"x &amp; y\"",
                                 "<th scope=\"col\">mixer</th>", "<th class=\"number\" scope=\"col\">loss</th>",
                                 "a&lt;b</div></th><td><div>gau</div></td><td class=\"number\">1.5</td>"})
    CHECK_MESSAGE(html.find(part) != std::string::npos, part);
  CHECK(count_of(html, "class=\"sample\"") == 2);
}

uint32_t big_endian(const std::string& bytes, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) number = number << 8 | static_cast<unsigned char>(bytes[at + i]);
  return number;
}

TEST_CASE("a PNG holds its pixels and right checksums") {
  Pixels pixels{3, 2, {}};
  for (int i = 0; i < 24; ++i) pixels.rgba.push_back(static_cast<uint8_t>(10 * i));
  const std::string png = to_png(pixels);
  CHECK(png.substr(0, 8) == "\x89PNG\r\n\x1A\n");
  std::vector<std::string> types;
  std::string data;
  for (size_t at = 8; at < png.size();) {
    const size_t size = big_endian(png, at);
    const std::string content = png.substr(at + 4, 4 + size);
    types.push_back(content.substr(0, 4));
    CHECK(big_endian(png, at + 8 + size) ==
          crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
    if (types.back() == "IHDR") CHECK(content.substr(4) == std::string("\0\0\0\3\0\0\0\2\10\6\0\0\0", 13));
    if (types.back() == "IDAT") data = content.substr(4);
    at += 12 + size;
  }
  CHECK(types == std::vector<std::string>{"IHDR", "IDAT", "IEND"});
  std::string rows(100, '\0');
  uLongf size = rows.size();
  REQUIRE(uncompress(reinterpret_cast<Bytef*>(rows.data()), &size, reinterpret_cast<const Bytef*>(data.data()),
                     data.size()) == Z_OK);
  REQUIRE(size == 2 * 13);
  for (size_t i = 0; i < 24; ++i) CHECK(static_cast<uint8_t>(rows[i / 12 * 13 + 1 + i % 12]) == pixels.rgba[i]);
}

TEST_CASE("pooling averages blocks of what is there") {
  const Matrix matrix{4, 4, {1, 2, 3, 4, 5, 6, 7, 8, NAN, NAN, 1, NAN, NAN, NAN, NAN, 3}};
  const Matrix half = pooled(matrix, 2);
  REQUIRE(half.rows == 2);
  CHECK(half.at(0, 0) == doctest::Approx(3.5));
  CHECK(half.at(0, 1) == doctest::Approx(5.5));
  CHECK(std::isnan(half.at(1, 0)));
  CHECK(half.at(1, 1) == doctest::Approx(2));
  const Matrix odd = pooled({1, 3, {1, 2, 6}}, 2);  // 1 | 2 6
  CHECK(odd.at(0, 0) == doctest::Approx(1));
  CHECK(odd.at(0, 1) == doctest::Approx(4));
  CHECK(pooled(matrix, 4).values.size() == 16);
}

TEST_CASE("the scale of colours leaves out the few strongest numbers") {
  HeatMap map{"", {1, 1000, std::vector<float>(1000, -0.5F)}, "", ""};
  map.matrix.values[3] = 80;
  map.matrix.values[4] = NAN;
  CHECK(colour_limit({map}) == doctest::Approx(0.5));
  CHECK(colour_limit({}) > 0);
  CHECK(colour_limit({{"", {1, 2, {0, 0}}, "", ""}}) > 0);
  const std::string html = to_html({map, map}, "a < b");
  CHECK(count_of(html, "<image") == 2);
  CHECK(html.find("a &lt; b") != std::string::npos);
  CHECK(html.find("bar two") != std::string::npos);
}

TEST_CASE("tokens belong to the words they spell") {
  const auto bytes = make_tokenizer(ByteTokenizerConfig{}, {});
  const Words spelled = words_of(*bytes, bytes->encode("a  caf\xC3\xA9 b"));
  CHECK(spelled.texts == std::vector<std::string>{"a  ", "caf\xC3\xA9 ", "b"});
  CHECK(spelled.of_token == std::vector<size_t>{0, 0, 0, 1, 1, 1, 1, 1, 1, 2});
  const auto words = make_tokenizer(WordTokenizerConfig{}, {"one two\nthree"});
  const Words whole = words_of(*words, words->encode("one two\nthree"));
  REQUIRE(whole.texts.size() >= 3);
  CHECK(whole.texts[0] == "one");
  CHECK(whole.texts[1] == " two\n");
  CHECK(whole.texts[2].substr(0, 5) == "three");
  CHECK(words_of(*bytes, {}).texts.empty());
  // What stands between two texts is no token of the tokenizer.
  const Words documents = words_of(*bytes, {256, 'a', 'b', 256, 'c'});
  CHECK(documents.of_token == std::vector<size_t>{0, 1, 1, 2, 3});
  CHECK(documents.texts[1] == "ab");
  CHECK(words_of(*bytes, {256, 'a', 257, 'b'}).texts[2] == " \u2192 ");  // from a source to its target
}

TEST_CASE("the mixing picture of pairs: sources are seen as a whole, targets from behind, other pairs not at all") {
  const TemporaryFolder folder;
  std::string pairs;
  for (int i = 0; i < 40; ++i) pairs += "red " + std::to_string(i) + " blue\tblue red\n";
  folder.write("pairs.tsv", pairs);
  std::ofstream(folder / "run.yaml")
      << "folder: " << folder.path() << "\nname: run\ndata: {type: pairs, train: [" << folder.path("pairs.tsv")
      << "], valid_fraction: 0.2, tokenizer: word, max_source: 8, max_length: 24}\nmodel: {type: language-model, "
         "prefix: bidirectional, width: 16, max_length: 24, layers: [{mixer: attention}]}\ntrain: {steps: 2}\n";
  set_log_sink([](LogLevel, std::string_view) {});
  const Run run = train(ConfigOptions{{folder.path("run.yaml")}, {}});
  const auto data = open_saved_data(run.saved());
  set_log_sink({});
  const Batch example = example_of(*data, Split::valid);
  const ModelView view = view_of(run.saved(), example);
  REQUIRE(view.layers.size() == 1);
  const Matrix& map = view.layers[0].weights.at(0).maps.at(0).matrix;
  REQUIRE(map.rows > 12);  // two pairs or more
  std::vector<bool> in_source;
  bool reading = true;
  for (size_t t = 0; t < map.rows; ++t) {
    const auto i = static_cast<int64_t>(t);
    if (t > 0 && example.segment_ids[i] != example.segment_ids[i - 1]) reading = true;
    in_source.push_back(reading);
    if (example.tokens[i] == run.saved().tokenizer->vocabulary_size() + 1) reading = false;
  }
  for (size_t t = 0; t < map.rows; ++t) {
    double sum = 0;
    for (size_t s = 0; s < map.columns; ++s) {
      const bool same = example.segment_ids[static_cast<int64_t>(t)] == example.segment_ids[static_cast<int64_t>(s)];
      const bool seen = same && (s <= t || (in_source[t] && in_source[s]));
      REQUIRE(std::isfinite(map.at(t, s)) == seen);
      if (seen) sum += static_cast<double>(map.at(t, s));
    }
    CHECK(sum == doctest::Approx(1));
  }
}

}  // namespace
