// What is noticed about data that can be read but are probably wrong.
#include <cmath>
#include <optional>

#include "core/base/error.hpp"
#include "data/checks/copies.hpp"
#include "data/checks/duplicates.hpp"
#include "data/checks/report.hpp"
#include "data/text/text_source.hpp"
#include "labelled_support.hpp"

using namespace capstan;

namespace {

std::string warning_of(const std::vector<DataWarning>& warnings, const std::string& check) {
  for (const DataWarning& warning : warnings)
    if (warning.check == check) return warning.message;
  return "";
}

std::vector<std::string> checks_of(const std::vector<DataWarning>& warnings) {
  std::vector<std::string> names;
  for (const DataWarning& warning : warnings) names.push_back(warning.check);
  return names;
}

std::string cell(const DataReport& report, const std::string& name, size_t row, const std::string& column) {
  for (const DataTable& table : report.tables)
    if (table.name == name)
      for (size_t c = 0; c < table.columns.size(); ++c)
        if (table.columns[c] == column && row < table.rows.size()) {
          const DataTable::Cell& found = table.rows[row][c];
          if (const auto* const text = std::get_if<std::string>(&found)) return *text;
          if (const auto* const number = std::get_if<double>(&found)) return fmt::format("{:.2f}", *number);
          return std::to_string(std::get<int64_t>(found));
        }
  return "absent";
}

/// Rows "sentiment,review", or "id,sentiment,review".
std::string review_rows(int count, bool ids) {
  std::string rows;
  for (int i = 0; i < count; ++i)
    rows += (ids ? std::to_string(i) + "," : std::string()) + (i % 2 == 0 ? "positive" : "negative") +
            ",\"a review of some length, number " + std::to_string(i) + " of all\"\n";
  return rows;
}

}  // namespace

TEST_CASE("checks: good data give no warning") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({folder.write("a.csv", review_rows(60, false))});
  config.valid_fraction = 0.2;
  CHECK(checks_of(load_labelled(config).warnings).empty());
  config.header = true;
  config.train = {folder.write("b.csv", "sentiment,review\n" + review_rows(60, false))};
  CHECK(checks_of(load_labelled(config).warnings).empty());
}

TEST_CASE("checks: id, sentiment, review: identifiers as labels, with the column to take") {
  const TemporaryFolder folder;
  const LabelledSourceConfig config =
      config_of({folder.write("a.csv", "id,sentiment,review\n" + review_rows(300, true))});
  const auto refusal = [](const LabelledSourceConfig& refused) {
    return message_of<Error>([&] { load_labelled(refused); });
  };
  CHECK(contains(refusal(config), "301 classes in 301 training examples"));
  CHECK(contains(refusal(config), "check data.label_column (without it, the label is found)"));
  CHECK(contains(refusal(config), "data.classes"));
  CHECK(load_labelled(config, nullptr, false).classes.size() == 301);  // no model of them
}

TEST_CASE("checks: header: true over a file without one") {
  const TemporaryFolder folder;
  LabelledSourceConfig config =
      config_of({folder.write("a.tsv", "1\tgood day\n0\tbad day\n1\tfine day\n0\tbad night\n")});
  config.header = true;
  CHECK(contains(warning_of(load_labelled(config).warnings, "no-header"), "set data.header=false"));
}

TEST_CASE("checks: classes that are seen once, never, or far too often") {
  const TemporaryFolder folder;
  std::string rows;
  for (int i = 0; i < 100; ++i) rows += "often\tthis is text " + std::to_string(i) + "\n";
  rows += "rare\tsome other text\nrare\tyet another text\nonce\tone more text\n";
  LabelledSourceConfig config = config_of({folder.write("a.tsv", rows)});
  const auto warnings = load_labelled(config).warnings;
  CHECK(contains(warning_of(warnings, "seen-once"), "1 of 3 classes has a single training example"));
  CHECK(contains(warning_of(warnings, "seen-once"), "a.tsv:103)"));
  CHECK(contains(warning_of(warnings, "balance"),
                 "'often' has 100 of 103 training examples (97.1 %), 'rare' has 2; judge by the macro-F1"));
  CHECK(contains(warning_of(warnings, "balance"), "set train.monitor=macro-f1"));
  for (const int of_rare : {5, 6}) {  // a twentieth, and more
    std::string mild;
    for (int i = 0; i < 100 + of_rare; ++i) mild += fmt::format("{}\ttext {}\n", i < 100 ? "often" : "rare", i);
    const auto found = load_labelled(config_of({folder.write("mild.tsv", mild)})).warnings;
    CHECK(found.empty() == (of_rare == 6));
  }
  config.classes = {"often", "once", "rare", "new"};
  config.test = {folder.write("test.tsv", "new\ta text of its own\n")};
  CHECK(contains(warning_of(load_labelled(config).warnings, "unseen"), "no example of 'new' (0 in valid, 1 in test)"));
}

