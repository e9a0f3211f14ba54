// The page of `capstan report`: nothing in its data can leave them, and long curves are thinned.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "run/report/page.hpp"
#include "tests/support/texts.hpp"

using namespace capstan;

namespace {

const std::string data_begin = "<script type=\"application/json\" id=\"data\">";

std::string data_text(const std::string& page) {
  const size_t begin = page.find(data_begin) + data_begin.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

ReportedRun run_named(const std::string& folder) {
  ReportedRun run;
  run.record.folder = folder;
  run.record.config.model = LinearClassifierConfig{};
  return run;
}

TEST_CASE("texts of a run stay inside the data of its page, whatever they hold") {
  const std::string control("a\0b\x1B[31m", 8), line_ends_of_javascript = "a\u2028b\u2029";
  const std::vector<std::string> texts = {"</script><script>alert(1)</script>",
                                          "<!--<script>",
                                          "]]>",
                                          line_ends_of_javascript,
                                          "\"};alert(1);//",
                                          "\\u003c/script>",
                                          control,
                                          "caf\u00E9 \U0001F600"};
  const std::string plain = report_page({run_named("plain")});
  for (const std::string& text : texts) {
    INFO(text);
    ReportedRun run = run_named(text);
    run.notes = {text};
    run.sample = {text, text};
    run.ngrams = {{text, {{text, 0.5F}}}};
    const std::string page = report_page({run});
    for (const char* const tag : {"<script", "</script", "<!--"}) CHECK(count_of(page, tag) == count_of(plain, tag));
    const std::string json = data_text(page);
    CHECK(json.find('<') == std::string::npos);
    for (const char c : json) REQUIRE(static_cast<unsigned char>(c) < 0x80);
    const nlohmann::json shown = parse_json(json).at("runs").at(0);
    CHECK(shown.at("name") == text);
    CHECK(shown.at("notes").at(0) == text);
    CHECK(shown.at("sample").at(1) == text);
    CHECK(shown.at("ngrams").at(0).at("ngrams").at(0).at(0) == text);
  }
  // What is not UTF-8 is replaced.
  CHECK(parse_json(data_text(report_page({run_named("a\xFFz")}))).at("title") == "a\xEF\xBF\xBDz");
}

TEST_CASE("a long curve has the means of its points, a short one all of them") {
  ReportedRun run = run_named("runs/a");
  for (int i = 0; i < 2000; ++i) run.record.train.push_back({i, 0, 0, 0.5, i % 2 == 0 ? 1.0 : 3.0});
  const nlohmann::json many = parse_json(data_text(report_page({run}))).at("runs").at(0).at("train");
  REQUIRE(many.at("loss").size() == 500);
  for (const auto& loss : many.at("loss")) CHECK(loss == 2.0);
  CHECK(many.at("step").at(0) == 1.5);
  run.record.train.resize(3);
  run.record.train[1].loss = NAN;
  const nlohmann::json few = parse_json(data_text(report_page({run}))).at("runs").at(0).at("train");
  CHECK(few.at("loss") == nlohmann::json({1.0, nullptr, 1.0}));
}

}  // namespace
