// `capstan report` and `capstan metrics` on small runs.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "tests/cli/support/samples.hpp"
#include "tests/support/source_dir.hpp"

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
  CHECK(page.find("<script") == page.rfind("<script>"));  // one, of its own
  CHECK(contains(page, "content=\"default-src 'none'; img-src data:;"));
  for (const char* const fetched : {"http:", "https:", "src=", "@import", "url("}) {
    INFO(fetched);
    CHECK_FALSE(contains(page, fetched));
  }
  CHECK_FALSE(contains(page, "nan"));
}

TEST_CASE("a page of a language model: curves, table, position bias") {
  const TrainedPlace place;
  const Outcome outcome = succeed(place, "report runs/lm --output lm.html");
  CHECK(outcome.out == "");
  const std::string page = place.read("lm.html");
  check_page(page);
  size_t at = 0;  // results before settings
  for (const char* const part :
       {"A language-model on data of type text: text. Trained 20", "validation loss", "Loss", "nats per token",
        "Learning rate", "Gradient norm", "Throughput", "tokens per second", "A sample of text", "layer 1: aft-local",
        "position bias", "image/png;base64,", "Configuration", "sequence_length: 32"}) {
    CHECK_MESSAGE(page.find(part, at) != std::string::npos, part);
    at = std::min(page.find(part, at), page.size());
  }
  CHECK_FALSE(contains(page, "class=\"note\""));
  succeed(place, "report runs/lm --output curves.html --curves-only");
  CHECK_FALSE(contains(place.read("curves.html"), "image/png"));
  check_page(place.read("curves.html"));
}

TEST_CASE("runs beside each other: one legend, their differences, mean and deviation over seeds") {
  const SamplePlace place;
  for (const char* const seed : {"1", "2"})
    succeed(place,
            {"train", "--config", "lm.yaml", "--set", "name=s" + std::string(seed), "seed=" + std::string(seed)});
  succeed(place, "report runs/s1 runs/s2 --output both.html --curves-only");
  const std::string page = place.read("both.html");
  check_page(page);
  check_contains(page, {"<title>runs: 2 runs – Capstan</title>", ">s1</div></th>", ">s2</div></th>", ">seed</th>", "±",
                        "The same in all: step 6"});
  CHECK_FALSE(contains(page, ">step</th>"));
  const std::string table = succeed(place, "compare runs/s1 runs/s2").out;
  CHECK(contains(table, "Over seeds and folds, mean ± standard deviation:"));
}

TEST_CASE("classes, texts and names with signs of HTML stay text; every mixer's weights are shown") {
  const SamplePlace place;
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
       {"&lt;b&gt;&amp;&quot;x&quot;", "&#39;sad&#39;", ">&lt;u&gt;flash", "query pool", "key pool",
        "attention in chunks", "[cls]", "&lt;i&gt;a", "true class, predicted", "macro f1", "recall"})
    CHECK_MESSAGE(contains(page, part), part);
  for (const char* const tag : {"<b>&", "<i>", "<u>"}) CHECK_FALSE(contains(page, tag));
}

TEST_CASE("without its data a run still has its curves, and the page says what is missing") {
  const TrainedPlace place;
  fs::remove(place / "train.tsv");
  fs::remove_all(place / "text");
  const Outcome outcome = succeed(place, "report runs/classifier -o page.html");
  CHECK(contains(outcome.err, "no results"));
  const std::string page = place.read("page.html");
  check_page(page);
  check_contains(page, {"no results: ", "train.tsv"});
  CHECK(contains(page, "position bias"));  // aft-full's needs no text
  succeed(place, {"report", "runs/lm", "-o", "lm.html", "--text", "the tape"});
  CHECK_FALSE(contains(place.read("lm.html"), "class=\"note\""));
  fs::remove_all(place / "runs/lm/checkpoints");
  succeed(place, "report runs/lm -o lm.html");
  CHECK(contains(place.read("lm.html"), "the model is not shown"));
}

TEST_CASE("what report and metrics refuse") {
  const TrainedPlace place;
  fs::create_directories(place / "empty");
  fs::create_directories(place / "begun");
  fs::copy_file(place / "runs/lm/config.yaml", place / "begun/config.yaml");
  const std::vector<Refusal> refusals = {
      {"no run", "report empty -o x.html", "empty ... no config.yaml ... none of the folders"},
      {"no metrics yet", "report begun -o x.html", "begun/metrics.jsonl ... has training started"},
      {"different tasks", "report runs/lm runs/classifier -o x.html",
       "runs/lm is a language-model ... runs/classifier a text-classifier ... one report for each", 2},
      {"no output", "report runs/lm", "--output", 2},
      {"output in no folder", "report runs/lm -o none/x.html", "--output ... none ... create it", 2},
      {"output a folder", "report runs/lm -o runs", "--output: runs is a folder", 2},
      {"no split", "report runs/lm -o x.html --split dev", "--split: dev is not one of", 2},
      {"metrics of no run", "metrics empty", "empty ... no config.yaml"},
      {"metrics of none yet", "metrics begun", "has training started"},
      {"no such format", "metrics runs/lm --format xml", "--format: xml is not one of text, csv", 2},
  };
  check_all_refused(place, refusals);
  CHECK_FALSE(fs::exists(place / "x.html"));
  // Beside a good run, a bad folder is a warning.
  const Outcome outcome = succeed(place, "report runs/lm empty -o good.html");
  CHECK(contains(outcome.err, "left out"));
}