TEST_CASE("checks: truncated texts, with the max_length that would do") {
  const TemporaryFolder folder;
  std::string rows;
  for (int i = 0; i < 100; ++i) {
    const auto length = static_cast<size_t>(i < 90 ? 10 : 200);
    rows += (i % 2 == 0 ? "a\t" : "b\t") + std::to_string(i) + std::string(length, 'x') + " y\n";
  }
  LabelledSourceConfig config = config_of({folder.write("a.tsv", rows)});
  config.max_length = 100;
  const std::string message = warning_of(load_labelled(config).warnings, "truncated");
  check_contains(message, {"train: 10 % of the texts have more than data.max_length = 100 tokens and lose their end",
                           "set data.max_length=204"});
  config.max_length = 204;
  CHECK(load_labelled(config).warnings.empty());
  std::string few;  // not more than 5 %
  for (int i = 0; i < 100; ++i)
    few += (i % 2 == 0 ? "a\t" : "b\t") + std::to_string(i) + std::string(i < 95 ? 10 : 200, 'x') + " y\n";
  config.train = {folder.write("b.tsv", few)};
  config.max_length = 100;
  CHECK(load_labelled(config).warnings.empty());
}

TEST_CASE("checks: texts that train shares with valid and test, and copies with other labels") {
  const TemporaryFolder folder;
  LabelledSourceConfig config = config_of({folder.write("train.tsv", "a\tone two\nb\tthree four\na\tfive six\n")});
  config.test = {folder.write("test.tsv", "a\tseven\na\tthree four\n")};
  config.valid = {folder.write("valid.tsv", "a\tone two\n")};
  const auto warnings = load_labelled(config).warnings;
  CHECK(checks_of(warnings) == std::vector<std::string>{"shared-texts", "shared-texts", "label-noise"});
  CHECK(contains(warnings[0].message, "valid: 1 of 1 texts (100 %) are also in train"));
  check_contains(warnings[1].message,
                 {"test: 1 of 2 texts (50 %) are also in train", "test.tsv:2 = " + folder.path("train.tsv:2")});
  CHECK(contains(warnings[2].message, "1 of 3 training texts have a copy with another label"));
}

TEST_CASE("checks: a column of text that holds numbers or labels") {
  const TemporaryFolder folder;
  std::string numbers, words;
  for (int i = 0; i < 40; ++i) {
    numbers += (i % 2 == 0 ? "a\tthis is the text " : "b\tthis is a text ") + std::to_string(i) + "\t" +
               std::to_string(i * 7) + "\n";
    words += (i % 2 == 0 ? "a" : "b") + std::string("\t") + (i % 3 == 0 ? "red" : "blue") + "\n";
  }
  const auto first = load_labelled(config_of({folder.write("a.tsv", numbers)})).warnings;
  CHECK(contains(warning_of(first, "text-column"), "are numbers; check data.text_columns (without it"));
  const auto second = load_labelled(config_of({folder.write("b.tsv", words)})).warnings;
  CHECK(contains(warning_of(second, "text-column"), "look like labels"));
  for (const int of_forty : {38, 37}) {  // 95 % and less
    std::string most;
    for (int i = 0; i < 40; ++i)
      most += (i % 2 == 0 ? "a\tthis is the text " : "b\tthis is a text ") + std::to_string(i) +
              (i < of_forty ? "\t" : "\tno") + std::to_string(i * 7) + "\n";
    const auto found = load_labelled(config_of({folder.write("c.tsv", most)})).warnings;
    CHECK(contains(warning_of(found, "text-column"), "are numbers") == (of_forty == 38));
  }
}

