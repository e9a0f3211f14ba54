// Classifiers of texts with any number of labels, from `data check` to `predict`.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "tests/cli/support/interruption.hpp"
#include "tests/cli/support/ranks.hpp"
#include "tests/support/source_dir.hpp"

namespace capstan::testing {
namespace {

constexpr const char* topics_yaml = R"(name: topics
data: {type: labelled, train: [topics.tsv], valid: [valid.tsv], test: [valid.tsv], multi_label: true,
       tokenizer: {type: word, min_count: 1}}
model:
  type: text-classifier
  width: 16
  max_length: 32
  dropout: 0.1
  layers:
    - {mixer: {type: aft-simple}, feed_forward: {type: gelu, expansion: 2}}
train: {epochs: 30, batch_size: 16, lr: 0.01, valid_every: 20, monitor: micro-f1, progress: plain,
        keep_optimizer: true}
)";

/// Texts whose words say which of three topics they are of; some are of none.
std::string topics(uint32_t seed, int count) {
  const Words names = {"food", "money", "sport"}, words = {"soup", "bank", "ball"}, others = {"the", "old", "new", "a"};
  std::string rows;
  for (int i = 0; i < count; ++i) {
    std::string labels, text;
    for (size_t topic = 0; topic < names.size(); ++topic) {
      seed = seed * 1664525u + 1013904223u;
      text += others[seed >> 30] + " ";
      if ((seed >> 20) % 3 != 0) continue;
      labels += (labels.empty() ? "" : ",") + names[topic];
      text += words[topic] + " ";
    }
    rows += labels + "\t" + text + std::to_string(i % 7) + "\n";
  }
  return rows;
}

void write_topics(const Workplace& place) {
  write_samples(place);
  place.write("topics.yaml", topics_yaml);
  place.write("topics.tsv", topics(1, 120));
  place.write("valid.tsv", topics(2, 60));
}

const Workplace& trained_topics() {
  return made_once([](const Workplace& place) {
    write_topics(place);
    succeed(place, "train --config topics.yaml");
  });
}

nlohmann::json best_state(const Workplace& place, const std::string& name) {
  return parse_json(place.read("runs/" + name + "/checkpoints/best/state.json")).at("state");
}

}  // namespace

TEST_CASE("multi-label: a classifier learns sets of labels, and all commands agree on its threshold") {
  const Workplace& place = trained_topics();
  const nlohmann::json valid = best_validation(place, "topics"), state = best_state(place, "topics");
  CHECK(valid.at("micro_f1") > 0.95);
  CHECK(state.at("threshold") == valid.at("threshold"));
  CHECK(state.at("best_micro_f1") == valid.at("micro_f1"));
  const Outcome evaluation = succeed(place, "eval runs/topics");
  CHECK(contains(evaluation.out, "food"));
  CHECK_FALSE(contains(evaluation.out, "confusion"));
  const nlohmann::json figures = eval_json(place, "runs/topics");
  for (const char* const name :
       {"loss", "accuracy", "micro_f1", "macro_f1", "threshold", "precision_at_1", "precision_at_3"})
    CHECK_MESSAGE(figures.at(name) == valid.at(name), name);
  CHECK_FALSE(figures.contains("precision_at_5"));  // there are three labels
  CHECK(figures.at("classes").size() == 3);
  CHECK(contains(succeed(place, "compare runs/topics").out, "micro-F1"));
  succeed(place, "report runs/topics -o report.html");
  CHECK(contains(place.read("report.html"), "\"micro_f1\":"));
  CHECK(contains(succeed(place, "data check --config topics.yaml").out, "Texts by their number of labels"));
  CHECK(contains(succeed(place, "verify runs/topics").out, "runs/topics: whole"));
}