/// The values of one line of a chart, "x y,x y"; empty if there is none.
std::string drawn(const std::string& page, const std::string& chart, const std::string& line) {
  const size_t figure = page.find("<figcaption>" + chart + " <small>"), end = page.find("</figure>", figure);
  const std::string before = "data-name=\"" + line + "\" data-values=\"";
  const size_t at = page.find(before, figure);
  if (figure == std::string::npos || at > end) return "";
  return page.substr(at + before.size(), page.find('"', at + before.size()) - at - before.size());
}

/// Fails where the curves of a page, or the figures of its best evaluation, are not those of the run's metrics.jsonl.
/// `label`: the run's name among several.
void check_figures(const Workplace& place, const std::string& run, const std::string& page,
                   const std::string& label = "") {
  INFO(run);
  const std::string after = label.empty() ? "" : ": " + label;
  std::map<std::string, std::string> expected;  // chart and line -> values
  nlohmann::json best;
  for (const std::string& line : lines_of(place.read("runs/" + run + "/metrics.jsonl"))) {
    const nlohmann::json event = parse_json(line);
    const bool train = event.at("event") == "train";
    const auto add = [&](const std::string& chart, const char* key, double factor) {
      if (!event.contains(key) || event.at(key).is_null()) return;
      std::string& values = expected[chart + "/" + (train ? "training" : "validation") + after];
      values += fmt::format("{}{} {}", values.empty() ? "" : ",", event.at("step").get<int64_t>(),
                            factor * event.at(key).get<double>());
    };
    add("Loss", "loss", 1);
    add("Learning rate", "lr", 1);
    add("Gradient norm", "grad_norm", 1);
    add("Accuracy", "accuracy", 100);
    add("Micro-F1", "micro_f1", 100);
    add("Macro-F1", "macro_f1", 100);
    if (!train && event.at("best") == true) best = event;
  }
  size_t curves = 0;
  for (const auto& [name, values] : expected) {
    if (!contains(values, ",")) continue;
    const size_t slash = name.find('/');
    CHECK_MESSAGE(drawn(page, name.substr(0, slash), name.substr(slash + 1)) == values, name);
    ++curves;
  }
  const bool solved = contains(page, "<dt>cross-validation loss</dt>");
  CHECK((solved || curves >= 5));
  if (!label.empty()) {
    const size_t row = page.find("</svg>" + label + "</div></th>");
    REQUIRE(row != std::string::npos);
    const std::string cells = page.substr(row, page.find("</tr>", row) - row);
    for (const char* const key : {"loss", "accuracy"})
      CHECK_MESSAGE(contains(cells, fmt::format("<td class=\"number\">{:.4f}</td>", best.at(key).get<double>())), key);
    return;
  }
  check_contains(page, {fmt::format("{} loss</dt><dd>{:.4f}</dd>", solved ? "cross-validation" : "validation",
                                    best.at("loss").get<double>()),
                        fmt::format("accuracy</dt><dd>{:.2f} %</dd>", 100 * best.at("accuracy").get<double>())});
}

constexpr const char* small_pairs_yaml = R"(name: pairs
data: {type: pairs, train: [pairs.tsv], valid: [pairs.tsv], max_length: 24, max_source: 8, tokenizer: word}
model:
  type: language-model
  prefix: bidirectional
  width: 32
  max_length: 24
  layers: [{mixer: {type: gau, key_dim: 16}, feed_forward: {type: none}}]
train: {steps: 40, batch_size: 4, lr: 5e-3, valid_every: 10, log_every: 4, progress: plain}
)";

