// Real data sets, with the counts that ../shared/data/README.md gives.
#include "data/files/text_file.hpp"
#include "data/labelled/labelled_source.hpp"
#include "data/text/text_source.hpp"
#include "data/tokenizers/char_tokenizer.hpp"
#include "data/tokenizers/word_tokenizer.hpp"
#include "support.hpp"

using namespace capstan;

TEST_CASE("tinyshakespeare: bytes, characters, nanoGPT's split") {
  TextSourceConfig config;
  config.train = {real_file("tinyshakespeare/input.txt")};
  if (config.train[0].empty()) return;
  config.tokenizer = CharTokenizerConfig{};
  const TextData data = loaded(config);
  CHECK(data.tokenizer->vocabulary_size() == 65 + 1);
  CHECK(data.train.size() == 1003854);
  CHECK(data.valid.size() == 111540);
  CHECK(data.train.bytes + data.valid.bytes == 1115394);
}

TEST_CASE("enwiki_xml: the usual 90/5/5 of bytes") {
  TextSourceConfig config;
  config.train = {real_file("enwiki_xml/enwiki_head_2016.xml.gz")};
  if (config.train[0].empty()) return;
  config.valid_fraction = config.test_fraction = 0.05;
  const TextData data = loaded(config);
  CHECK(data.train.size() == 5480771);
  CHECK(data.valid.size() == 5785258 - 5480771);
  CHECK(data.test.size() == 6089746 - 5785258);
}

TEST_CASE("wikitext-2: the published numbers of tokens and words") {
  TextSourceConfig config;
  config.train = {real_file("wikitext-2/wiki.train.tokens.gz")};
  config.valid = {real_file("wikitext-2/wiki.valid.tokens")};
  config.test = {real_file("wikitext-2/wiki.test.tokens")};
  if (config.train[0].empty() || config.valid[0].empty() || config.test[0].empty()) return;
  config.tokenizer = WordTokenizerConfig{};
  const TextData data = loaded(config);
  CHECK(data.tokenizer->vocabulary_size() == 33278);
  CHECK(data.train.size() == 2088628);
  CHECK(data.valid.size() == 217646);
  CHECK(data.test.size() == 245569);
  CHECK(data.tokenizer->encode(data.tokenizer->decode(data.valid.tokens.to_vector())) == data.valid.tokens.to_vector());
}

TEST_CASE("labelled sets: examples and classes") {
  struct Row {
    const char *folder, *train, *test;
    int64_t train_count, test_count, classes;
  };
  for (const Row& row :
       {Row{"ag_news", "train.tsv", "test.tsv", 16849, 7600, 4}, Row{"trec", "train.tsv", "test.tsv", 5452, 500, 6},
        Row{"r8", "train.tsv.gz", "test.tsv", 5485, 2189, 8},
        Row{"amazon_multidomain", "train.tsv.gz", "test.tsv.gz", 6253, 1600, 2},
        Row{"dbpedia14k", "train.tsv.gz", "test.tsv", 11200, 2800, 14}}) {
    const std::string folder = real_file(row.folder);
    if (folder.empty()) continue;
    LabelledSourceConfig config;
    config.train = {folder + "/" + row.train};
    config.test = {folder + "/" + row.test};
    config.valid_fraction = 0;
    const ClassificationData data = load_labelled(config);
    CHECK_MESSAGE(data.train.size() == row.train_count, row.folder);
    CHECK_MESSAGE(data.test.size() == row.test_count, row.folder);
    CHECK_MESSAGE(static_cast<int64_t>(data.classes.size()) == row.classes, row.folder);
    CHECK(data.train.longest() <= config.max_length);
    CHECK(data.tokenizer->vocabulary_size() <= 30000);
    if (std::string(row.folder) == "ag_news") CHECK(data.test.class_counts(4) == std::vector<int64_t>(4, 1900));
  }
}

TEST_CASE("AG News' original quoted CSV holds the same test set") {
  const std::string csv = real_file("ag_news/test_original.csv.gz"), tsv = real_file("ag_news/test.tsv");
  if (csv.empty() || tsv.empty()) return;
  LabelledSourceConfig config;
  config.train = {csv};
  config.valid_fraction = 0;
  config.text_columns = {"2", "3"};
  const ClassificationData original = load_labelled(config);
  CHECK(original.train.size() == 7600);
  CHECK(original.train.class_counts(4) == std::vector<int64_t>(4, 1900));
  config.train = {tsv};
  config.text_columns = {};
  CHECK(load_labelled(config).train.size() == 7600);
}

TEST_CASE("IMDB: all films, named by their labels") {
  LabelledSourceConfig config;
  config.train = {real_file("imdb/train.tsv.gz")};
  if (config.train[0].empty()) return;
  config.valid_fraction = 0;
  config.classes = {"negative", "positive"};
  CHECK(load_labelled(config).train.class_counts(2) == std::vector<int64_t>{12500, 12500});
}

TEST_CASE(
    "ListOps of New York University: tokens between blanks, values as classes, as configs/listops-nyu.yaml has it") {
  LabelledSourceConfig config;
  config.train = {real_file("listops_nyu/test_d20s.tsv.gz")};
  if (config.train[0].empty()) return;
  config.valid_fraction = 0;
  config.max_length = 0;
  config.tokenizer = WordTokenizerConfig{};
  const ClassificationData data = load_labelled(config);
  CHECK(data.train.size() == 10000);
  CHECK(data.classes == std::vector<std::string>{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
  CHECK(data.tokenizer->vocabulary_size() == 2 + 17);  // <unk>, <eos>; 10 digits, 4 operators, ] ( )
}

TEST_CASE("wikitext-2: pieces give the text back") {
  TextSourceConfig config;
  config.train = {real_file("wikitext-2/wiki.valid.tokens")};
  config.test = {real_file("wikitext-2/wiki.test.tokens")};
  if (config.train[0].empty() || config.test[0].empty()) return;
  SentencePieceTokenizerConfig pieces;
  pieces.vocabulary_size = 2000;
  config.tokenizer = pieces;
  const TextData data = loaded(config);
  CHECK(data.tokenizer->decode(data.test.tokens.to_vector()) == read_text_file(config.test[0]));
  CHECK(data.test.bytes == 1256449);
  CHECK(data.test.size() < 1256449 * 2 / 5);
}
