// Rules by which classes are decided, and weights of texts, from training to the server.
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/io/json.hpp"
#include "tests/cli/support/samples.hpp"
#include "tests/serve/client.hpp"

namespace capstan::testing {
namespace {

/// Words that a rare text has half of the time, and others seldom, so that few texts are more likely rare than not.
std::string texts_of_rare(uint32_t seed, int count, int ratio) {
  std::string rows;
  const auto draw = [&](uint32_t below) { return ((seed = seed * 1664525u + 1013904223u) >> 8) % below; };
  for (int i = 0; i < count; ++i) {
    const bool rare = i % ratio == 0;
    rows += rare ? "rare\t" : "common\t";
    for (int word = 0; word < 8; ++word)
      rows += draw(100) < (rare ? 40u : 12u) ? "hot" + std::to_string(draw(6)) + ' '
                                             : "cold" + std::to_string(draw(30)) + ' ';
    rows += "end\n";
  }
  return rows;
}

Words training(const std::string& name, const Words& settings) {
  return classify_words(name, Words{"model.characters=[]"} + settings);
}

nlohmann::json test_figures(const Workplace& place, const std::string& run_folder) {
  return eval_json(place, run_folder + " --split test");
}

/// How many texts a run calls rare: by eval, whose figures follow from the counts.
int64_t called_rare(const nlohmann::json& report) {
  return report.at("confusion").at(0).at(1).get<int64_t>() + report.at("confusion").at(1).at(1).get<int64_t>();
}

int64_t lines_with(const std::string& text, const std::string& begin) {
  int64_t count = 0;
  for (const std::string& line : lines_of(text)) count += line.rfind(begin, 0) == 0 ? 1 : 0;
  return count;
}

/// Rows of a table of label, text and predictions that are called rare.
int64_t predicted_rare(const std::string& table) {
  int64_t count = 0;
  for (const std::string& line : lines_of(table)) {
    const size_t text = line.find('\t') + 1;
    count += line.compare(line.find('\t', text) + 1, 5, "rare\t") == 0 ? 1 : 0;
  }
  return count;
}

/// The labels that `capstan serve` gives texts.
std::vector<std::string> served_labels(const Workplace& place, const std::string& run_folder,
                                       const std::vector<std::string>& texts) {
  Process server(place, {"serve", run_folder, "--port", "0"});
  const std::string at = "http://127.0.0.1:";
  for (int i = 0; i < 300 && !contains(server.errors(), at); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const std::string said = server.errors();
  REQUIRE_MESSAGE(contains(said, at), said);
  const int port = std::stoi(said.substr(said.find(at) + at.size()));
  const Response answer = post(port, "/v1/classify", {{"input", texts}});
  server.send(SIGTERM);
  server.wait();
  REQUIRE_MESSAGE(answer.status == 200, answer.body);
  std::vector<std::string> labels;
  const nlohmann::json body = answer.json();
  for (const auto& one : body.at("data")) labels.push_back(one.at("label"));
  return labels;
}

}  // namespace

TEST_CASE("a rule of decision: found in training, it decides in eval, predict, slim and serve; probabilities stay") {
  const Workplace place;
  place.write("train.tsv", texts_of_rare(1, 1500, 12));
  const std::string test = texts_of_rare(2, 600, 12);
  place.write("test.tsv", test);
  std::string texts;
  std::vector<std::string> list;
  for (const std::string& line : lines_of(test)) {
    list.push_back(line.substr(line.find('\t') + 1));
    texts += list.back() + '\n';
  }
  place.write("texts.txt", texts);
  succeed(place, training("plain", {}));
  const nlohmann::json plain = test_figures(place, "runs/plain");
  struct Case {
    const char* name;
    Words settings;
    bool more_of_rare;
  };
  const std::vector<Case> cases = {
      {"macro", {"train.monitor=macro-f1"}, true},
      {"f1", "train.monitor=f1 train.monitor_class=rare", true},
      {"cost", {"train.monitor=cost", "train.costs=[{truth: rare, cost: 6}]"}, true},
      {"recall", "train.monitor=recall train.monitor_class=rare train.monitor_at_least=0.9", true},
      {"lenient", {"train.monitor=cost", "train.costs=[{truth: common, predicted: rare, cost: 60}]"}, false},
      {"weights", {"model.class_weights=balanced"}, true}};
  for (const auto& [name, settings, more_of_rare] : cases) {
    INFO(name);
    const std::string run_folder = std::string("runs/") + name, slim = run_folder + "-slim";
    const Outcome trained = succeed(place, training(name, settings));
    CHECK(contains(trained.err, name == std::string("weights") ? "by the rule for model.class_weights"
                                                               : "by the rule for train.monitor: "));
    const nlohmann::json report = test_figures(place, run_folder);
    const int64_t rare = called_rare(report);
    if (more_of_rare)
      CHECK(rare > called_rare(plain));
    else
      CHECK(rare <= called_rare(plain));
    if (name != std::string("weights")) {  // of the training itself
      CHECK(report.at("loss") == plain.at("loss"));
      CHECK(report.at("plain_macro_f1") == plain.at("macro_f1"));
    }
    if (name == std::string("recall")) CHECK(report.at("classes").at(1).at("recall").get<double>() > 0.8);
    if (name == std::string("cost"))
      CHECK(report.at("cost").get<double>() < 0.95 * report.at("plain_cost").get<double>());
    else if (name != std::string("lenient"))
      CHECK_FALSE(report.contains("cost"));
    CHECK(lines_with(succeed(place, {"predict", run_folder, "texts.txt"}).out, "rare\t") == rare);
    CHECK(lines_with(succeed(place, {"predict", run_folder, "texts.txt", "--top-k", "1"}).out, "rare\t") == rare);
    succeed(place, {"predict", run_folder, "test.tsv", "--top-k", "2", "--output", "labelled.tsv"});
    CHECK(predicted_rare(place.read("labelled.tsv")) == rare);
    succeed(place, {"slim", run_folder, "--output", slim, "--size", "1"});
    CHECK(called_rare(test_figures(place, slim)) == doctest::Approx(static_cast<double>(rare)).epsilon(0.05));
    const std::string some = succeed(place, {"predict", run_folder, "texts.txt", "--reject", "0.9"}).out;
    CHECK(static_cast<double>(lines_of(some).size() - 1 - static_cast<size_t>(lines_with(some, "none\t"))) / 600 ==
          doctest::Approx(report.at("coverage").at(4).at("coverage").get<double>()));
    if (name != std::string("macro")) continue;
    const std::vector<std::string> served = served_labels(place, run_folder, list);
    CHECK(std::count(served.begin(), served.end(), "rare") == rare);
  }
}

TEST_CASE("a rule that gains no more than its standard error is not taken, which training says") {
  const Workplace place;
  place.write("train.tsv", texts_of_rare(1, 240, 2));
  place.write("test.tsv", texts_of_rare(2, 100, 2));
  const Outcome trained = succeed(place, training("even", {"train.monitor=macro-f1"}));
  CHECK(contains(
      trained.err,
      "each text is given its likeliest class: on texts that are held out, rules for train.monitor: macro-f1 gain"));
  CHECK_FALSE(test_figures(place, "runs/even").contains("plain_macro_f1"));
}

TEST_CASE("weights of texts count in training alone; their column is found by its name, and missed by it") {
  const Workplace place;
  const std::string rows = texts_of_rare(1, 600, 6);
  std::string weighted = "label\ttext\tw\n";
  for (const std::string& line : lines_of(rows)) weighted += line + (line[0] == 'r' ? "\t3\n" : "\t1\n");
  place.write("train.tsv", weighted + "common\tnot counted\t0\n");
  place.write("test.tsv", "label\ttext\n" + texts_of_rare(2, 300, 6));  // without the column
  place.write("plain-test.tsv", texts_of_rare(2, 300, 6));
  place.write("plain.tsv", rows);
  succeed(place, training("plain", "data.train=[plain.tsv] data.test=[plain-test.tsv]"));
  succeed(place, training("weighted", {"data.weight_column=w"}));
  const nlohmann::json plain = test_figures(place, "runs/plain"), found = test_figures(place, "runs/weighted");
  CHECK(called_rare(found) > called_rare(plain));
  CHECK(found.at("targets") == plain.at("targets"));
  const nlohmann::json trained = eval_json(place, "runs/weighted --split train");
  CHECK(trained.at("targets") == 600);  // without the row whose weight is 0; each of the others counts once
  const double examples = trained.at("classes").at(0).at("examples").get<double>() +
                          trained.at("classes").at(1).at("examples").get<double>();
  CHECK(examples == 600);
  struct Wrong {
    const char* what;
    Words settings;
    int code;
    const char* says;
  };
  const Wrong wrong[] = {
      {"no such name", {"data.weight_column=weight"}, 1, "choose others with data.weight_column"},
      {"names in a table without any",
       {"data.train=[plain.tsv]", "data.weight_column=w"},
       2,
       "column names require header: true, others are chosen with data.weight_column"},
      {"no number",
       {"data.weight_column=text", "data.label_column=label", "data.text_columns=[w]", "data.test=[]"},
       1,
       "column 'text' of data.weight_column must be a number from 0"}};
  for (const auto& [what, settings, code, says] : wrong)
    check_refused(place, what, training("wrong", settings), {says}, code);
}

}  // namespace capstan::testing