TEST_CASE("multi-label: the linear classifier has a threshold for each label, and all commands agree on them") {
  const Workplace place;
  std::string table = "text,labels\n";
  for (const std::string& row : lines_of(topics(1, 120) + topics(2, 60))) {
    const size_t tab = row.find('\t');
    const bool wrong = table.size() % 9 == 0;  // so that no probability is 0 or 1
    table += row.substr(tab + 1) + ",\"" + (wrong ? "sport" : row.substr(0, tab)) + "\"\n";
  }
  place.write("topics.csv", table);
  place.write("classify.yaml", read_file(source_path("configs/classify.yaml")));
  const Words several = "data.train=[topics.csv] data.test=[topics.csv] data.multi_label=true train.monitor=micro-f1";
  const auto with = [&](Words words, const Words& more = {}) {
    return words + "--config classify.yaml --set" + several + more;
  };
  CHECK(contains(succeed(place, with({"data", "check"})).out, "Texts by their number of labels"));
  succeed(place, with("train"));
  const nlohmann::json valid = best_validation(place, "classify");
  CHECK(valid.at("micro_f1") > 0.8);
  const nlohmann::json figures = eval_json(place, "runs/classify --split test");
  CHECK(figures.at("micro_f1") > 0.85);
  CHECK_FALSE(figures.contains("threshold"));
  REQUIRE(figures.at("classes").size() == 3);
  for (const auto& label : figures.at("classes")) CHECK((label.at("threshold") > 0 && label.at("threshold") < 1));
  CHECK(contains(succeed(place, "eval runs/classify --split test").out, "threshold"));
  const std::string texts = "the soup near a bank\nold new the\n";
  const auto labels_of = [&](const Words& more) {
    std::vector<nlohmann::json> labels;
    const Outcome outcome = succeed(place, Words("predict runs/classify --format jsonl") + more, texts);
    for (const std::string& line : lines_of(outcome.out)) labels.push_back(parse_json(line).at("labels"));
    return labels;
  };
  CHECK(labels_of({}) == std::vector<nlohmann::json>{{"food", "money"}, nlohmann::json::array()});
  CHECK(labels_of({"--threshold", "1e-9"}).back().size() == 3);
  CHECK(labels_of({"--threshold", "1"}).front().empty());
  const std::vector<std::string> likely = lines_of(succeed(place, "predict runs/classify --top-k 1", texts).out);
  CHECK(likely.front() == "labels\tlikely\tprobability");
  CHECK(likely.back().substr(0, 1) == "\t");  // no label, whatever is likely
  const Outcome errors = succeed(place, "predict runs/classify topics.csv --errors --format jsonl");
  CHECK(static_cast<double>(lines_of(errors.out).size()) ==
        doctest::Approx(180 * (1 - figures.at("accuracy").get<double>())).epsilon(0.01));
  CHECK(contains(succeed(place, "compare runs/classify").out, "micro-F1"));
  succeed(place, "report runs/classify --trust -o report.html");
  CHECK(contains(place.read("report.html"), "\"threshold\":"));
  CHECK(contains(succeed(place, "verify runs/classify").out, "whole"));
  succeed(place, with({"autotune", "--minutes", "0.02"}, {"name=search", "sweep.model.words=[[1], [1, 2]]"}));
  // Without the key, a warning says which to set, and texts without labels cannot be used.
  const Outcome check = run(place, "data check --config classify.yaml --set data.train=[topics.csv]");
  CHECK(check.code == 1);
  check_contains(check.out, {"data.multi_label=true", "the label is empty"});
}

TEST_CASE("multi-label: predict prints the labels that reach the threshold") {
  const Workplace& place = trained_topics();
  const std::string texts = "the soup near a bank\nold new the\nball ball soup bank\n";
  const Words lines = lines_of(succeed(place, "predict runs/topics --echo", texts).out);
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "labels\tfood\tmoney\tsport\ttext");
  CHECK(lines[1].substr(0, 11) == "food,money\t");
  CHECK(lines[2].substr(0, 1) == "\t");
  CHECK(lines[3].substr(0, 17) == "food,money,sport\t");
  const Words objects = lines_of(succeed(place, "predict runs/topics --format jsonl", texts).out);
  REQUIRE(objects.size() == 3);
  const nlohmann::json none = parse_json(objects[1]);
  CHECK(none.at("labels") == nlohmann::json::array());
  CHECK(none.at("probabilities").size() == 3);
  CHECK(parse_json(objects[0]).at("labels") == nlohmann::json{"food", "money"});
  // All labels reach a threshold of almost 0, none one of 1.
  const auto labels_at = [&](const std::string& threshold) {
    const Words command = "predict runs/topics --format jsonl --threshold " + threshold;
    return parse_json(succeed(place, command, "the new\n").out).at("labels").size();
  };
  CHECK(labels_at("1e-9") == 3);
  CHECK(labels_at("1") == 0);
  const Words best = lines_of(succeed(place, "predict runs/topics -k 2", texts).out);
  succeed(place, "predict runs/topics valid.tsv -k 2 --output labelled.tsv");
  const auto tabs = [&](const char* file) {
    const std::string row = lines_of(place.read(file)).front();
    return std::count(row.begin(), row.end(), '\t');
  };
  CHECK(tabs("labelled.tsv") == tabs("valid.tsv") + 5);  // predicted, and two labels with their probabilities
  CHECK(best[0] == "labels\tlikely\tprobability\tlikely_2\tprobability_2");
  CHECK((contains(best[1], "\tfood\t") || contains(best[1], "\tmoney\t")));
  // What is wrong is what eval counts as wrong.
  const Outcome errors = succeed(place, "predict runs/topics valid.tsv --errors --format jsonl");
  const double accuracy = number_of(succeed(place, "eval runs/topics").out, "accuracy");
  CHECK(static_cast<double>(lines_of(errors.out).size()) == doctest::Approx(60 * (1 - accuracy)).epsilon(0.01));
  for (const std::string& line : lines_of(errors.out))
    CHECK(parse_json(line).at("labels") != parse_json(line).at("true_labels"));
}

