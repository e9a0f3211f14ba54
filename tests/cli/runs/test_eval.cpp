// What eval and compare print.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
TEST_CASE_FIXTURE(Trained, "eval prints the same loss whatever the batch size, and what belongs to it") {
  for (const std::string run_folder : {"runs/lm", "runs/classifier"}) {
    INFO(run_folder);
    const std::string batches = "eval " + run_folder + " --set train.batch_size=";
    const std::string text = succeed(place, batches + "1").out;
    const double loss = number_of(text, "loss");
    CHECK(number_of(text, "targets") > 0);
    CHECK(number_of(text, "accuracy") >= 0);
    CHECK(number_of(text, "accuracy") <= 1);
    for (const char* const size : {"2", "3", "7", "64"}) {
      const std::string other = succeed(place, batches + size).out;
      CHECK(std::abs(number_of(other, "loss") - loss) <= 1.000001e-6);  // both are rounded to 6 digits
      CHECK(number_of(other, "targets") == number_of(text, "targets"));
      CHECK(number_of(other, "accuracy") == number_of(text, "accuracy"));
    }
  }
  const std::string text = succeed(place, "eval runs/lm").out;
  CHECK(number_of(text, "perplexity") == doctest::Approx(std::exp(number_of(text, "loss"))).epsilon(1e-3));
  // One target per character; the only characters of two bytes are the accented ones.
  CHECK(number_of(text, "bits_per_byte") <= number_of(text, "loss") / std::log(2.0));
  CHECK(number_of(text, "bits_per_byte") > 0.9 * number_of(text, "loss") / std::log(2.0));
  CHECK(number_of(succeed(place, "eval runs/classifier --split train").out, "targets") > 40);
  check_refused(place, "a split of another name", "eval runs/lm --split dev", "--split ... dev ... train, valid, test",
                2);
}

TEST_CASE_FIXTURE(Trained, "eval and predict refuse keys that would be those of another model") {
  check_refused(place, "another width", "eval runs/lm --set model.width=64",
                "--set model.width=64 ... trained with ... leave this key unchanged", 2);
  check_refused(place, "another tokenizer", "eval runs/lm --set data.tokenizer.type=byte", "--set data.tokenizer", 2);
  check_refused(place, "another classifier", "predict runs/classifier rows.tsv --set model.dropout=0.9",
                "--set model.dropout=0.9", 2);
}

TEST_CASE_FIXTURE(Trained, "eval of a classifier: every class, the confusion matrix, and the same as JSON") {
  const std::string text = succeed(place, "eval runs/classifier --split train").out;
  const nlohmann::json json = eval_json(place, "runs/classifier --split train");
  for (const char* const figure : {"targets", "loss", "accuracy", "macro_f1", "calibration_error"}) {
    INFO(figure);
    CHECK(number_of(text, figure) == doctest::Approx(json.at(figure).get<double>()).epsilon(1e-3));
  }
  int64_t examples = 0, correct = 0;
  double f1 = 0;
  const auto& classes = json.at("classes");
  for (size_t c = 0; c < classes.size(); ++c) {
    const std::string name = classes[c].at("class");
    CHECK(contains(text, "\n" + name + ' '));
    int64_t row = 0;
    for (const auto& count : json.at("confusion").at(c)) row += count.get<int64_t>();
    CHECK(row == classes[c].at("examples").get<int64_t>());
    examples += row;
    correct += json.at("confusion").at(c).at(c).get<int64_t>();
    f1 += classes[c].at("f1").get<double>();
  }
  CHECK(examples == json.at("targets").get<int64_t>());
  CHECK(json.at("accuracy").get<double>() == doctest::Approx(static_cast<double>(correct) / examples));
  CHECK(json.at("macro_f1").get<double>() == doctest::Approx(f1 / static_cast<double>(classes.size())));
  CHECK(contains(text, "confusion: rows are true classes"));
  // A class of which there is nothing has no figures, and is no part of their mean.
  place.write("one.tsv", "good\ta fine day 1\n");
  const std::string few = succeed(place, "eval runs/classifier --split test --set data.test=[one.tsv]").out;
  check_contains(few, {" of 3 classes\n", "-       -       -         -         0\n"});
  const nlohmann::json lm = eval_json(place, "runs/lm");
  CHECK(lm.contains("bits_per_byte"));
  CHECK_FALSE(lm.contains("confusion"));
  check_refused(place, "a format of another name", "eval runs/lm --format xml", "--format ... xml ... {text,json}", 2);
}

