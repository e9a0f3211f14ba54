// `capstan report` and `capstan metrics` on small runs.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "tests/cli/samples.hpp"

namespace capstan::testing {
namespace {

namespace fs = std::filesystem;

/// What is wrong with the nesting of a page's tags; empty when every one is closed in its turn.
std::string nesting_problem(const std::string& page) {
  std::vector<std::string> open;
  for (size_t at = page.find('<'); at != std::string::npos; at = page.find('<', at)) {
    // Attributes hold no '>': it is escaped.
    const size_t end = page.find('>', at);
    if (end == std::string::npos) return "a tag without an end";
    const std::string tag = page.substr(at + 1, end - at - 1), name = tag.substr(0, tag.find_first_of(" \n"));
    at = end;
    if (name == "!DOCTYPE" || name == "meta" || tag.back() == '/') continue;
    if (tag.front() != '/') {
      open.push_back(name);
      continue;
    }
    if (open.empty() || open.back() != name.substr(1)) return "</" + name.substr(1) + "> closes nothing";
    open.pop_back();
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

/// A page without the bytes of its pictures, among which any word may occur.
std::string without_pictures(std::string page) {
  const std::string begin = "base64,";
  for (size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at)) {
    at += begin.size();
    page.erase(at, page.find('"', at) - at);
  }
  return page;
}

/// The page stands alone, and nothing from outside got into its tags.
void check_page(const std::string& whole) {
  const std::string page = without_pictures(whole);
  CHECK(nesting_problem(page) == "");
  CHECK(page.find("<script") == std::string::npos);
  for (const char* const fetched : {"http:", "https:", "src=", "@import", "url("}) {
    INFO(fetched);
    CHECK(page.find(fetched) == std::string::npos);
  }
  CHECK(page.find("nan") == std::string::npos);
}

TEST_CASE("a page of a language model: curves, table, position bias") {
  const Workplace place;
  write_trained_samples(place);
  const Outcome outcome = succeed(place, {"report", "runs/lm", "--output", "lm.html"});
  CHECK(outcome.out == "");
  const std::string page = place.read("lm.html");
  check_page(page);
  for (const char* const part : {"Loss over steps", "Loss over time", "loss (nats per token)", "Throughput",
                                 "tokens per second", "layer 1: aft-local", "position bias", "image/png;base64,"})
    CHECK_MESSAGE(contains(page, part), part);
  CHECK_FALSE(contains(page, "class=\"note\""));
  succeed(place, {"report", "runs/lm", "--output", "curves.html", "--curves-only"});
  CHECK_FALSE(contains(place.read("curves.html"), "image/png"));
  check_page(place.read("curves.html"));
}

TEST_CASE("runs beside each other: one legend, their differences, mean and deviation over seeds") {
  const Workplace place;
  write_samples(place);
  for (const char* const seed : {"1", "2"})
    succeed(place,
            {"train", "--config", "lm.yaml", "--set", "name=s" + std::string(seed), "seed=" + std::string(seed)});
  succeed(place, {"report", "runs/s1", "runs/s2", "--output", "both.html", "--curves-only"});
  const std::string page = place.read("both.html");
  check_page(page);
  for (const char* const part : {"<title>Capstan: 2 runs</title>", "runs/s1", "runs/s2", "<th>seed</th>", "±"})
    CHECK_MESSAGE(contains(page, part), part);
  const std::string table = succeed(place, {"compare", "runs/s1", "runs/s2"}).out;
  CHECK(contains(table, "Over seeds and folds, mean ± standard deviation:"));
}

TEST_CASE("classes, texts and names with signs of HTML stay text; every mixer's weights are shown") {
  const Workplace place;
  write_samples(place);
  std::string rows;
  for (int i = 0; i < 30; ++i) rows += "<b>&\"x\"\ta <i>fine</i> day\n'sad'\tnight & \"fog\"\n";
  place.write("train.tsv", rows);
  for (const char* const mixer : {"fastformer", "flash", "gau", "attention"})
    succeed(place, {"train", "--config", "classifier.yaml", "--set", "name=<u>" + std::string(mixer),
                    "model.layers=[{mixer: " + std::string(mixer) + "}]", "model.pooling=cls"});
  succeed(place, {"report", "runs/<u>fastformer", "runs/<u>flash", "runs/<u>gau", "runs/<u>attention", "-o", "all.html",
                  "--text", "<i>a > y"});
  const std::string page = place.read("all.html");
  check_page(page);
  for (const char* const part :
       {"&lt;b&gt;&amp;&quot;x&quot;", "&#39;sad&#39;", "runs/&lt;u&gt;flash", "query pool", "key pool",
        "attention in chunks", "[cls]", "&lt;i&gt;a", "true class, predicted", "macro F1", "recall"})
    CHECK_MESSAGE(contains(page, part), part);
  for (const char* const tag : {"<b>&", "<i>", "<u>"}) CHECK_FALSE(contains(page, tag));
}

TEST_CASE("without its data a run still has its curves, and the page says what is missing") {
  const Workplace place;
  write_trained_samples(place);
  fs::remove(place / "train.tsv");
  fs::remove_all(place / "text");
  const Outcome outcome = succeed(place, {"report", "runs/classifier", "-o", "page.html"});
  CHECK(contains(outcome.err, "no confusion matrix"));
  const std::string page = place.read("page.html");
  check_page(page);
  CHECK(contains(page, "no confusion matrix: "));
  CHECK(contains(page, "train.tsv"));
  CHECK(contains(page, "position bias"));  // aft-full's needs no text
  succeed(place, {"report", "runs/lm", "-o", "lm.html", "--text", "the tape"});
  CHECK_FALSE(contains(place.read("lm.html"), "class=\"note\""));
  fs::remove_all(place / "runs/lm/checkpoints");
  succeed(place, {"report", "runs/lm", "-o", "lm.html"});
  CHECK(contains(place.read("lm.html"), "the mixers are not shown"));
}

TEST_CASE("what report and metrics refuse") {
  const Workplace place;
  write_trained_samples(place);
  fs::create_directories(place / "empty");
  fs::create_directories(place / "begun");
  fs::copy_file(place / "runs/lm/config.yaml", place / "begun/config.yaml");
  const std::vector<Refusal> refusals = {
      {"no run", {}, {"report", "empty", "-o", "x.html"}, 1, {"empty", "no config.yaml", "none of the folders"}},
      {"no metrics yet", {}, {"report", "begun", "-o", "x.html"}, 1, {"begun/metrics.jsonl", "has training started"}},
      {"different tasks",
       {},
       {"report", "runs/lm", "runs/classifier", "-o", "x.html"},
       2,
       {"runs/classifier is a text-classifier", "runs/lm a language-model", "one report for each"}},
      {"no output", {}, {"report", "runs/lm"}, 2, {"--output"}},
      {"output in no folder", {}, {"report", "runs/lm", "-o", "none/x.html"}, 2, {"--output", "none", "create it"}},
      {"output a folder", {}, {"report", "runs/lm", "-o", "runs"}, 2, {"--output: runs is a folder"}},
      {"no split", {}, {"report", "runs/lm", "-o", "x.html", "--split", "dev"}, 2, {"--split: dev is not one of"}},
      {"metrics of no run", {}, {"metrics", "empty"}, 1, {"empty", "no config.yaml"}},
      {"metrics of none yet", {}, {"metrics", "begun"}, 1, {"has training started"}},
      {"no such format", {}, {"metrics", "runs/lm", "--format", "xml"}, 2, {"--format: xml is not one of text, csv"}},
  };
  for (const Refusal& refusal : refusals) check_refused(place, refusal);
  CHECK_FALSE(fs::exists(place / "x.html"));
  // Beside a good run, a bad folder is a warning.
  const Outcome outcome = succeed(place, {"report", "runs/lm", "empty", "-o", "good.html"});
  CHECK(contains(outcome.err, "left out"));
}

std::vector<std::string> fields(const std::string& line) {
  std::vector<std::string> out(1);
  for (const char c : line)
    if (c == ',')
      out.emplace_back();
    else
      out.back() += c;
  return out;
}

TEST_CASE("metrics as CSV tell what metrics.jsonl tells, a row per step") {
  const Workplace place;
  write_trained_samples(place);
  const std::vector<std::string> rows = lines_of(succeed(place, {"metrics", "runs/lm", "--format", "csv"}).out);
  const std::vector<std::string> header = fields(rows.at(0));
  REQUIRE(header.front() == "step");
  std::map<std::string, std::map<std::string, std::string>> at;  // step -> column -> cell
  for (size_t i = 1; i < rows.size(); ++i) {
    const std::vector<std::string> row = fields(rows[i]);
    REQUIRE(row.size() == header.size());
    CHECK(at.count(row[0]) == 0);
    for (size_t c = 0; c < row.size(); ++c) at[row[0]][header[c]] = row[c];
  }
  CHECK(at.size() == 6);
  size_t told = 0;
  for (const std::string& line : lines_of(place.read("runs/lm/metrics.jsonl"))) {
    const nlohmann::json event = parse_json(line);
    const auto& row = at.at(std::to_string(event.at("step").get<int64_t>()));
    const bool train = event.at("event") == "train";
    CHECK(std::stod(row.at(train ? "train_loss" : "valid_loss")) == event.at("loss").get<double>());
    if (train) {
      CHECK(std::stod(row.at("lr")) == event.at("lr").get<double>());
      CHECK(std::stod(row.at("grad_norm")) == event.at("grad_norm").get<double>());
    } else {
      CHECK(std::stod(row.at("valid_accuracy")) == event.at("accuracy").get<double>());
    }
    ++told;
  }
  CHECK(told == 8);
  CHECK(at.at("1").at("valid_loss") == "");
  const std::vector<std::string> text = lines_of(succeed(place, {"metrics", "runs/lm"}).out);
  CHECK(text.size() == rows.size());
  CHECK(contains(text[0], "train_loss"));
}

}  // namespace
}  // namespace capstan::testing
