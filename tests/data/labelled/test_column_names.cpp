// Which row is a header, and which columns are the label and the text.
#include "data/labelled/column_roles.hpp"
#include "labelled_support.hpp"

using namespace capstan;

TEST_CASE("checks: a table of numbers has no header, one of names has") {
  CHECK_FALSE(ColumnSample({{"1", "2"}, {"3", "4"}}, std::nullopt).begins_with_names());
  CHECK(ColumnSample({{"Class Index", "Title"}, {"3", "Some title"}}, std::nullopt).begins_with_names());
  CHECK(ColumnSample({{"q", "grade"}, {"some words", "4"}, {"some words", "5"}}, std::nullopt).begins_with_names());
  const auto grades = [](size_t numbers) {
    std::vector<std::vector<std::string>> rows(21, {"words", "none"});
    rows[0] = {"q", "mark"};
    for (size_t i = 1; i <= numbers; ++i) rows[i][1] = "4";
    return rows;
  };
  CHECK(ColumnSample(grades(19), std::nullopt).begins_with_names());  // 95 % of the rows below
  CHECK_FALSE(ColumnSample(grades(18), std::nullopt).begins_with_names());
  CHECK(ColumnSample({{"date of birth", "label"}, {"a", "b"}}, std::nullopt).begins_with_names());
  CHECK(ColumnSample({{"text", "text"}, {"a", "b"}}, std::nullopt).begins_with_names());
  CHECK_FALSE(ColumnSample({{"positive", "A fine film, which I liked!"}}, std::nullopt).begins_with_names());
  CHECK_FALSE(ColumnSample().begins_with_names());
  CHECK(ColumnSample({{"Nr", "Rubrik",
                       "\xc3\x9c"
                       "berschrift"},
                      {"1", "Sport", "Ein Tor"},
                      {"2", "Geld", "Die Bank"}},
                     std::nullopt)
            .begins_with_names());
  // Names that say nothing, above few labels and texts of words; not above other texts of one word.
  std::vector<std::vector<std::string>> rows = {{"sparte", "beitrag"}};
  for (int i = 0; i < 30; ++i) rows.push_back({i % 2 == 0 ? "gut" : "schlecht", "Beitrag Nummer " + std::to_string(i)});
  CHECK(ColumnSample(rows, std::nullopt).begins_with_names());
  rows[0] = {"gut", "Beitrag"};
  CHECK_FALSE(ColumnSample(rows, std::nullopt).begins_with_names());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = {i == 0 ? "sparte" : rows[i][0], "w" + std::to_string(i)};
  CHECK_FALSE(ColumnSample(rows, std::nullopt).begins_with_names());
}

namespace {

/// 30 rows; of each column an example of what it has: "id" all different, "few" of three labels, "0/1", "words",
/// "dates", "numbers" such as 0.4217, "split", "none".
std::vector<std::vector<std::string>> rows_of(const std::vector<std::string>& header,
                                              const std::vector<std::string>& columns) {
  std::vector<std::vector<std::string>> rows;
  if (!header.empty()) rows.push_back(header);
  for (int i = 0; i < 30; ++i) {
    rows.emplace_back();
    for (const std::string& column : columns)
      rows.back().push_back(column == "id"        ? std::to_string(1000000 + i)
                            : column == "few"     ? std::string(i % 3 == 0   ? "good"
                                                                : i % 3 == 1 ? "bad"
                                                                             : "none")
                            : column == "0/1"     ? std::to_string(i % 2)
                            : column == "words"   ? fmt::format("some text of words, number {}", i)
                            : column == "dates"   ? fmt::format("2024-01-{:02}", i % 3 + 1)
                            : column == "numbers" ? fmt::format("0.{}", 4217 + i)
                            : column == "tenths"  ? fmt::format("0.{}", i % 4)
                            : column == "short"   ? std::string(i % 2 == 0 ? "Ann Lee" : "Bob") + std::to_string(i)
                            : column == "split"   ? std::string(i % 2 == 0 ? "train" : "dev")
                                                  : std::string());
  }
  return rows;
}

}  // namespace

TEST_CASE("columns: headers as pandas, R, Kaggle and people write them, and rows that are none") {
  struct Row {
    std::vector<std::string> header, columns;
    bool names;
  };
  for (const Row& row : std::vector<Row>{
           {{"Unnamed: 0", "text", "label"}, {"id", "words", "few"}, true},
           {{"", "text", "label"}, {"id", "words", "few"}, true},
           {{"#", "text", "label"}, {"id", "words", "few"}, true},
           {{"PassengerId", "Comment", "Toxic?"}, {"id", "words", "0/1"}, true},
           {{" text ", " label "}, {"words", "few"}, true},
           {{"\"text\"", "\"label\""}, {"words", "few"}, true},
           {{"v1", "v2", "", "", ""}, {"few", "words", "none", "none", "none"}, true},
           {{"Review(translated)", "pos/neg"}, {"words", "few"}, true},
           {{"0", "1"}, {"words", "few"}, true},
           {{"", "0", "1"}, {"id", "few", "words"}, true},
           {{"label", "text", "text"}, {"few", "words", "words"}, true},
           {{"http://a.b/c", "text of words", "good"}, {"id", "words", "few"}, false},
           {{"good", "text of words"}, {"few", "words"}, false},
           {{"1", "0"}, {"0/1", "id"}, false},
           {{"never", "Great!"}, {"few", "words"}, false},
       }) {
    const ColumnSample sample(rows_of(row.header, row.columns), std::nullopt);
    CHECK_MESSAGE(sample.begins_with_names() == row.names, fmt::format("{} {}", row.header[0], row.header[1]));
  }
}