TEST_CASE_FIXTURE(Trained, "eval counts a class that training did not have as wrong, of every kind of classifier") {
  std::string known;
  for (int i = 0; i < 6; ++i) known += i % 2 == 0 ? "good\ta fine day\n" : "bad\ta sad night\n";
  place.write("known.tsv", known);
  place.write("new.tsv", known + "purple\ta fine night\nmauve\ta day\n");
  place.write("other.tsv", "purple\ta fine night\nmauve\ta day\ngood\ta day\n");
  succeed(place, "train -q --config classify --set name=linear threads=1 data.train=[train.tsv]");
  for (const char* const run : {"runs/classifier", "runs/linear"}) {
    CAPTURE(run);
    const auto eval = [&](const std::string& file, const char* more) {
      return succeed(place,
                     Words("eval") + run + Words("--split test --format json --set data.test=[" + file + "] " + more));
    };
    const nlohmann::json old = parse_json(eval("known.tsv", "").out);
    const Outcome counted = eval("new.tsv", "");
    const nlohmann::json json = parse_json(counted.out);
    check_contains(counted.err, {"2 of 8 texts (25.00 %)", "'purple' (1), 'mauve' (1)", "count as wrong"});
    CHECK(json.at("targets") == 8);
    CHECK(json.at("unseen") == 2);
    CHECK(json.at("loss").get<double>() == doctest::Approx(old.at("loss").get<double>()).epsilon(1e-6));
    CHECK(json.at("accuracy").get<double>() == doctest::Approx(old.at("accuracy").get<double>() * 6 / 8));
    const nlohmann::json& last = json.at("classes").back();
    CHECK(last.at("class") == "mauve");
    CHECK(last.at("examples") == 1);
    CHECK(last.at("recall") == 0);
    CHECK(json.at("macro_f1") < old.at("macro_f1"));
    CHECK(parse_json(eval("new.tsv", "data.on_error=skip").out).at("accuracy") == old.at("accuracy"));
    check_refused(place, "labels of another column",
                  "eval " + std::string(run) + " --split test --set data.test=[other.tsv]",
                  "data.test ... other.tsv:1: unknown label 'purple'");
    const Words errors = lines_of(succeed(place, Words("predict") + run + Words("--errors new.tsv")).out);
    CHECK(std::count_if(errors.begin(), errors.end(),
                        [](const std::string& line) { return contains(line, "mauve"); }) == 1);
  }
}

TEST_CASE_FIXTURE(Trained, "the perplexity per word counts words between blanks, and the ends of lines") {
  place.write("few.txt", "the  sea and\n\n the sea\n");  // 5 words, 3 lines
  const nlohmann::json few = eval_json(place, "runs/lm --set data.valid=[few.txt]");
  const double nats = few.at("loss").get<double>() * few.at("targets").get<double>();
  CHECK(nats / std::log(few.at("word_perplexity").get<double>()) == doctest::Approx(8).epsilon(1e-6));
  CHECK_FALSE(eval_json(place, "runs/lm --split train").contains("word_perplexity"));  // its text is not kept
}

TEST_CASE_FIXTURE(Trained, "eval that learns from what it has scored has figures of its own, and changes nothing") {
  const auto report = [&](const std::string& more) { return eval_json(place, "runs/lm --split train " + more); };
  const nlohmann::json plain = report(""), barely = report("--adapt 1e-12 --adapt-decay 0"),
                       adapted = report("--adapt 1e-3"), cached = report("--cache 200"),
                       both = report("--cache 200 --adapt 1e-3");
  CHECK_FALSE(plain.contains("adapted_loss"));
  for (const nlohmann::json* const other : {&barely, &adapted, &cached, &both})
    for (const char* const figure : {"loss", "targets", "perplexity", "bits_per_byte"})
      CHECK(other->at(figure) == plain.at(figure));
  const double loss = plain.at("loss");
  CHECK(barely.at("adapted_loss").get<double>() == doctest::Approx(loss).epsilon(1e-5));
  CHECK(adapted.at("adapted_loss").get<double>() < loss);
  CHECK(both.at("adapted_loss").get<double>() < loss);
  CHECK(cached.at("cache_weight").get<double>() > 0);
  CHECK(adapted.at("adapted_perplexity").get<double>() ==
        doctest::Approx(std::exp(adapted.at("adapted_loss").get<double>())).epsilon(1e-6));
  CHECK(report("") == plain);
  check_refused(place, "a rate at which weights run away", "eval runs/lm --adapt 1", "--adapt ... smaller");
  check_refused(place, "a decay alone", "eval runs/lm --adapt-decay 0.1", "--adapt-decay ... --adapt RATE", 2);
  for (const char* const option : {"--adapt", "--cache"})
    check_refused(place, "a classifier", {"eval", "runs/classifier", option, "1"}, "language-model");
}