TEST_CASE("checks: the report of labelled text counts what is there") {
  const TemporaryFolder folder;
  LabelledSourceConfig config =
      config_of({folder.write("train.tsv",
                              "\xef\xbb\xbf"
                              "a\tone two\r\nb\tone two\na\tcaf\xc3\x83\xc2\xa9\nb\t\nc\t\xff\na\tone two\n")});
  config.test = {folder.write("test.tsv", "a\tone two\nz\tunknown\n")};
  config.tokenizer = CharTokenizerConfig{};
  const DataReport report = check_source(config, {});
  CHECK(cell(report, "splits", 0, "examples") == "4");
  CHECK(cell(report, "splits", 0, "empty") == "1");
  CHECK(cell(report, "splits", 0, "duplicates") == "2");
  CHECK(cell(report, "splits", 0, "median") == "7");
  CHECK(cell(report, "splits", 0, "other label") == "3");
  CHECK(cell(report, "splits", 1, "in train") == "1");
  CHECK(cell(report, "classes", 0, "class") == "a");
  CHECK(cell(report, "classes", 0, "train") == "3");
  CHECK(contains(cell(report, "files", 0, "remarks"),
                 "byte order mark, 1 byte not UTF-8, mixed line ends (5 LF, 1 CRLF), 1 wrongly converted character"));
  CHECK(cell(report, "files", 0, "split") == "train");
  CHECK(cell(report, "files", 1, "split") == "test");
  CHECK(contains(cell(report, "label_noise", 0, "text"), "train.tsv:1"));
  CHECK(contains(cell(report, "label_noise", 0, "copy"), "train.tsv:2"));
  REQUIRE(report.errors.size() == 2);  // as training would say
  CHECK(contains(report.errors[0], "train.tsv:5"));
  CHECK(contains(report.errors[1], "the text is empty"));
  CHECK(contains(warning_of(report.warnings, "unseen"), "'z' (0 in valid, 1 in test)"));
  config.on_error = OnError::skip;
  CHECK(check_source(config, {}).errors.empty());
  CHECK(contains(warning_of(check_source(config, {}).warnings, "left-out"), "3 rows left out"));
}

TEST_CASE("checks: the report of text is the same from memory and from files") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i % 150) + " of the text\n\n";
  TextSourceConfig config;
  config.train = {folder.write("a.txt", text)};
  config.valid = {folder.write("b.txt", "line 3 of the text\nunheard \xe2\x82\xac\n")};
  config.tokenizer = CharTokenizerConfig{};
  config.sequence_length = 16;
  config.cache = folder.path("cache");
  for (const size_t in_memory : {ByteStore::max_in_memory, size_t{0}}) {
    SourceInputs inputs;
    inputs.max_in_memory = in_memory;
    const DataReport report = check_source(config, inputs);
    CHECK(cell(report, "splits", 0, "bytes") == std::to_string(text.size()));
    CHECK(cell(report, "splits", 0, "tokens") == std::to_string(text.size()));
    CHECK(cell(report, "splits", 0, "lines") == "200");
    CHECK(cell(report, "splits", 0, "repeated") == "50");
    CHECK(cell(report, "splits", 1, "lines") == "2");
    CHECK(cell(report, "splits", 1, "in train") == "1");
    CHECK(cell(report, "splits", 1, "<unk> %") == "17.24");  // u, a, r, d and the sign, of 29
    CHECK(contains(warning_of(report.warnings, "unknown"), "valid: "));
    CHECK(contains(warning_of(report.warnings, "shared-texts"), "valid: 1 of 2 lines"));
    CHECK(report.errors.empty());
  }
  CHECK_FALSE(std::filesystem::exists(*config.cache));
  for (int i = 0; i < 2; ++i)  // tokenised, then from the cache
    CHECK(checks_of(loaded(config).warnings) == std::vector<std::string>{"unknown", "shared-texts"});

  config.documents = BlankLineDocumentsConfig{};
  CHECK(cell(check_source(config, {}), "splits", 0, "documents") == "200");
  config.sequence_length = 100000;
  CHECK(contains(check_source(config, {}).errors.at(0), "data.sequence_length"));
}

TEST_CASE("checks: of more than 20 files only those with unusual bytes are listed, and five of them are named") {
  const TemporaryFolder folder;
  TextSourceConfig config;
  config.tokenizer = ByteTokenizerConfig{};
  config.sequence_length = 16;
  config.cache = folder.path("cache");
  config.valid = {folder.write("valid.txt", "a line\n")};
  for (int i = 0; i < 19; ++i)
    config.train.push_back(folder.write("text/" + std::to_string(10 + i), i % 3 == 0 ? "a line\r\nb\n" : "a line\n"));
  const auto table = [&] {
    const DataReport report = check_source(config, {});
    for (const DataTable& one : report.tables)
      if (one.name == "files") return one;
    return DataTable();
  };
  CHECK(table().title == "Files");
  CHECK(table().rows.size() == 20);
  config.train.push_back(folder.write("text/29", "a line\n"));
  CHECK(table().title == "Files with unusual bytes");
  const DataReport report = check_source(config, {});
  for (size_t row = 0; row < 7; ++row) CHECK(cell(report, "files", row, "file") == config.train[3 * row]);
  CHECK(cell(report, "files", 7, "file") == "absent");
  const std::string warning = warning_of(report.warnings, "encoding");
  CHECK(contains(warning, config.train[12]));
  CHECK_FALSE(contains(warning, config.train[15]));
  CHECK(contains(warning, "; ...;"));
}