TEST_CASE("columns: the label is found by its name or by what is left, and never an identifier, a date or a split") {
  struct Row {
    std::vector<std::string> header, columns;
    int label;  // from 0; -1: in doubt
  };
  for (const Row& row : std::vector<Row>{
           {{"tweet_id", "airline_sentiment", "text"}, {"id", "few", "words"}, 1},
           {{"tweet_id", "airline_sentiment", "airline_sentiment_confidence", "airline_sentiment_gold", "text"},
            {"id", "few", "numbers", "none", "words"},
            1},
           {{"user_id", "sentiment_label", "text"}, {"0/1", "few", "words"}, 1},
           {{"date", "label_text", "text"}, {"dates", "few", "words"}, 1},
           {{"source", "text", "is_spam"}, {"few", "words", "0/1"}, 2},
           {{"split", "text", "category_name"}, {"split", "words", "few"}, 2},
           {{"category_id", "category_name", "text"}, {"0/1", "few", "words"}, 1},
           {{"category_id", "text"}, {"0/1", "words"}, 0},
           {{"text", "label", "label_text"}, {"words", "0/1", "few"}, 1},
           {{"Class Index", "Title", "Description"}, {"few", "words", "words"}, 0},
           {{"id", "text", "author"}, {"id", "words", "few"}, 2},
           {{"headline", "clickbait"}, {"words", "0/1"}, 1},
           {{"v1", "v2", "", "", ""}, {"few", "words", "none", "none", "none"}, 0},
           {{"text", "coarse_label", "fine_label"}, {"words", "few", "few"}, -1},
           {{"id", "comment_text", "toxic", "obscene"}, {"id", "words", "0/1", "0/1"}, -1},
           {{"id", "date", "text"}, {"id", "dates", "words"}, -1},
           {{"created", "user", "text", "mood", "place"}, {"dates", "few", "words", "few", "few"}, -1},
           {{"text", "insult", "threat"}, {"words", "tenths", "numbers"}, -1},
           {{"text", "insult", "kind"}, {"words", "tenths", "few"}, -1},
           {{"text", "insult"}, {"words", "tenths"}, 1},
           {{}, {"few", "words"}, 0},
           {{}, {"few", "0/1", "words"}, 0},
           {{}, {"id", "few", "words"}, 1},
           {{}, {"dates", "few", "words"}, 1},
           {{}, {"split", "few", "words"}, 1},
           {{}, {"numbers", "words", "0/1"}, 2},
           {{}, {"dates", "few", "0/1", "words"}, -1},
           {{}, {"id", "words"}, 0},  // whose labels are then refused
       }) {
    const ColumnSample sample(rows_of(row.header, row.columns), !row.header.empty());
    const LabelSearch found = find_label(sample, /*single=*/true);
    CHECK_MESSAGE((found.column ? static_cast<int>(*found.column) : -1) == row.label,
                  (row.header.empty() ? row.columns[0] : row.header[0] + " " + row.header[1]));
  }
}

TEST_CASE("columns: all that look like texts are read where their names belong together, and asked for otherwise") {
  struct Row {
    std::vector<std::string> header, columns;
    std::vector<size_t> texts;
    bool together;
  };
  for (const Row& row : std::vector<Row>{
           {{"label", "sentence1", "sentence2"}, {"few", "words", "words"}, {1, 2}, true},
           {{"question1", "question2", "is_duplicate"}, {"words", "words", "0/1"}, {0, 1}, true},
           {{"premise", "hypothesis", "label"}, {"words", "words", "few"}, {0, 1}, true},
           {{"text_a", "text_b", "label"}, {"words", "words", "few"}, {0, 1}, true},
           {{"subject", "body", "queue"}, {"words", "words", "few"}, {0, 1}, true},
           {{"Class Index", "Title", "Description"}, {"few", "words", "words"}, {1, 2}, true},
           {{"label", "claim", "evidence"}, {"few", "words", "words"}, {1, 2}, false},
           {{"label", "text", "text"}, {"few", "words", "words"}, {1, 2}, false},
           {{"text", "clean_text", "label"}, {"words", "words", "few"}, {0}, true},
           {{"title", "text", "remark", "label"}, {"words", "words", "words", "few"}, {0, 1}, true},
           {{"label", "author", "text"}, {"few", "short", "words"}, {2}, true},
           {{"label", "location", "text"}, {"few", "words", "words"}, {2}, true},
           {{"label", "date", "text"}, {"few", "dates", "words"}, {2}, true},
           {{}, {"few", "words", "words"}, {1, 2}, false},
           {{}, {"few", "short", "words"}, {2}, true},
       }) {
    const ColumnSample sample(rows_of(row.header, row.columns), !row.header.empty());
    std::vector<bool> allowed(row.columns.size(), true);
    allowed[*find_label(sample, true).column] = false;
    const TextSearch found = find_texts(sample, allowed, false);
    const std::string what = row.header.empty() ? "no header" : row.header[1];
    INFO(what);
    CHECK(found.columns == row.texts);
    CHECK(found.belong_together == row.together);
  }
}

TEST_CASE("columns: rows that repeat the header do not hide it") {
  auto rows = rows_of({"text", "label"}, {"words", "few"});
  for (const size_t at : {5, 11, 17}) rows.insert(rows.begin() + at, rows[0]);
  const ColumnSample sample(rows, std::nullopt);
  CHECK(sample.begins_with_names());
  CHECK(sample.rows() == 30);
}