TEST_CASE_FIXTURE(Trained, "the loss that eval prints is the one that training saw") {
  for (const std::string name : {"lm", "classifier"})
    CHECK(number_of(succeed(place, {"eval", "runs/" + name}).out, "loss") ==
          doctest::Approx(best_validation(place, name).at("loss").get<double>()).epsilon(1e-5));
}

TEST_CASE_FIXTURE(Trained, "eval with weights of fewer bits: another loss, a little; not where nothing is rounded") {
  const auto loss = [&](const std::string& weights) {
    return number_of(succeed(place, {"eval", "runs/lm", "--split", "train", "--weights", weights}).out, "loss");
  };
  const double exact = loss("float32");
  for (const char* const weights : {"bf16", "int8"}) {
    INFO(weights);
    CHECK(loss(weights) != exact);
    CHECK(loss(weights) == doctest::Approx(exact).epsilon(0.01));
  }
  place.write("texts.tsv", text_of(Words(20, "on\ta b c\noff\tb c a")));
  succeed(place, "train --config classify --set name=linear data.train=[texts.tsv] data.test=[texts.tsv]");
  check_refused(place, "no blocks", "eval runs/linear --weights int8", "linear-classifier");
  check_refused(place, "weights that learn", "eval runs/lm --weights int8 --adapt 1e-3", "--weights ... --adapt", 2);
}

TEST_CASE_FIXTURE(Trained, "compare: one row per run, the best first, and only the keys in which the runs differ") {
  succeed(place, "train --config lm.yaml --set name=other train.lr=1e-9 model.width=24");
  place.write("runs/notes.txt", "not a run");
  std::vector<std::string> lines = lines_of(succeed(place, "compare runs/other runs/lm").out);
  REQUIRE(lines.size() == 5);
  CHECK(lines[0].rfind("language-model: ", 0) == 0);
  CHECK(contains(lines[0], " tokens held out of text"));
  CHECK(lines[1].rfind("the same in all: step 6", 0) == 0);
  lines.erase(lines.begin(), lines.begin() + 2);
  check_contains(lines[0], {"width", "lr", "valid loss"});
  CHECK_FALSE(contains(lines[0], "seed"));
  CHECK_FALSE(contains(lines[0], "name"));
  CHECK(lines[1].rfind("runs/lm ", 0) == 0);  // the other hardly learnt
  CHECK(lines[2].rfind("runs/other ", 0) == 0);
  CHECK(contains(lines[2], " 24 "));

  const std::string csv = succeed(place, "compare runs/other runs/lm runs/notes.txt --format csv").out;
  const std::vector<std::string> rows = lines_of(csv);
  REQUIRE(rows.size() == 3);
  check_contains(rows[0], {"model.width,", ",valid_loss,"});
  const auto commas = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  CHECK(commas(rows[1]) == commas(rows[0]));

  // Runs of different kinds differ in whole branches: they are in blocks.
  const std::string mixed = succeed(place, "compare runs/classifier runs/lm").out;
  check_contains(mixed, {"text-classifier", "language-model"});
  CHECK_FALSE(contains(mixed, "pooling"));
  CHECK(mixed.rfind("text-classifier: ", 0) == 0);
  CHECK(contains(mixed, "\n\nlanguage-model: "));
  CHECK_FALSE(contains(mixed, " type"));
}

