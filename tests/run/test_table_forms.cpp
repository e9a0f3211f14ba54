// The forms of tables of docs/labelled.md, by every reader: training, its test data (eval), `data check`, a command's
// file and its standard input. All read the same labels and texts, or refuse with the same remedy.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "data/labelled/table_reading.hpp"
#include "run/inputs/text_input.hpp"
#include "tests/data/labelled/labelled_support.hpp"

namespace capstan {
namespace {

/// A table, how its first row is read, and the keys that a user sets.
struct Form {
  const char *what, *file, *content, *first, *keys = "";
};

const Form forms[] = {
    {"CSV with a header", "a.csv", "text,label\ngood film,pos\nbad film,neg\n", "pos|good film"},
    {"CSV without a header", "a.csv", "pos,good film\nneg,bad film\n", "pos|good film"},
    {"semicolons", "a.csv", "text;label\ngood, film;pos\nbad film;neg\n", "pos|good, film"},
    {"semicolons in the first text", "a.csv", "pos;'good; film, yes'\nneg;'bad, film'\nneg;'so, so'\n",
     "pos|good; film, yes"},
    {"bars", "a.csv", "text|label\ngood film|pos\nbad film|neg\n", "pos|good film"},
    {"tabs in a CSV", "a.csv", "text\tlabel\ngood film\tpos\nbad film\tneg\n", "pos|good film"},
    {"sep= of Excel", "a.csv", "sep=;\r\ntext;label\r\ngood;pos\r\nbad;neg\r\n", "pos|good"},
    {"a byte order mark", "a.csv", "\xef\xbb\xbftext,label\r\ngood,pos\r\nbad,neg\r\n", "pos|good"},
    {"quotes over lines", "a.csv", "text,label\n\"good,\nfilm\",pos\n\"bad \"\"film\"\"\",neg\n", "pos|good,\nfilm"},
    {"single quotes", "a.csv", "label,text\npos,'good, film'\nneg,'bad film'\n", "pos|good, film"},
    {"an index of pandas", "a.csv", ",text,label\n0,good,pos\n1,bad,neg\n", "pos|good"},
    {"columns called 0 and 1", "a.csv", "0,1\npos,good film\nneg,bad film\nneg,so so\n", "pos|good film"},
    {"files that were joined", "a.csv", "text,label\ngood,pos\nbad,neg\ntext,label\nfine,pos\n", "pos|good"},
    {"TSV with a header", "a.tsv", "label\ttext\npos\tgood, \"film\"\nneg\tbad\n", "pos|good, \"film\""},
    {"TSV without a header", "a.tsv", "pos\tgood film\nneg\tbad film\n", "pos|good film"},
    {"an identifier beside them", "a.tsv", "id\ttext\tsentiment\n1\tgood film\tpos\n2\tbad film\tneg\n",
     "pos|good film"},
    {"another delimiter", "a.txt", "pos:good film\nneg:bad film\n", "pos|good film", "delimiter=:"},
    {"columns by number", "a.tsv", "good\tfilm\tpos\nbad\tfilm\tneg\n", "pos|good film",
     "label_column=3 text_columns=1,2"},
    {"two sentences", "a.tsv", "label\tsentence1\tsentence2\npos\tit is good\tthat is so\nneg\tit is bad\tthat is it\n",
     "pos|it is good that is so"},
    {"a subject and a body", "a.csv", "subject,body,label\nit is good,that is so,pos\nit is bad,that is it,neg\n",
     "pos|it is good that is so"},
    {"JSONL", "a.jsonl", "{\"text\": \"good\", \"label\": 1}\n{\"text\": \"bad\", \"label\": 0}\n", "1|good"},
    {"JSONL with other keys", "a.jsonl",
     "{\"review\": \"good film\", \"sentiment\": \"pos\"}\n{\"review\": \"bad film\", \"sentiment\": \"neg\"}\n",
     "pos|good film"},
    {"a JSON array", "a.json",
     "[\n  {\"text\": \"good\",\n   \"label\": \"pos\"},\n  {\"text\": \"bad\", \"label\": \"neg\"}]", "pos|good"},
    {"lists of labels", "a.csv", "text,label\ngood film,\"['pos', 'odd']\"\nbad film,['neg']\n", "odd,pos|good film"},
    {"lists of one label", "a.jsonl",
     "{\"text\": \"good\", \"label\": [\"pos\"]}\n{\"text\": \"bad\", \"label\": [\"neg\"]}\n", "pos|good"},
    {"joined labels", "a.tsv", "pos,odd\tgood film\nneg\tbad film\n", "odd,pos|good film", "multi_label=true"},
    {"columns of 0 and 1", "a.csv", "text,odd,pos\ngood film,1,1\nbad film,0,1\n", "odd,pos|good film",
     "label_columns=odd,pos"},
    {"fastText", "a.txt", "__label__pos good film\n__label__neg bad film\n", "pos|good film", "format=fasttext"},
};

/// A table that is refused, with the remedy, by every reader.
struct Refused {
  const char *what, *file, *content, *remedy, *keys = "";
};

const Refused refused[] = {
    {"line ends of old Macs", "a.csv", "text,label\rgood,pos\rbad,neg\r", "in CR alone"},
    {"UTF-16", "a.csv",
     "\xff\xfe"
     "text,label\n",
     "iconv -f UTF-16"},
    {"Excel", "a.csv", "PK\3\4text", "is a zip archive"},
    {"an object over lines", "a.jsonl", "{\n\"data\": [{\"label\": 1, \"text\": \"x\"}]\n}\n", "jq -c ."},
    {"a cut array", "a.json", "[{\"label\": 1, \"text\": \"x\"},\n{\"label\": 0, \"te", "the file was cut"},
    {"two delimiters", "a.csv", "p;1,5;a\nq;2,5;b\np;1,5;c\nq;3,5;d\np;3,5;d\n", "set data.delimiter to ';' or ','"},
    {"a row that is too wide", "a.csv", "text,label\ngood,pos\nbad, film,neg\n", "quote fields that contain commas"},
};

/// While it exists, standard input is this file.
class StandardInput {
 public:
  explicit StandardInput(const std::string& path) : saved_(::dup(STDIN_FILENO)) {
    const int file = ::open(path.c_str(), O_RDONLY);
    ::dup2(file, STDIN_FILENO);
    ::close(file);
  }
  ~StandardInput() {
    ::dup2(saved_, STDIN_FILENO);
    ::close(saved_);
  }