TEST_CASE("the figures of a page are those of metrics.jsonl and of eval, for each kind of run") {
  const TrainedPlace place;
  std::string pairs, labelled, topics;
  for (int i = 0; i < 40; ++i) {
    const std::string a = i % 2 == 0 ? "red" : "blue", b = i % 3 == 0 ? "ship" : "rope", c = i % 5 == 0 ? "old" : "new";
    pairs += a + " " + b + " " + c + "\t" + b + " " + a + "\n";
    labelled += a + "\tthe " + a + "ish " + b + " of " + c + " days\n";
    topics += a + "," + b + ",topic" + std::to_string(i % 20) + "\t" + c + " " + a + " " + b + "\n";
  }
  place.write("pairs.tsv", pairs);
  place.write("pairs.yaml", small_pairs_yaml);
  place.write("labelled.tsv", labelled);
  place.write("topics.tsv", topics);
  succeed(place, "train --config pairs.yaml");
  succeed(place, {"train", "--config", source_path("configs/classify.yaml"), "--set", "name=linear",
                  "data.train=[labelled.tsv]", "data.test=[labelled.tsv]"});
  succeed(place,
          "train --config classifier.yaml --set name=topics data.train=[topics.tsv] data.multi_label=true "
          "train.monitor=micro-f1 train.valid_every=2");
  std::map<std::string, std::string> pages;
  for (const char* const run : {"lm", "classifier", "pairs", "linear", "topics"}) {
    const std::string folder = std::string("runs/") + run;
    const Outcome outcome = succeed(place, {"report", folder, "-o", "page.html"});
    const std::string page = pages[run] = place.read("page.html");
    check_page(page);
    CHECK_FALSE(contains(page, "class=\"note\""));
    check_figures(place, run, page);
    if (std::string(run) == "lm") continue;
    const std::string split = std::string(run) == "linear" ? "test" : "valid";
    const nlohmann::json figures =
        parse_json(succeed(place, {"eval", folder, "--split", split, "--format", "json"}).out);
    for (const char* const name : {"loss", "exact_match", "macro_f1", "micro_f1"}) {
      if (!figures.contains(name)) continue;
      std::string shown = name;
      std::replace(shown.begin(), shown.end(), '_', ' ');
      CHECK_MESSAGE(contains(page, fmt::format("<dt>{}</dt><dd>{:.4f}</dd>", shown, figures.at(name).get<double>())),
                    run, " ", name);
    }
  }
  check_contains(pages["pairs"], {"exact match", ">red ship old</div></th><td><div>ship red</div></td>"});
  check_contains(pages["linear"], {"Results on the test data", "N-grams with the largest weights", "<span>blueish"});
  CHECK_FALSE(contains(pages["linear"], "matrix to show"));
  CHECK(contains(pages["topics"], ">label</th>"));
  std::filesystem::copy(place / "runs/linear", place / "runs/other",
                        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  succeed(place, "report runs/linear runs/other -o page.html");
  CHECK(contains(place.read("page.html"), ">test accuracy</th>"));
  CHECK_FALSE(contains(place.read("page.html"), "step 1"));
  CHECK(contains(pages["topics"], "All 24 labels"));
  place.write("labelled.tsv", labelled + "red\tsecret\n");
  succeed(place, "report runs/linear -o page.html");
  CHECK(contains(place.read("page.html"), "no n-grams: labelled.tsv"));
  CHECK_FALSE(contains(place.read("page.html"), "blueish"));
  succeed(place, "report runs/linear -o page.html --trust");
  CHECK(contains(place.read("page.html"), "<span>blueish"));
}

TEST_CASE("the figures of a sweep's page are those of metrics.jsonl of each of its runs") {
  const SamplePlace place;
  succeed(place,
          "sweep --config lm.yaml --set name=some train.steps=12 train.log_every=4 train.valid_every=6 "
          "sweep.train.lr=[1e-2,1e-3] sweep.seed=[1,2]");
  succeed(place, "report runs/some -o page.html");
  const std::string page = place.read("page.html");
  check_page(page);
  for (const char* const label : {"lr=1e-2,seed=1", "lr=1e-2,seed=2", "lr=1e-3,seed=1", "lr=1e-3,seed=2"})
    check_figures(place, std::string("some/") + label, page, label);
}

TEST_CASE("the n-grams of a linear classifier are shown without held-out data, and where these are gone") {
  const Workplace place;
  std::string rows;
  for (int i = 0; i < 40; ++i) rows += fmt::format("{0}\tthe {0}ish rope {1}\n", i % 2 == 0 ? "red" : "blue", i);
  place.write("labelled.tsv", rows);
  place.write("test.tsv", rows);
  for (const std::string test : {"", "test.tsv"}) {
    succeed(place, {"train", "--config", source_path("configs/classify.yaml"), "--set", "name=linear" + test,
                    "data.train=[labelled.tsv]", "data.test=[" + test + "]"});
    if (!test.empty()) std::filesystem::remove(place / test);
    const Outcome outcome = succeed(place, {"report", "runs/linear" + test, "-o", "page.html"});
    CHECK(contains(place.read("page.html"), "<span>blueish"));
    CHECK(contains(outcome.err, "no results: data.test: test.tsv") == !test.empty());
    CHECK_FALSE(contains(outcome.err, "no n-grams"));
  }
}

TEST_CASE("metrics as CSV tell what metrics.jsonl tells, a row per step") {
  const TrainedPlace place;
  const std::vector<std::string> rows = lines_of(succeed(place, "metrics runs/lm --format csv").out);
  const std::vector<std::string> header = cells(rows.at(0), ',');
  REQUIRE(header.front() == "step");
  std::map<std::string, std::map<std::string, std::string>> at;  // step -> column -> cell
  for (size_t i = 1; i < rows.size(); ++i) {
    const std::vector<std::string> row = cells(rows[i], ',');
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
  const std::vector<std::string> text = lines_of(succeed(place, "metrics runs/lm").out);
  CHECK(text.size() == rows.size());
  CHECK(contains(text[0], "train_loss"));
}

}  // namespace
}  // namespace capstan::testing