TEST_CASE("multi-label: lines of fastText and JSON train the same weights") {
  const Workplace place;
  write_topics(place);
  std::string fasttext, json;
  for (const std::string& row : lines_of(place.read("topics.tsv"))) {
    const size_t tab = row.find('\t');
    const Words labels = tab == 0 ? Words{} : cells(row.substr(0, tab), ',');
    for (const std::string& label : labels) fasttext += "__label__" + label + " ";
    fasttext += row.substr(tab + 1) + "\n";
    json += nlohmann::json{{"labels", labels}, {"text", row.substr(tab + 1)}}.dump() + "\n";
  }
  place.write("topics.txt", fasttext);
  place.write("topics.jsonl", json);
  const Training training{"topics", "topics.yaml", "train.epochs=2 data.valid=[] data.test=[]"};
  REQUIRE(run(place, train_command(training, "tsv")).code == 0);
  REQUIRE(run(place, train_command(training, "json", {"data.train=[topics.jsonl]"})).code == 0);
  REQUIRE(run(place, train_command(training, "fast", "data.train=[topics.txt] data.format=fasttext")).code == 0);
  check_same_weights(place, "json", "tsv");
  const Outcome errors = succeed(place, "predict runs/fast topics.txt --errors");
  CHECK(contains(errors.err, "of 120 texts"));
}

TEST_CASE("multi-label: kills, threads and ranks do not change the bits") {
  std::mt19937 random(3);
  const Training training{"topics",
                          "topics.yaml",
                          {"train.epochs=6", "train.lanes=4", "train.log_every=1", "train.valid_every=5",
                           "model.class_weights=balanced", "model.loss={type: cross-entropy, label_smoothing: 0.1}",
                           "model.ngrams.orders=[1,2]", "model.ngrams.buckets=500", "model.ngrams.width=8"}};
  const Workplace place;
  write_topics(place);
  REQUIRE(run(place, train_command(training, "whole", "train.save_every=0 threads=1")).code == 0);
  const Kills kills =
      train_and_kill(place, train_command(training, "killed", "train.save_every=1 threads=2"), "killed", 4, 40, random);
  MESSAGE(kills.made, " kills, ", kills.while_saving, " of them while a checkpoint was written");
  check_same_weights(place, "killed", "whole");
  check_same_metrics(place, "killed", "whole");
  CHECK(best_state(place, "killed").at("threshold") == best_state(place, "whole").at("threshold"));
  if (const auto reason = no_mpi()) {
    MESSAGE("ranks skipped: " << *reason);
    return;
  }
  REQUIRE(run(place, mpirun(3, train_command(training, "ranks", "train.save_every=0 threads=1"))).code == 0);
  check_same_weights(place, "ranks", "whole");
  check_same_metrics(place, "ranks", "whole");
}

TEST_CASE("class weights that are listed train, whichever command trains, with one label per text and with several") {
  for (const bool several : {false, true}) {
    CAPTURE(several);
    const Workplace place;
    write_topics(place);
    place.write("one.tsv", "food\tthe soup\nsport\ta ball\nmusic\told song\n");
    Words options{"--config", "topics.yaml", "--set", "model.class_weights={type: listed, weights: [1, 2, 0.5]}"};
    if (!several)
      options =
          options + "data.multi_label=false data.train=[one.tsv] data.valid=[one.tsv] data.test=[] train.monitor=loss";
    const auto with = [&](Words words, const Words& more) { return words + options + more; };
    succeed(place, with({"config", "check"}, {}));
    succeed(place, with("train", {"train.epochs=1"}));
    CHECK(contains(succeed(place, with("train", {"train.epochs=2"})).err, "resumed from"));
    const Words grid{"name=grid", "train.epochs=1", "sweep.train.lr=[1e-3, 1e-2]"};
    CHECK(contains(succeed(place, with("sweep", grid)).out, "runs/grid/lr=1e-2"));
    const Words search{"name=search", "train.epochs=1", "sweep.train.lr=[1e-3, 1e-2]"};
    succeed(place, with({"autotune", "--minutes", "1e-5"}, search));
    succeed(place, Words("inspect topics.yaml --set") + Words(options.begin() + 3, options.end()));
  }
}

