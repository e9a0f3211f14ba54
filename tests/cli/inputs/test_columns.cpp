// Which columns and keys are labels and texts, and the line that says so.
#include <doctest/doctest.h>

#include "tests/cli/support/tables.hpp"

namespace capstan::testing {
namespace {

TEST_CASE("labels that are lists are read as such, which is said in one line") {
  const Workplace place;
  place.write("linear.yaml", linear_yaml);
  std::string csv = "text,tags\n", one = "text,tags\n", jsonl;
  for (int i = 0; i < 30; ++i) {
    const char* const list = i % 3 == 0 ? "\"['good', 'day']\"" : i % 3 == 1 ? "['day']" : "[]";
    csv += fmt::format("a fine day {},{}\n", i, list);
    one += fmt::format("a fine day {},['{}']\n", i, i % 2 == 0 ? "good" : "bad");
    jsonl += fmt::format("{{\"text\": \"day {}\", \"label\": [{}]}}\n", i, i % 2 == 0 ? "\"a\", \"b\"" : "\"b\"");
  }
  place.write("lists.csv", csv);
  place.write("one.csv", one);
  place.write("lists.jsonl", jsonl);
  const auto train = [&](const std::string& name, const std::string& keys) {
    return succeed(place, "train --config linear.yaml --set name=" + name + " data.train=[" + name + "] " + keys).err;
  };
  const std::string said = train("lists.csv", "data.text_columns=[text]");
  check_contains(said, {"lists.csv: read with data.header=true data.label_column=tags data.multi_label=true",
                        "of 2 classes with "});
  CHECK(contains(place.read("runs/lists.csv/config.yaml"), "multi_label: true"));
  succeed(place, "predict runs/lists.csv lists.csv --errors");
  train("lists.csv", "data.text_columns=[text]");  // finished
  CHECK(contains(train("lists.jsonl", "seed=1"), "lists.jsonl: read with data.multi_label=true"));
  CHECK_FALSE(contains(train("one.csv", "data.text_columns=[text]"), "multi_label"));  // one label each
}

TEST_CASE("columns of pairs are set by name where a header has the name, and the other one is found") {
  const Workplace place;
  place.write("pairs.yaml", pairs_yaml);
  std::string rows = "id,fr,translation\n";
  for (int i = 0; i < 30; ++i) rows += fmt::format("{0},un {0},one {0}\n", i);
  place.write("fr.csv", rows);
  const auto train = [&](const std::string& name, const Words& keys) {
    return run(place, train_words("pairs.yaml", {"name=" + name, "data.train=[fr.csv]"}) + keys).err;
  };
  const std::string source = "data.source_column=fr", found = "fr.csv: read with";
  CHECK(contains(train("one", {source}), found + " data.header=true data.target_column=translation"));
  CHECK(contains(train("two", {source, "data.header=true"}), found + " data.target_column=translation"));
  CHECK(contains(train("all", {source, "data.target_column=translation"}), found + " data.header=true"));
  CHECK(contains(place.read("runs/all/config.yaml"), "header: true"));
  CHECK(contains(train("no", {"data.source_column=fra"}), "column 'fra' is not a number"));
}

TEST_CASE("keys of JSONL and names of pairs say which columns are read, in one line") {
  const Workplace place;
  place.write("linear.yaml", linear_yaml);
  place.write("pairs.yaml", pairs_yaml);
  std::string tsv = "id\tQuestion\tanswer\n", jsonl, labelled;
  for (int i = 0; i < 30; ++i) {
    const std::string n = std::to_string(i), label = i % 2 == 0 ? "good" : "bad";
    tsv += n + "\tone plus " + n + "\tsum " + n + "\n";
    jsonl += "{\"answer\": \"sum " + n + "\", \"question\": \"one plus " + n + "\"}\n";
    labelled += "{\"category\": \"" + label + "\", \"id\": " + n + ", \"review\": \"a " + label + " day " + n + "\"}\n";
  }
  place.write("qa.tsv", tsv);
  place.write("qa.jsonl", jsonl);
  place.write("labelled.jsonl", labelled);
  const Outcome pairs = succeed(place, "train --config pairs.yaml");
  CHECK(
      contains(pairs.err, "qa.tsv: read with data.header=true data.source_column=Question data.target_column=answer"));
  CHECK(contains(place.read("runs/pairs/config.yaml"), "source_column: Question"));
  const Outcome keys = succeed(place, "train --config pairs.yaml --set name=keys data.train=[qa.jsonl]");
  CHECK(contains(keys.err, "qa.jsonl: read with data.source_column=question data.target_column=answer"));
  succeed(place, "predict runs/keys qa.jsonl --errors");
  // Of three columns, two must be known by their names.
  place.write("id.csv", "id,reversed,word\n1,ba,ab\n2,dc,cd\n");
  check_refused(place, "three columns", "train --config pairs.yaml --set name=three data.train=[id.csv]",
                "id.csv: has 3 columns (id, reversed, word) ... data.source_column", 2);
  // Names that say nothing may be a pair: it is said how the table is read.
  place.write("en.tsv", "english\tgerman\none\teins\ntwo\tzwei\nthree\tdrei\n");
  const Outcome unknown = succeed(place, "train --config pairs.yaml --set name=unknown data.train=[en.tsv]");
  CHECK(contains(unknown.err, "en.tsv: read with data.header=false: source is column 1, target column 2"));
  const Outcome texts = succeed(place, "train --config linear.yaml --set name=keyed data.train=[labelled.jsonl]");
  CHECK(contains(texts.err, "labelled.jsonl: read with data.label_column=category data.text_columns=[review]"));
  succeed(place, "predict runs/keyed labelled.jsonl");
}

TEST_CASE("columns of 0 and 1 are labels in training, predict and eval; without the key, it is named") {
  const Workplace place;
  place.write("linear.yaml", linear_yaml);
  const auto flags = [](bool one) {
    std::string rows = "id,comment_text,toxic,kind,never\n";
    for (int i = 0; i < 40; ++i)
      rows += fmt::format("{},{} {},{},{},0\n", i, i % 2 == 0 ? "awful words" : "lovely words", i, i % 2 == 0 ? 1 : 0,
                          i % 2 != 0 && (one || i % 3 == 0) ? 1 : 0);
    return rows;
  };
  place.write("flags.csv", flags(false));
  place.write("one.csv", flags(true));
  const Words train = "train --config linear.yaml --set name=flags data.train=[flags.csv]";
  check_refused(place, "which label", train,
                "flags.csv: the label could be the column toxic or kind ... data.label_columns=[toxic, kind, never]",
                2);
  const Words several = train + "data.label_columns=[toxic,kind]";
  const Outcome outcome = succeed(place, several);
  CHECK(contains(outcome.err,
                 "flags.csv: read with data.header=true data.multi_label=true data.text_columns=[comment_text]"));
  CHECK(contains(place.read("runs/flags/config.yaml"), "label_columns: [toxic, kind]"));
  CHECK(contains(succeed(place, "predict runs/flags flags.csv --errors").err, "of 40 texts"));
  CHECK(lines_of(succeed(place, "predict runs/flags", "awful words\n").out).at(1).substr(0, 6) == "toxic\t");
  succeed(place, "eval runs/flags --split test --set data.test=[flags.csv]");
  place.write("texts.csv", "comment_text,id\nawful words,1\n");
  CHECK(contains(succeed(place, "predict runs/flags texts.csv").out, "\ntoxic\t"));
  CHECK_FALSE(contains(succeed(place, several + "data.train=[one.csv] name=one").err, "multi_label"));
  CHECK(contains(succeed(place, "predict runs/one one.csv --errors").err, "0 of 40 texts"));
}

TEST_CASE(
    "every command that reads a configuration says the same of the columns; a sweep refuses a table in doubt first") {
  const SamplePlace place;
  std::string rows = "sentiment,review\n", doubtful = "a,b,text\n";
  for (int i = 0; i < 40; ++i) {
    rows += fmt::format("{},a {} day {}\n", i % 2 == 0 ? "good" : "bad", i % 2 == 0 ? "fine" : "sad", i);
    doubtful += fmt::format("{},{},a day {}\n", i % 2 == 0 ? "good" : "bad", i % 3 == 0 ? "old" : "new", i);
  }
  place.write("named.csv", rows);
  place.write("doubtful.csv", doubtful);
  const Words options = "--config classify --set data.train=[named.csv] data.test=[] name=named";
  for (const char* const command : {"train", "data check", "config print", "config check"}) {
    CAPTURE(command);
    CHECK(contains(run(place, Words(command) + options).err,
                   "named.csv: read with data.header=true data.label_column=sentiment data.text_columns=[review]"));
  }
  CHECK(contains(place.read("runs/named/train.log"), "data.label_column=sentiment"));
  check_refused(place, "a sweep",
                "sweep --config classify --set data.train=[doubtful.csv] data.test=[] name=many sweep.seed=[1,2]",
                "label_column", 2);
  CHECK_FALSE(fs::exists(place / "runs/many"));
}

}  // namespace
}  // namespace capstan::testing
