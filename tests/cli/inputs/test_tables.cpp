// Tables as people have them: other orders of columns, delimiters, headers and endings than the run's, and without
// labels.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/cli/support/tables.hpp"

namespace capstan::testing {
namespace {

const Workplace& trained() {
  return made_once([](const Workplace& place) {
    write_samples(place);
    place.write("linear.yaml", linear_yaml);
    place.write("pandas.csv", table({"id", "text", "category"}, ','));
    place.write("plain.tsv", table({"category", "text"}, '\t', false));
    place.write("reordered.csv", table({"category", "id", "text"}, ';'));
    place.write("table.txt", table({"category", "text"}, '\t', false));
    place.write("new.csv", table({"id", "text"}, ','));
    const Outcome named = succeed(place, "train --config linear.yaml");
    CHECK(contains(named.err, "data.header=true data.label_column=category data.text_columns=[text]"));
    succeed(place, "train --config linear.yaml --set name=plain data.train=[plain.tsv]");
  });
}

TEST_CASE("predict and embed read a table by the run's columns, whatever its ending and their order") {
  const Workplace& place = trained();
  const std::string texts = text_of(Words(15, "a fine day\nsad night"));
  for (const char* const run : {"runs/linear", "runs/plain"}) {
    const std::string expected = succeed(place, {"predict", run}, texts).out;
    for (const char* const file : {"pandas.csv", "plain.tsv", "reordered.csv", "table.txt", "new.csv"}) {
      CAPTURE(run);
      CAPTURE(file);
      const Outcome outcome = succeed(place, {"predict", run, file});
      CHECK(outcome.out == expected);
      CHECK(contains(outcome.err, std::string(file) + ": "));
      CHECK(contains(outcome.err, "left out") == (file != std::string("new.csv")));
      if (file != std::string("new.csv"))
        CHECK(contains(succeed(place, {"predict", run, "--errors", file}).err, "0 of 30 texts"));
    }
  }
  write_trained_samples(place);
  place.write("labelled.tsv", "good\ta fine day\nbad\tsad night\n");
  CHECK(succeed(place, "embed runs/classifier labelled.tsv").out ==
        succeed(place, "embed runs/classifier", "a fine day\nsad night\n").out);
}

TEST_CASE("predict takes other columns of the texts from --text-column and --set") {
  const Workplace& place = trained();
  place.write("other.csv", "title,words\nsad night,a fine day\nsad,sad night\n");
  const std::string expected = succeed(place, "predict runs/linear", "a fine day\nsad night\n").out;
  CHECK(succeed(place, "predict runs/linear --text-column words other.csv").out == expected);
  CHECK(succeed(place, "predict runs/linear other.csv --set data.text_columns=[words]").out == expected);
  check_refused(place, "no such column", "predict runs/linear other.csv --text-column nothing",
                "other.csv:1: no column is called 'nothing' ... title, words ... --text-column");
  // Whether the first row has names cannot be seen: neither is silently assumed.
  place.write("unknown.csv", "author,remark\nann,a fine day\nbob,sad night\n");
  check_refused(place, "unknown names", "predict runs/linear unknown.csv",
                "unknown.csv: its first row (author, remark) has no column ... --text-column");
  CHECK(succeed(place, "predict runs/linear --text-column remark unknown.csv").out == expected);
}

TEST_CASE("predict reads a folder as one text per file") {
  const Workplace& place = trained();
  for (const char* const folder : {"files", "files/bad", "files/good"}) fs::create_directory(place / folder);
  place.write("files/bad/1.txt", "sad\nnight\n");
  place.write("files/good/2.txt", "a fine day\n");
  const Outcome outcome = succeed(place, "predict runs/linear files");
  CHECK(lines_of(outcome.out).size() == 3);
  CHECK(contains(outcome.err, "files: 2 files, each a text"));
  CHECK(contains(succeed(place, "predict runs/linear files --errors").err, "0 of 2 texts"));
}

TEST_CASE("train finds columns beside an index without a name, long identifiers and names that occur twice") {
  const Workplace& place = trained();
  const auto found = [&](const std::string& header, const Words& columns, const Words& more = {}) {
    place.write("odd.csv", header + table(columns, ',', false));
    return succeed(place, Words("config check --config linear.yaml --set data.train=[odd.csv]") + more).err;
  };
  CHECK(contains(found(",text,label\n", {"id", "text", "label"}),
                 "data.header=true data.label_column=label data.text_columns=[text]"));
  place.write("three.tsv", "good\tx\ta fine day\nbad\ty\tsad night\n");
  CHECK(contains(succeed(place, "config check --config linear.yaml --set data.train=[three.tsv]").err,
                 "three.tsv: read with the label in column 1 and the text in column 3 of 3"));
  const std::string uuid(64, '0');
  std::string long_ids = table({"id", "text", "label"}, ',', false);
  for (size_t at = 0; at < long_ids.size(); at = long_ids.find('\n', at) + 1) long_ids.insert(at, uuid);
  CHECK(contains(found("key,words,label\n" + long_ids, {"id", "text", "label"}), "data.text_columns=[words]"));
  CHECK(contains(found("text,text,label\n", {"id", "text", "label"}, {"data.header=true"}),
                 "data.label_column=label data.text_columns=[2]"));
}

TEST_CASE("predict --output writes the table with the predictions as new columns, or nothing") {
  const Workplace& place = trained();
  const auto written = [&](const std::string& content, const std::string& ending) {
    place.write("in" + ending, content);
    const Outcome outcome = succeed(place, {"predict", "runs/linear", "in" + ending, "--output", "out" + ending});
    CHECK(outcome.out == "");
    return place.read("out" + ending);
  };
  const std::string csv = written("\xef\xbb\xbfid;text\r\n7;\"a; fine\nday\"\r\n\r\n8;sad night\r\n", ".csv");
  check_contains(csv,
                 {"\xef\xbb\xbfid;text;predicted;probability\r\n7;\"a; fine\nday\";good;", "\r\n\r\n8;sad night;bad;"});
  CHECK(contains(written("bad\tsad night\n", ".tsv"), "bad\tsad night\tbad\t"));
  const std::string jsonl = written("{\"n\": 1, \"text\": \"sad night\"}\n", ".jsonl");
  CHECK(contains(jsonl, "{\"n\": 1, \"text\": \"sad night\", \"predicted\": \"bad\", \"probability\": "));
  CHECK(written("id,text\r\n", ".csv") == "id,text,predicted,probability\r\n");
  CHECK(written("text\n", ".csv") == "text,predicted,probability\n");
  written("{\"n\": 1, \"text\": \"sad night\"}\n", ".jsonl");
  written("id;text\n7;sad night\n8;sad\n", ".csv");
  place.write("broken.csv", "id,text\n1,sad\n2\n");
  for (const Refusal& row : std::vector<Refusal>{
           {"a bad row", "predict runs/linear broken.csv -o none", "broken.csv:3"},
           {"packed", "predict runs/linear new.csv -o none.csv.gz", "none.csv.gz ... none.csv", 2},
           {"no folder", "predict runs/linear -o no/x.csv", "cannot create no/x.csv: ", 1, {}, "a day\n"},
           {"another name", "predict runs/linear new.csv -o none.tsv", "--output ... none.tsv", 2},
           {"a format", "predict runs/linear new.csv -o none --echo", "--echo excludes --output", 2},
           {"its own", "predict runs/linear new.csv -o ./new.csv", "--output ... is read", 2},
           {"lines", "predict runs/linear -o none", "--output ... --input", 2, {}, "a day\n"},
           {"errors", "predict runs/linear new.csv --errors -o none", "--errors excludes --output", 2},
           {"a column", "predict runs/linear out.csv -o none", "already has ... predicted"},
       }) {
    check_refused(place, row);
    CHECK_FALSE(fs::exists(place / "none"));
  }
}

TEST_CASE("train refuses UTF-16 and labels that nearly all differ, with the remedy; quoted fields need format: csv") {
  const Workplace& place = trained();
  place.write("utf16.csv", std::string("\xff\xfeg\0,\0a\0\n\0", 10));
  std::string unique;
  for (int i = 0; i < 40; ++i) unique += "n" + std::to_string(i) + "\ta text\n";
  place.write("unique.tsv", unique);
  place.write("quoted.tsv", text_of(Words(20, "good\t\"a fine\nday\"\nbad\tsad night")));
  const auto train = [](const std::string& data, const std::string& name) {
    return train_words("linear.yaml", {"data.train=[" + data + "]", "name=" + name});
  };
  check_refused(place, "utf-16", train("utf16.csv", "a"), "utf16.csv: is UTF-16 ... iconv");
  place.write("no_mark.csv", std::string("\0g\0o\0o\0d\0,\0a\0\n\0b\0a\0d\0,\0b\0\n", 26));
  check_refused(place, "utf-16 without a mark", train("no_mark.csv", "f"), "no_mark.csv: is UTF-16 ... iconv");
  check_refused(place, "unique", train("unique.tsv", "b"), "40 classes ... data.classes");
  check_refused(place, "quoted", train("quoted.tsv", "c"), "quoted.tsv:2 ... set format: csv");
  succeed(place, train("quoted.tsv", "d") + "data.format=csv");
}

TEST_CASE("names that are not UTF-8 are refused when they are read: labels, classes, columns, folders") {
  const Workplace& place = trained();
  place.write("latin1.tsv", "caf\xe9\tgood food\nball\tplay goal\ncaf\xe9\tnice soup\nball\tteam wins\n");
  place.write("header.csv", "label,t\xe9xt\ngood,food\nbad,rain\n");
  place.write("labels.jsonl", "{\"label\": \"caf\xe9\", \"text\": \"good food\"}\n");
  place.write("labels.txt", "__label__caf\xe9 good food\n");
  place.write("rows.tsv", "ball\tplay goal\n");
  place.write("more.tsv", "wind\tcold rain\nwind\tmore rain\nball\tteam plays\n");
  place.write("folders/sp\xffrt/1.txt", "play goal");
  place.write("folders/food/1.txt", "nice soup");
  const auto train = [](const std::string& data, const Words& settings) {
    return train_words("linear.yaml", "name=names data.tokenizer.type=byte data.train=[" + data + "]") + settings;
  };
  const std::string remedy = " ... not valid UTF-8; convert the file, as with iconv -f LATIN1";
  check_refused(place, "a label", train("latin1.tsv", {}), "latin1.tsv:1: the label 'caf\\xe9'" + remedy);
  check_refused(place, "a header", train("header.csv", {"data.header=true"}),
                "header.csv:1: the name of a column" + remedy);
  check_refused(place, "JSON", train("labels.jsonl", {}), "labels.jsonl:1");
  check_refused(place, "fastText", train("labels.txt", {"data.format=fasttext"}), "labels.txt:1: the label" + remedy);
  check_refused(place, "a folder", train("folders", {"data.format=folders"}),
                "rt/1.txt: the class in its path" + remedy);
  check_refused(place, "data check",
                "data check --config linear.yaml --set data.train=[latin1.tsv] data.tokenizer.type=byte",
                "latin1.tsv:1: the label 'caf\\xe9'" + remedy);
  CHECK_FALSE(fs::exists(place / "runs/names"));
  succeed(place, train("latin1.tsv,more.tsv", {"data.on_error=skip"}));
}

TEST_CASE("a row of another width is named by commands, not read as another text or label") {
  const Workplace& place = trained();
  const std::string rows = table({"text", "category"}, ',', false);
  place.write("wide.csv", "text,category\n" + rows + "a fine, sunny day,good\n");
  place.write("narrow.tsv", "good\ta fine day\nbad\tsad night\nsad night\n");
  place.write("texts.csv", "text\na day\na fine, sunny day\n");
  place.write("pairs.yaml", pairs_yaml);
  place.write("wide_pairs.csv", "source,target\none,eins\none, two,eins\n");
  const std::vector<std::string> wide{"wide.csv:32: too many columns: found 3, but the header has 2",
                                      "quote fields that contain commas"};
  const std::string narrow = "narrow.tsv:3: too few columns: found 1, but most rows have 2";
  const Words linear = "--config linear.yaml --set";
  for (const Refusal& row : std::vector<Refusal>{
           {"output", "predict runs/linear wide.csv -o none", wide},
           {"narrow", "predict runs/plain narrow.tsv", {narrow}},
           {"a column of texts with commas", "predict runs/linear texts.csv",
            "texts.csv:3: too many columns: found 2, but the header has 1"},
           {"pairs", "train --config pairs.yaml --set name=wide data.train=[wide_pairs.csv]",
            "wide_pairs.csv:3: too many columns"},
       })
    check_refused(place, row);
  CHECK_FALSE(fs::exists(place / "none"));
  const Outcome skipped =
      succeed(place, Words{"train"} + linear + "data.train=[wide.csv] name=skip data.on_error=skip");
  CHECK(contains(skipped.err, "1 row left out (on_error: skip), the first: " + wide[0]));
}

TEST_CASE("a header with one name twice gives no text, and a name that two columns have is asked for") {
  const Workplace& place = trained();
  place.write("twice.csv",
              "label,text,text\n" + text_of(Words(15, "good,a fine day,one text\nbad,sad night,another text")));
  const Words train = "train --config linear.yaml --set name=twice data.train=[twice.csv]";
  check_refused(place, "twice", train, "twice.csv: the columns 2 and 3 look like texts ... data.text_columns=[2, 3]",
                2);
  succeed(place, train + "data.text_columns=[2]");
  CHECK(lines_of(succeed(place, "predict runs/twice twice.csv").out).size() == 31);
  check_refused(place, "new texts", "predict runs/linear twice.csv",
                "twice.csv:1: the columns 2 and 3 are called 'text' ... --text-column");
}

TEST_CASE("a table on standard input is read as such, or a line says that it is read as texts") {
  const Workplace& place = trained();
  const std::string texts = succeed(place, "predict runs/linear new.csv").out;
  const Outcome csv = succeed(place, "predict runs/linear", place.read("new.csv"));
  CHECK(csv.out == texts);
  CHECK(
      contains(csv.err, "stdin: begins as the data of the run and is read as csv; for texts in lines: --input lines"));
  CHECK(succeed(place, "predict runs/linear", table({"id", "text"}, '\t')).out == texts);
  place.write("new.dat", place.read("new.csv"));
  const Outcome named = succeed(place, "predict runs/linear new.dat");
  CHECK(named.out == texts);
  CHECK(contains(named.err, "new.dat: begins as the data of the run and is read as csv"));
  const char* const objects = "{\"text\": \"a fine day\", \"n\": 1}\n{\"text\": \"sad night\", \"n\": 1}";
  CHECK(succeed(place, "predict runs/linear", text_of(Words(15, objects))).out == texts);
  CHECK(contains(succeed(place, "predict runs/linear --errors", place.read("pandas.csv")).err, "0 of 30 texts"));
  succeed(place, "predict runs/linear -o piped.csv", "id,text\n1,sad night\n");
  CHECK(contains(place.read("piped.csv"), "id,text,predicted,probability\n1,sad night,bad,"));
  // As lines where asked for, and where the first line is no header.
  CHECK(lines_of(succeed(place, "predict runs/linear --input lines", place.read("new.csv")).out).size() == 32);
  const Outcome rows = succeed(place, "predict runs/plain", "good,a fine day\nbad,sad night\n");
  CHECK(lines_of(rows.out).size() == 3);
  check_contains(rows.err,
                 {"warning: stdin:1: looks like the first line of a table, but is read as a text", "--input csv"});
  CHECK(contains(succeed(place, "predict runs/linear", "text\nsad night\n").err, "looks like the first line"));
  CHECK(succeed(place, "predict runs/linear", "a fine day\nsad, dark night\n").err == "");
  // Lines of fastText, whose labels are no words of the text.
  const std::string lines = text_of(Words(15, "__label__good a fine day\n__label__bad sad night"));
  place.write("lines.txt", lines);
  succeed(place, "train --config linear.yaml --set name=fast data.train=[lines.txt] data.format=fasttext");
  CHECK(succeed(place, "predict runs/fast", lines).out == succeed(place, "predict runs/fast lines.txt").out);
  CHECK(lines_of(succeed(place, "predict runs/fast", "a fine day\nsad night\n").out).size() == 3);
}

TEST_CASE("rows that repeat the header and bad rows of new texts are counted by every command, and kept by --output") {
  const Workplace& place = trained();
  const std::string header = "text,category\n", rows = table({"text", "category"}, ',', false);
  place.write("joined.csv", header + rows + header + rows);
  const std::string again = "joined.csv:32", said = "data: 1 row left out that is the header again";
  const Words linear = "--config linear.yaml --set name=joined data.train=[joined.csv]";
  check_contains(succeed(place, Words{"train"} + linear).err, {said, again});
  check_contains(succeed(place, Words("data check") + linear).out, {said, again, "Columns of the first table"});
  check_contains(succeed(place, "eval runs/joined --split test --set data.test=[joined.csv]").err,
                 {"data: 2 rows left out that are the header again", again});  // of train and test
  const Outcome predicted = succeed(place, "predict runs/joined joined.csv");
  CHECK(lines_of(predicted.out).size() == 61);
  check_contains(predicted.err, {said, again});
  place.write("bad.csv", "id,text\n1,a fine day\n2,sad, night\n3,sad night\n");
  check_refused(place, "stop", "predict runs/joined bad.csv", "bad.csv:3 ... data.on_error: skip");
  const Words skip = "predict runs/joined bad.csv --set data.on_error=skip";
  const Outcome skipped = succeed(place, skip);
  CHECK(lines_of(skipped.out).size() == 3);
  CHECK(contains(skipped.err, "1 row left out (on_error: skip), the first: bad.csv:3"));
  succeed(place, skip + "-o" + "kept.csv");
  CHECK(contains(place.read("kept.csv"), "\n2,sad, night,,\n3,sad night,bad,"));
}

TEST_CASE("the folders of the original IMDB are read as they are unpacked") {
  const Workplace place;
  place.write("linear.yaml", linear_yaml);
  for (const char* const part : {"acl/train", "acl/test"}) {
    for (const char* const folder : {"", "/neg", "/pos", "/unsup"})
      fs::create_directories(place / (std::string(part) + folder));
    for (int i = 0; i < 30; ++i) {
      place.write(fmt::format("{}/neg/{}_2.txt", part, i), fmt::format("sad night {}", i));
      place.write(fmt::format("{}/pos/{}_9.txt", part, i), fmt::format("a fine day {}", i));
      place.write(fmt::format("{}/unsup/{}_0.txt", part, i), "unknown");
    }
    place.write(std::string(part) + "/labeledBow.feat", "9 0:9 1:1\n");
    place.write(std::string(part) + "/urls_pos.txt", "http://somewhere\n");
  }
  // The keys that scripts/get-data.sh prints.
  const Outcome train = succeed(place,
                                "train --config linear.yaml --set name=imdb data.format=folders data.train=[acl/train] "
                                "data.test=[acl/test] data.classes=[neg,pos]");
  CHECK(contains(train.err, "unsup"));  // left out by data.classes
  CHECK(contains(train.err, "of 2 classes"));
  succeed(place, "eval runs/imdb --split test");
  const Outcome predict = succeed(place, "predict runs/imdb acl/test");
  CHECK(lines_of(predict.out).size() == 91);
  CHECK(contains(predict.err, "90 files, each a text, in the order of their paths; left out 2 beside"));
  CHECK(contains(succeed(place, "predict runs/imdb acl/test --errors").err, "0 of 60 texts"));
  const Outcome all =
      succeed(place, "data check --config linear.yaml --set data.format=folders data.train=[acl/train]");
  CHECK(contains(all.out + all.err, "left out 2 files beside the folders of the classes"));
}

}  // namespace
}  // namespace capstan::testing