TEST_CASE("checks: the report of packed validation text") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; text.size() < 2000000; ++i) text += "line " + std::to_string(i) + "\n";
  TextSourceConfig config;
  config.train = {folder.write("a.txt", text)};
  config.valid = {write_gzip(folder, "b.gz", "some\nvalidation text\n" + text.substr(0, 50000))};
  config.test = {write_gzip(folder, "c.gz", "test text\n")};
  config.sequence_length = 16;
  SourceInputs inputs;
  inputs.max_in_memory = 0;  // plain files are mapped
  const DataReport report = check_source(config, inputs);
  CHECK(cell(report, "splits", 0, "bytes") == std::to_string(text.size()));
  CHECK(cell(report, "splits", 1, "bytes") == "50021");
  CHECK(cell(report, "splits", 2, "bytes") == "10");
}

TEST_CASE("checks: of very many texts a sample is kept, in which equal texts stay together") {
  MarkSample all, few(1000);
  const auto add = [&](uint32_t split, int64_t text, int64_t weight) {
    const TextMark mark{copy_hash(std::to_string(text)), split, 0, static_cast<uint64_t>(text), weight};
    all.add(mark);
    few.add(mark);
  };
  for (int64_t i = 0; i < 60000; ++i) add(0, i % 40000, 5);  // half of 40,000 occur twice
  for (int64_t i = 0; i < 30000; ++i) add(1, 30000 + i, 7);  // a third of them are in train
  CHECK(all.stride() == 1);
  CHECK(few.stride() >= 64);
  const Duplicates exact = all.duplicates(), sample = few.duplicates();
  CHECK(exact.splits[0].repeated.texts == 20000);
  CHECK(exact.splits[0].repeated.weight == 100000);
  CHECK(exact.splits[1].also_in[0].texts == 10000);
  const auto near = [](int64_t found, int64_t expected) {
    return std::abs(static_cast<double>(found - expected)) < 0.2 * static_cast<double>(expected);
  };
  CHECK(near(sample.splits[0].repeated.texts, 20000));
  CHECK(near(sample.splits[0].repeated.weight, 100000));
  CHECK(near(sample.splits[1].also_in[0].texts, 10000));
  CHECK(near(sample.splits[1].also_in[0].weight, 70000));
}

TEST_CASE("checks: encodings are the same wherever the bytes are cut") {
  const std::string bytes =
      "\xef\xbb\xbf"
      "a\r\nb\nc\r\nna\xc3\x83\xc2\xafve \xc3\xa2\xe2\x82\xac\xe2\x84\xa2 \xff\xc3\n" +
      std::string(2, '\0') + "\xe6\x97\xa5\xc3";
  for (size_t size = 1; size <= bytes.size(); ++size) {
    EncodingCheck check;
    for (size_t at = 0; at < bytes.size(); at += size) check.push(std::string_view(bytes).substr(at, size));
    const EncodingFacts facts = check.finish();
    CAPTURE(size);
    CHECK(facts.bytes == static_cast<int64_t>(bytes.size()));
    CHECK(facts.invalid == 3);
    CHECK(facts.nul == 2);
    CHECK(facts.lf == 2);
    CHECK(facts.crlf == 2);
    CHECK(facts.mojibake == 2);
    CHECK(facts.bom);
  }
  EncodingCheck plain;
  plain.push("caf\xc3\xa9 \xc3\x82ge, \xc3\x83o\n");  // letters that mojibake also uses
  CHECK(plain.finish().remarks() == "");
  EncodingCheck crlf;
  crlf.push("a\r\nb\r\n");
  CHECK(crlf.finish().remarks() == "line ends are CRLF");
}

TEST_CASE("checks: lengths") {
  std::vector<int64_t> lengths;
  for (int64_t i = 100; i > 0; --i) lengths.push_back(i);
  const LengthSummary summary = summary_of(lengths);
  CHECK(summary.least == 1);
  CHECK(summary.median == 50);
  CHECK(summary.percentile_95 == 95);
  CHECK(summary.greatest == 100);
  CHECK(summary.mean == 50.5);
  CHECK(summary_of({}).greatest == 0);
}
