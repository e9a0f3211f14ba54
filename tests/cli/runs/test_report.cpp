// `capstan report` on small runs.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/io/json.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

/// The page stands alone, and has its own script and its data. Returns the data.
nlohmann::json page_data(const Workplace& place, const std::string& file) {
  const std::string page = place.read(file), begin = "<script type=\"application/json\" id=\"data\">";
  const size_t data = page.find(begin), script = page.rfind("<script>"), end = page.find("</script>", data);
  REQUIRE(data != std::string::npos);
  CHECK(page.find("<script") == data);
  CHECK(page.find("<script", data + 1) == script);
  CHECK(page.find("</script>", end + 1) == page.rfind("</script>"));
  CHECK(contains(page, "content=\"default-src 'none'; img-src data:;"));
  for (const char* const fetched : {"https:", "src=", "@import", "url("}) {
    INFO(fetched);
    CHECK_FALSE(contains(page.substr(0, data) + page.substr(script), fetched));
  }
  return parse_json(page.substr(data + begin.size(), end - data - begin.size()));
}

TEST_CASE_FIXTURE(Trained, "a page of a language model: curves, a sample, position bias") {
  CHECK(succeed(place, "report runs/lm --output lm.html").out == "");
  const nlohmann::json data = page_data(place, "lm.html");
  CHECK(contains(data.at("lead").at(0), "A language-model on data of type text: text. Trained 20"));
  CHECK(data.at("loss_unit") == "nats per token");
  CHECK(data.at("results").at(0).at(0) == "validation loss");
  const nlohmann::json& run = data.at("runs").at(0);
  CHECK(run.at("notes").empty());
  CHECK_FALSE(run.at("sample").at(1).get<std::string>().empty());
  const nlohmann::json& layer = run.at("model").at("layers").at(0);
  CHECK(layer.at("name") == "layer 1: aft-local");
  REQUIRE_FALSE(layer.at("position_bias").empty());
  const nlohmann::json& rows = layer.at("position_bias").at(0);
  for (size_t t = 0; t < rows.size(); ++t) CHECK(rows[t].size() == t + 1);  // later sources are not seen
  CHECK(contains(run.at("config"), "sequence_length: 32"));
  succeed(place, "report runs/lm --output curves.html --curves-only");
  CHECK_FALSE(page_data(place, "curves.html").at("runs").at(0).contains("model"));
}

TEST_CASE_FIXTURE(Samples, "runs beside each other: one legend, their differences, mean and deviation over seeds") {
  for (const std::string seed : {"1", "2"})
    succeed(place, "train --config lm.yaml --set name=s" + seed + " seed=" + seed);
  succeed(place, "report runs/s1 runs/s2 --output both.html --curves-only");
  const nlohmann::json data = page_data(place, "both.html");
  CHECK(data.at("title") == "runs: 2 runs");
  const nlohmann::json& group = data.at("groups").at(0);
  const nlohmann::json& header = group.at("table").at(0);
  CHECK(std::find(header.begin(), header.end(), "seed") != header.end());
  CHECK(std::find(header.begin(), header.end(), "step") == header.end());
  CHECK(group.at("common").at(0) == "step 6");
  CHECK(group.at("table").at(1).at(0) == data.at("runs").at(0).at("name"));
  CHECK(contains(group.at("seeds").dump(), "±"));
  const std::string table = succeed(place, "compare runs/s1 runs/s2").out;
  CHECK(contains(table, "Over seeds and folds, mean ± standard deviation:"));
}