TEST_CASE("compare without runs lists those in runs: type, data, score and age; what cannot be read is named") {
  const Workplace place;
  const Outcome before = succeed(place, "compare");
  CHECK(before.out.empty());
  CHECK(contains(before.err, "there are no runs below runs yet; this makes one: capstan train --config classify"));
  write_trained_samples(place);
  place.write("runs/broken/config.yaml", "name: [");
  fs::create_directory(place / "runs/begun");  // in its first training
  fs::copy_file(place / "runs/lm/config.yaml", place / "runs/begun/config.yaml");
  fs::last_write_time(place / "runs/lm/metrics.jsonl", fs::file_time_type::clock::now() + std::chrono::hours(1));
  const Outcome listed = succeed(place, "compare");
  const std::vector<std::string> lines = lines_of(listed.out);
  REQUIRE(lines.size() == 5);
  check_contains(lines[0], {"run", "model", "data", "score", "of", "age"});
  CHECK(lines[1].rfind("runs/lm ", 0) == 0);
  check_contains(lines[1], {"language-model", " text ", "loss ", "0 min"});
  check_contains(listed.out, {"cannot be read", "no step yet"});
  CHECK(contains(listed.err, "runs/broken/config.yaml"));
  const std::string csv = succeed(place, "compare --format csv").out;
  CHECK(contains(csv, "runs/classifier,text-classifier,train.tsv,loss "));
  CHECK(contains(csv, ",8 texts held out,"));
}

TEST_CASE("figures of other texts are not ranked: a cross-validation, texts held out and other data are blocks") {
  const SamplePlace place;
  place.write("other.tsv", place.read("train.tsv") + "good\ta day\n");
  place.write("valid.tsv", "good\tfine\nbad\tsad\n");
  const std::vector<std::pair<std::string, Words>> runs{
      {"all", {"data.train=[train.tsv]"}},
      {"again", "data.train=[./train.tsv] model.words=[1]"},
      {"part", "data.train=[train.tsv] data.valid_fraction=0.2"},
      {"others", {"data.train=[other.tsv]"}},
      {"own", "data.train=[train.tsv] data.valid=[valid.tsv]"},
      {"own-others", "data.train=[other.tsv] data.valid=[valid.tsv]"}};
  for (const auto& [name, keys] : runs) {
    const Outcome trained = succeed(place, train_words("classify", {"name=" + name}) + keys);
    const bool crossed = keys.size() == 1 || keys[1] == "model.words=[1]";
    CHECK(contains(trained.err, "] Cross-validation : Loss ") == crossed);
    CHECK(contains(trained.err, "] Valid : Loss ") == !crossed);
    CHECK(contains(trained.err, "; held-out accuracy ") == crossed);
    CHECK(contains(place.read("runs/" + name + "/metrics.jsonl"), R"("by":"cross-validation")") == crossed);
  }
  const std::vector<std::string> heads{
      "linear-classifier: 60 texts of train.tsv, cross-validated", "linear-classifier: 8 texts held out of train.tsv",
      "linear-classifier: 61 texts of other.tsv, cross-validated", "linear-classifier: 2 texts of valid.tsv"};
  const std::string compared = succeed(place, "compare runs").out;
  for (const std::string& head : heads) CHECK_MESSAGE(contains(compared, head + "\n"), compared);
  const auto place_of = [&](const std::string& text) { return compared.find(text); };
  CHECK(std::max(place_of("runs/all "), place_of("runs/again ")) <
        std::min(place_of("runs/part "), place_of("runs/others ")));
  CHECK(contains(compared.substr(place_of("2 texts of valid.tsv")), "runs/own "));
  CHECK(contains(compared.substr(place_of("2 texts of valid.tsv")), "runs/own-others "));
  const std::string listed = succeed(place, "compare").out;
  check_contains(listed, {"60 texts, cross-validated", "8 texts held out", "2 texts of valid.tsv"});
  succeed(place, "report runs --output page.html --curves-only");
  const std::string page = place.read("page.html");
  for (const std::string& head : heads) CHECK(contains(page, "\"what\":\"" + head + "\""));
  CHECK_FALSE(contains(page, "The best of"));
}

TEST_CASE("eval --format json has precision and recall of each class over thresholds of its probability") {
  const TrainedPlace place;
  const nlohmann::json classes = eval_json(place, "runs/classifier --split train").at("classes");
  REQUIRE(classes.size() == 3);
  for (const nlohmann::json& of_class : classes) {
    const nlohmann::json& curve = of_class.at("curve");
    REQUIRE(curve.size() == 23);
    for (size_t i = 1; i < curve.size(); ++i) {
      CHECK(curve[i].at("threshold") > curve[i - 1].at("threshold"));
      CHECK(curve[i].at("recall") <= curve[i - 1].at("recall"));
    }
  }
}