 private:
  int saved_;
};

std::string row_of(Fields labels, const std::string& text) {
  std::sort(labels.begin(), labels.end());
  return join(labels, ",") + "|" + text;
}

Fields rows_of(const ClassificationData& data, const ExampleSet& examples) {
  Fields rows;
  for (int64_t i = 0; i < examples.size(); ++i) {
    Fields labels;
    for (const int32_t label : examples.labels(i)) labels.push_back(data.classes[static_cast<size_t>(label)]);
    rows.push_back(row_of(labels, text_of(data, examples, i)));
  }
  return rows;
}

/// What `predict --errors` and `predict` read.
Fields rows_of(const std::string& file, const std::string& format, const SourceConfig& data, const Fields& classes,
               bool labels) {
  TextInputOptions options;
  options.file = file;
  options.format = format;
  options.classes = classes;
  options.labels = labels;
  TextInput input(options, data);
  Fields rows;
  for (InputText text; input.next(text);)
    rows.push_back(!labels ? text.text : row_of(text.labels.empty() ? Fields{text.label} : text.labels, text.text));
  return rows;
}

}  // namespace

TEST_CASE("every form of table is read as the same rows by training, eval, data check, a file and standard input") {
  for (const Form& form : forms) {
    INFO(form.what);
    const TemporaryFolder folder;
    const std::string path = folder.write(form.file, form.content);
    LabelledSourceConfig config = with_keys(config_of({path}), form.keys);
    find_columns(config);
    config.test = {path};
    const ClassificationData data = load_labelled(config);
    const Fields rows = rows_of(data, data.train);
    REQUIRE(rows.size() >= 2);
    CHECK(rows.front() == form.first);
    CHECK(rows_of(data, data.test) == rows);
    CHECK(check_source(config, {}).errors.empty());
    CHECK(rows_of(path, format_by_name, config, data.classes, true) == rows);
    Fields texts;
    for (const std::string& row : rows) texts.push_back(row.substr(row.find('|') + 1));
    CHECK(rows_of(path, format_by_name, config, data.classes, false) == texts);
    const StandardInput input(path);
    CHECK(rows_of("-", format_of(path, config.table_format()).name, config, data.classes, true) == rows);
  }
}

TEST_CASE("a table that cannot be read as it is: every reader names the remedy") {
  for (const Refused& form : refused) {
    INFO(form.what);
    const TemporaryFolder folder;
    const std::string path = folder.write(form.file, form.content);
    LabelledSourceConfig config = with_keys(config_of({path}), form.keys);
    const auto refusal = [&](const auto& read) {
      const std::string said = message_of<Error>(read);
      CHECK_MESSAGE(contains(said, form.remedy), said);
    };
    const auto found = [&] {
      find_columns(config);
      return config;
    };
    refusal([&] { load_labelled(found()); });
    refusal([&] {
      const DataReport report = check_source(found(), {});
      if (!report.errors.empty()) throw Error(report.errors.front());
    });
    LabelledSourceConfig trained = config_of({folder.write("good.csv", "text,label\ngood,pos\nbad,neg\n")});
    find_columns(trained);
    refusal([&] { rows_of(path, format_by_name, trained, {"neg", "pos"}, false); });
    trained.test = {path};
    refusal([&] { load_labelled(trained); });
    const StandardInput input(path);
    refusal([&] { rows_of("-", format_of(path).name, trained, {"neg", "pos"}, false); });
  }
}

TEST_CASE("a run reads the tables of others: CSV and JSONL with the same names, either way") {
  const TemporaryFolder folder;
  const std::string csv = folder.write("a.csv", "review,kind\ngood film,pos\nbad film,neg\n"),
                    jsonl = folder.write("a.jsonl",
                                         "{\"review\": \"good film\", \"kind\": \"pos\"}\n"
                                         "{\"review\": \"bad film\", \"kind\": \"neg\"}\n");
  const Fields texts = {"good film", "bad film"};
  for (const std::string& trained : {csv, jsonl}) {
    LabelledSourceConfig config = config_of({trained});
    if (trained == csv) config.header = true;
    config.label_column = "kind";
    find_columns(config);
    for (const std::string& read : {csv, jsonl}) {
      INFO(trained, " ", read);
      CHECK(rows_of(read, format_by_name, config, {"neg", "pos"}, false) == texts);
      const StandardInput input(read);
      CHECK(rows_of("-", format_by_name, config, {"neg", "pos"}, false) == texts);
    }
  }
  // A run without names finds the text by the other columns.
  const LabelledSourceConfig bare = config_of({folder.write("b.tsv", "pos\tgood film\nneg\tbad film\n")});
  CHECK(rows_of(jsonl, format_by_name, bare, {"neg", "pos"}, false) == texts);
}

TEST_CASE("bad rows of a command's table: data.on_error: skip leaves them out, and an output keeps its rows") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({});
  config.header = true;
  config.label_column = "label";
  config.text_columns = {"text"};
  TextInputOptions options;
  options.file = folder.write("a.csv", "id,text\n1,good\n2,bad, film\nid,text\n3,fine\n4,\"open\n5,so\n");
  CHECK(contains(message_of<Error>([&] { TextInput(options, config); }), "a.csv:3: too many columns"));
  config.on_error = OnError::skip;
  const SourceConfig data = config;
  TextInput input(options, data);
  Fields texts;
  for (InputText text; input.next(text);) texts.push_back(text.text);
  CHECK(texts == Fields{"good", "fine", "so"});
  const std::vector<std::vector<AddedField>> added = {{{"p", "A"}}, {{"p", "B"}}, {{"p", "C"}}};
  CHECK(input.with_fields({{"p", ""}}, added) ==
        "id,text,p\n1,good,A\n2,bad, film,\nid,text,p\n3,fine,B\n4,\"open\n5,so,C\n");
  options.file = folder.write("a.jsonl", "{\"text\": \"good\"}\n{\"text\": 7}\n{\"text\": \"fine\"}\n");
  TextInput objects(options, data);
  for (InputText text; objects.next(text);) texts.push_back(text.text);
  CHECK(texts.size() == 5);
  CHECK(objects.with_fields({{"p", ""}}, added) ==
        "{\"text\": \"good\", \"p\": \"A\"}\n{\"text\": 7}\n{\"text\": \"fine\", \"p\": \"B\"}\n");
}

}  // namespace capstan