TEST_CASE_FIXTURE(Samples, "classes, texts and names with signs of HTML stay text; every mixer's weights are shown") {
  std::string rows;
  for (int i = 0; i < 30; ++i) rows += fmt::format("<b>&\"x\"\ta <i>fine</i> day {0}\n'sad'\tnight & \"fog\" {0}\n", i);
  place.write("train.tsv", rows);
  for (const std::string mixer : {"fastformer", "flash", "gau", "attention"})
    succeed(place, train_words("classifier.yaml",
                               {"name=<u>" + mixer, "model.layers=[{mixer: " + mixer + "}]", "model.pooling=cls"}));
  succeed(place, Words("report runs/<u>fastformer runs/<u>flash runs/<u>gau runs/<u>attention -o all.html") +
                     Words{"--text", "<i>a > y"});
  const nlohmann::json data = page_data(place, "all.html");
  REQUIRE(data.at("runs").size() == 4);
  for (const nlohmann::json& run : data.at("runs")) {
    const nlohmann::json& evaluation = run.at("evaluation");
    std::set<std::string> classes;
    for (const nlohmann::json& entry : evaluation.at("classes")) classes.insert(entry.at("class").get<std::string>());
    CHECK(classes == std::set<std::string>{"<b>&\"x\"", "'sad'"});
    CHECK(evaluation.at("confusion").size() == 2);
    double examples = 0;
    for (const nlohmann::json& bin : evaluation.at("calibration")) examples += bin.at("examples").get<double>();
    CHECK(examples == evaluation.at("targets"));
    CHECK(run.at("model").at("words").at(0) == "[cls] ");
    CHECK(contains(run.at("model").at("words").dump(), "<i>a"));
    const std::string mixer = run.at("name").get<std::string>().substr(3);
    const nlohmann::json& weights = run.at("model").at("layers").at(0).at("weights");
    CHECK(weights.at(0).at("name") == (mixer == "fastformer" ? "query pool"
                                       : mixer == "flash"    ? "attention in chunks"
                                                             : "attention"));
  }
}

TEST_CASE_FIXTURE(Trained, "without its data a run still has its curves, and the page says what is missing") {
  fs::remove(place / "train.tsv");
  fs::remove_all(place / "text");
  const Outcome outcome = succeed(place, "report runs/classifier -o page.html");
  CHECK(contains(outcome.err, "no results"));
  const nlohmann::json run = page_data(place, "page.html").at("runs").at(0);
  check_contains(run.at("notes").at(0), {"no results: ", "train.tsv"});
  CHECK_FALSE(run.at("model").at("layers").at(0).at("position_bias").empty());  // aft-full's needs no text
  succeed(place, {"report", "runs/lm", "-o", "lm.html", "--text", "the tape"});
  CHECK(page_data(place, "lm.html").at("runs").at(0).at("notes").empty());
  fs::remove_all(place / "runs/lm/checkpoints");
  succeed(place, "report runs/lm -o lm.html");
  CHECK(contains(page_data(place, "lm.html").at("runs").at(0).at("notes").at(0), "the model is not shown"));
}

TEST_CASE_FIXTURE(Trained, "what report and metrics refuse") {
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
  };
  check_all_refused(place, refusals);
  CHECK_FALSE(fs::exists(place / "x.html"));
  // Beside a good run, a bad folder is a warning.
  const Outcome outcome = succeed(place, "report runs/lm empty -o good.html");
  CHECK(contains(outcome.err, "left out"));
}