TEST_CASE_FIXTURE(Trained, "compare, report and verify take a folder of runs; a sweep beside runs is its runs") {
  fs::create_directory(place / "runs/grid");
  for (const char* const name : {"grid/a", "grid/b"})
    copy_files(place / "runs/lm", place / ("runs/" + std::string(name)));
  CHECK(lines_of(succeed(place, "compare runs/grid --format csv").out).size() == 3);
  CHECK(lines_of(succeed(place, "compare runs --format csv").out).size() == 5);
  CHECK(run_shell(place, "$capstan compare runs/* --format csv").out ==
        succeed(place, "compare runs --format csv").out);
  succeed(place, "report runs/grid --output grid.html --curves-only");
  CHECK(contains(place.read("grid.html"), "2 runs"));
  const std::string whole = run_shell(place, "$capstan verify runs/*").out;
  check_contains(whole, {"runs/lm: whole", "runs/grid/a: whole", "runs/grid/b: whole"});
}

TEST_CASE_FIXTURE(Samples, "eval and report of a run that has test data alone use these, and say so") {
  succeed(place,
          "train --config classifier.yaml --set data.valid_fraction=0 data.test=[train.tsv] train.valid_every=0");
  const Outcome outcome = succeed(place, "eval runs/classifier");
  CHECK(contains(outcome.out, "split test\n"));
  CHECK(contains(outcome.err, "no validation data: its test data are used"));
  CHECK(succeed(place, "eval runs/classifier --split test").out == outcome.out);
  check_refused(place, "asked for", "eval runs/classifier --split valid", "valid");
  const Outcome report = succeed(place, "report runs/classifier --output page.html --trust");
  CHECK(contains(report.err, "no validation data: its test data are used"));
  CHECK(contains(place.read("page.html"), "\"split\":\"test\""));
}

TEST_CASE_FIXTURE(Samples, "eval needs the files of its split alone; those of other splits may be missing") {
  std::string pairs;
  for (int i = 0; i < 40; ++i) pairs += std::to_string(i) + " and one\t" + std::to_string(i + 1) + "\n";
  place.write("pairs.tsv", pairs);
  place.write("pairs.yaml",
              "name: pairs\ndata: {type: pairs, train: [pairs.tsv], tokenizer: char, max_source: 24, max_length: 32}\n"
              "model: {type: language-model, width: 16, layers: [{mixer: attention}]}\n"
              "train: {steps: 4, batch_size: 4}\n");
  const std::vector<Words> runs = {
      {"lm", "text/a.txt", "data.documents={type: marker, text: ship}", "data.weights=[1]"},
      {"classifier", "train.tsv", "data.valid_fraction=0.2"},
      {"pairs", "pairs.tsv", "data.valid_fraction=0.2"}};
  for (const Words& run : runs) {
    const std::string folder = "runs/" + run[0], train = run[1];
    const std::string held = place.read(train);
    for (const char* const name : {"held-out.tsv", "test.tsv"}) place.write(name, held);
    const std::string format = run[0] == "classifier" ? "data.format=tsv" : "seed=2";
    const Words more(run.begin() + 2, run.end());
    succeed(place,
            train_words(run[0] + ".yaml", {"data.train=[" + train + "]", "data.test=[test.tsv]", format}) + more);
    const std::string of_test = succeed(place, {"eval", folder, "--split", "test"}).out;
    const std::string of_valid = succeed(place, {"eval", folder}).out;
    fs::remove(place / "test.tsv");
    CHECK(succeed(place, {"eval", folder}).out == of_valid);
    place.write("test.tsv", held);
    fs::remove(place / train);
    CHECK(succeed(place, {"eval", folder, "--split", "test"}).out == of_test);
    CHECK(number_of(succeed(place, {"eval", folder, "--set", "data.valid=[held-out.tsv]"}).out, "loss") ==
          number_of(of_test, "loss"));
    check_refused(place, "valid is held out of train", {"eval", folder}, {"data.train", train});
    check_refused(place, "train", {"eval", folder, "--split", "train"}, {"data.train", train});
  }
}