TEST_CASE("multi-label: rows of classes follow their label from a run with one label per text") {
  const Workplace place;
  write_topics(place);
  place.write("one.tsv", "food\tthe soup\nsport\ta ball\nmusic\told song\nfood\tnew soup\nsport\tball\nmusic\tsong\n");
  succeed(place, train_words("topics.yaml",
                             "name=one data.train=[one.tsv] data.valid=[] data.test=[] "
                             "data.multi_label=false train.monitor=loss"));
  const Outcome outcome =
      succeed(place, "train --config topics.yaml --set name=warm train.init_from=runs/one train.epochs=1");
  CHECK(contains(outcome.err, "2 of 3 rows, found by their classes among 3"));
}

TEST_CASE("multi-label: wrong uses are refused with a remedy") {
  const Workplace& place = trained_topics();
  write_trained_samples(place);
  place.write("labelled.tsv", "food,soup\tx y\nmoney\tz\n");
  const auto with = [](const Words& overrides) {
    return Words("train --config topics.yaml --set name=wrong") + overrides;
  };
  const std::vector<Refusal> wrong_uses = {
      {"no separator", with("data.label_separator="), "data.label_separator"},
      {"costs of labels", with({"train.monitor=cost", "train.costs=[{truth: food, predicted: money, cost: 3}]"}),
       "train.monitor ... cost is for a classifier that gives a text one label"},
      {"half of a mistake",
       {"train", "--config", "classifier.yaml", "--set", "train.monitor=cost", "train.costs=[{predicted: a, cost: 3}]"},
       "train.costs.0 ... name the class that a text has, truth"},
      {"a recall without a share", "train --config classifier.yaml --set train.monitor=recall train.monitor_class=a",
       "train.monitor_at_least ... must say which share is asked for"},
      {"F1 of one of several labels", with("train.monitor=f1 train.monitor_class=food"),
       "with several, macro-f1 finds for each of them the threshold"},
      {"a separator without multi_label", with("data.multi_label=false data.label_separator=;"),
       "data.label_separator=;: needs multi_label: true"},
      {"F1 of no class", "train --config classifier.yaml --set train.monitor=f1",
       "--set train.monitor=f1: f1 needs the name of a class: set train.monitor_class"},
      {"F1 of one label per text", "train --config classifier.yaml --set train.monitor=micro-f1",
       "train.monitor=micro-f1: micro-f1 is for a classifier with data.multi_label: true; choose loss or accuracy"},
      {"F1 of a language model", "train --config lm.yaml --set train.monitor=macro-f1",
       "train.monitor=macro-f1: macro-f1 is for classifiers"},
      {"folders", with("data.format=folders"), "data.multi_label: with format: folders"},
      {"pairs of lines", with("data.format=fasttext data.header=true"), "fasttext lines have no columns"},
      {"another kind of labels to evaluate", "eval runs/topics --set data.multi_label=false train.monitor=loss",
       "--set: the model was trained with data.multi_label: true"},
      {"another count of class weights", with({"model.class_weights={type: listed, weights: [1, 2]}"}),
       "model.class_weights.weights: 2 weights for 3 classes"},
      {"infinite class weights", with({"model.class_weights={type: listed, weights: [.inf, 1, 1]}"}),
       "model.class_weights.weights.0: expected a number (from -1000000000000 to 1000000000000), got .inf"},
      {"huge class weights", with({"model.class_weights={type: listed, weights: [1, 1e308, 1]}"}),
       "model.class_weights.weights.1: expected a number"},
      {"no class weight", with({"model.class_weights={type: listed, weights: [0, 0, 0]}"}),
       "model.class_weights.weights: all are 0"},
      {"a beam where nothing is written", "eval runs/topics --beam 4",
       "--beam: is for runs with data.type: pairs ... of type labelled: leave it out"},
  };
  const std::vector<Refusal> rows = {
      {"a label that training does not know", with("data.test=[labelled.tsv]"),
       "labelled.tsv:1: unknown label 'soup' ... known: food, money, sport"},
      {"a threshold of one label per text",
       "predict runs/classifier --threshold 0.3",
       "--threshold: only runs with data.multi_label: true have one",
       2,
       {},
       "a day\n"},
      {"a threshold above 1", "predict runs/topics --threshold 1.5", "--threshold ... from 0 to 1", 2, {}, "soup\n"},
      {"an unknown label beside a text", "predict runs/topics labelled.tsv --errors",
       "labelled.tsv:1: unknown label 'soup'"},
      {"resumed as another task",
       "train --config topics.yaml --set data.multi_label=false train.monitor=loss data.on_error=skip",
       "error: runs/topics holds a run with other ... or remove the folder"},
      {"a beam where nothing is written",
       "predict runs/topics --beam 2",
       "--beam: is for runs with data.type: pairs",
       2,
       {},
       "soup\n"},
  };
  check_all_refused(place, with_code(2, wrong_uses));
  check_all_refused(place, rows);
}

}  // namespace capstan::testing