/// Fails where the curves of a run, or the figures of its best evaluation, are not those of the run's metrics.jsonl.
void check_figures(const Workplace& place, const std::string& run, const nlohmann::json& data, size_t index = 0) {
  INFO(run);
  const nlohmann::json& shown = data.at("runs").at(index);
  const std::map<std::string, std::string> of_training = {
      {"step", "step"}, {"loss", "loss"}, {"learning_rate", "lr"}, {"gradient_norm", "grad_norm"}};
  std::map<std::string, nlohmann::json> train, valid;
  nlohmann::json best;
  for (const nlohmann::json& event : events_of(place, run)) {
    if (event.at("event") == "train")
      for (const auto& [name, key] : of_training) train[name].push_back(event.value(key, nlohmann::json()));
    else
      for (const char* const key : {"step", "loss", "accuracy", "micro_f1", "macro_f1"})
        valid[key].push_back(event.value(key, nlohmann::json()));
    if (event.at("event") != "train" && event.at("best") == true) best = event;
  }
  if (data.at("curves") == true)
    for (const auto& [name, values] : train) CHECK_MESSAGE(shown.at("train").at(name) == values, name);
  for (const auto& [name, values] : valid) CHECK_MESSAGE(shown.at("valid").at(name) == values, name);
  CHECK(shown.at("best") == best.at("step"));
  if (index > 0) return;
  std::map<std::string, std::string> results;
  for (const nlohmann::json& figure : data.at("results"))
    results[figure.at(0).get<std::string>()] = figure.at(1).get<std::string>();
  const std::string by = data.at("curves") == true ? "validation" : "cross-validation";
  CHECK(results.at(by + " loss") == fmt::format("{:.4f}", best.at("loss").get<double>()));
  CHECK(results.at(by + " accuracy") == fmt::format("{:.2f} %", 100 * best.at("accuracy").get<double>()));
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

TEST_CASE_FIXTURE(Trained, "the figures of a page are those of metrics.jsonl and of eval, for each kind of run") {
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
  succeed(place, classify_words("linear", "data.train=[labelled.tsv] data.test=[labelled.tsv]"));
  succeed(place,
          "train --config classifier.yaml --set name=topics data.train=[topics.tsv] data.multi_label=true "
          "train.monitor=micro-f1 train.valid_every=2");
  std::map<std::string, nlohmann::json> shown;
  for (const std::string run : {"lm", "classifier", "pairs", "linear", "topics"}) {
    succeed(place, {"report", "runs/" + run, "-o", "page.html"});
    const nlohmann::json data = page_data(place, "page.html");
    shown[run] = data.at("runs").at(0);
    CHECK(shown[run].at("notes").empty());
    check_figures(place, run, data);
    if (run == "lm") continue;
    const std::string split = run == "linear" ? "test" : "valid";
    const nlohmann::json figures = eval_json(place, {"runs/" + run, "--split", split});
    for (const auto& [name, value] : figures.items())
      if (name != "classes") CHECK_MESSAGE(shown[run].at("evaluation").at(name) == value, run, " ", name);
  }
  const nlohmann::json& pair = shown["pairs"].at("evaluation").at("examples").at(0);
  CHECK(pair.at(0) == "red ship old");
  CHECK(pair.at(1) == "ship red");
  CHECK(contains(shown["linear"].at("ngrams").dump(), "blueish"));
  CHECK(shown["topics"].at("evaluation").at("classes").size() == 24);
  copy_files(place / "runs/linear", place / "runs/other");
  succeed(place, "report runs/linear runs/other -o page.html");
  CHECK(page_data(place, "page.html").at("groups").at(0).at("runs") == nlohmann::json({0, 1}));
  place.write("labelled.tsv", labelled + "red\tsecret\n");
  succeed(place, "report runs/linear -o page.html");
  const nlohmann::json changed = page_data(place, "page.html").at("runs").at(0);
  CHECK(contains(changed.at("notes").at(0), "no n-grams: labelled.tsv"));
  CHECK_FALSE(contains(changed.dump(), "blueish"));
  succeed(place, "report runs/linear -o page.html --trust");
  CHECK(contains(page_data(place, "page.html").dump(), "blueish"));
}

TEST_CASE_FIXTURE(Samples, "the figures of a sweep's page are those of metrics.jsonl of each of its runs") {
  succeed(place,
          "sweep --config lm.yaml --set name=some train.steps=12 train.log_every=4 train.valid_every=6 "
          "sweep.train.lr=[1e-2,1e-3] sweep.seed=[1,2]");
  succeed(place, "report runs/some -o page.html");
  const nlohmann::json data = page_data(place, "page.html");
  REQUIRE(data.at("runs").size() == 4);
  for (size_t i = 0; i < 4; ++i)
    check_figures(place, "some/" + data.at("runs").at(i).at("name").get<std::string>(), data, i);
}

TEST_CASE("the n-grams of a linear classifier are shown without held-out data, and where these are gone") {
  const Workplace place;
  std::string rows;
  for (int i = 0; i < 40; ++i) rows += fmt::format("{0}\tthe {0}ish rope {1}\n", i % 2 == 0 ? "red" : "blue", i);
  place.write("labelled.tsv", rows);
  place.write("test.tsv", rows);
  for (const std::string test : {"", "test.tsv"}) {
    succeed(place, classify_words("linear" + test, {"data.train=[labelled.tsv]", "data.test=[" + test + "]"}));
    if (!test.empty()) fs::remove(place / test);
    const Outcome outcome = succeed(place, {"report", "runs/linear" + test, "-o", "page.html"});
    CHECK(contains(page_data(place, "page.html").dump(), "blueish"));
    CHECK(contains(outcome.err, "no results: data.test: test.tsv") == !test.empty());
    CHECK_FALSE(contains(outcome.err, "no n-grams"));
  }
}

}  // namespace
}  // namespace capstan::testing