TEST_CASE(
    "texts that are held out of a table are not evaluated once its content has changed: most of them were learnt") {
  const SamplePlace place;
  const std::string table = place.read("train.tsv"), text = place.read("text/a.txt");
  Words rows = lines_of(table);
  std::reverse(rows.begin(), rows.end());
  const std::string reversed = text_of(rows);
  place.write("pairs.yaml",
              "name: pairs\ndata: {type: pairs, train: [train.tsv], valid_fraction: 0.2, tokenizer: char, max_source: "
              "16, max_length: 48}\nmodel: {type: language-model, width: 8, layers: [{mixer: gau}]}\n"
              "train: {steps: 2, batch_size: 4}\n");
  succeed(place, "train --config lm.yaml --set data.test_fraction=0.1");
  succeed(place, "train --config pairs.yaml");
  succeed(place, "train --config classifier.yaml");
  succeed(place, "train --config classify --set name=folds data.train=[train.tsv] data.folds=4");
  for (const char* const run : {"lm", "pairs", "classifier", "folds"}) {
    INFO(run);
    const std::string folder = std::string("runs/") + run;
    const std::string figures = succeed(place, {"eval", folder}).out;
    for (const std::string& changed : {reversed, table + "good\ta fine day 99\n"}) {
      place.write("train.tsv", changed);
      place.write("text/a.txt", text + "the rope turns.\n");
      const Says says = "the content of data.train has changed since training ... --set data.test=[FILE] --split test";
      check_refused(place, run, {"eval", folder}, says);
      check_refused(place, run, {"eval", folder, "--split", "train"}, says);
      if (run == std::string("lm")) check_refused(place, run, {"eval", folder, "--split", "test"}, says);
      CHECK(contains(succeed(place, {"report", folder, "--trust", "-o", "report.html"}).err, "has changed since"));
      place.write("new.tsv", table);
      if (run != std::string("lm"))
        succeed(place, {"eval", folder, "--set", "data.test=[new.tsv]", "--split", "test"});  // its own files
    }
    place.write("train.tsv", table);
    place.write("text/a.txt", text);
    CHECK(succeed(place, {"eval", folder}).out == figures);
    place.write("moved/train.tsv", table);  // the same content by another name
    if (run != std::string("lm")) succeed(place, {"eval", folder, "--set", "data.train=[moved/train.tsv]"});
  }
}

TEST_CASE_FIXTURE(Samples, "compare: runs between which the content of their table has changed are not ranked") {
  succeed(place, "train --config classifier.yaml --set name=before");
  succeed(place, "train --config classifier.yaml --set name=seed seed=2");
  Words rows = lines_of(place.read("train.tsv"));
  std::rotate(rows.begin(), rows.begin() + 7, rows.end());
  place.write("train.tsv", text_of(rows));
  succeed(place, "train --config classifier.yaml --set name=after");
  const Outcome compared = succeed(place, "compare runs/before runs/seed runs/after");
  CHECK(contains(compared.out, "held out of train.tsv, whose content was another\n"));
  CHECK(count_of(compared.out, "held out of train.tsv") == 2);
  CHECK_FALSE(contains(succeed(place, "compare runs/before runs/seed").out, "another"));
}

TEST_CASE_FIXTURE(Trained, "compare: what is no run is named and left out; nothing left is an error") {
  fs::create_directories(place / "runs/empty");
  const Outcome outcome = succeed(place, "compare runs/empty runs/lm");
  CHECK(contains(outcome.err, "runs/empty: there is no config.yaml here"));
  CHECK(lines_of(outcome.out).size() == 3);
  const std::vector<Refusal> rows{
      {"no run at all", "compare runs/empty", "runs/empty ... config.yaml"},
      {"no such folder", "compare runs/lm runs/nowhere", "runs/nowhere: there is no such folder"},
      {"another record", "compare runs/lm", "metrics.jsonl: not what the checkpoint of step 6 recorded", 1,
       [](const Workplace& here) { here.write("runs/lm/metrics.jsonl", ""); }},
      {"a run without a step", "compare runs/lm", "metrics.jsonl ... no step", 1,
       [](const Workplace& here) { fs::remove_all(here / "runs/lm/checkpoints"); }},
      {"a format of another name", "compare runs/lm --format html", "--format ... {text,csv}", 2},
  };
  check_all_refused(place, rows);
}

}  // namespace capstan::testing
