// Text that is tokenised to the disk is the text in memory; its tokens are found again by what they depend on.

#include "core/base/error.hpp"
#include "data/text/text_loading.hpp"
#include "data/tokenizers/texts.hpp"
#include "token_cache_support.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

/// The text in memory, in files, when its tokens are made for the cache, and when they are found there.
TextData same_in_all_ways(const TextSourceConfig& config) {
  TextData memory = loaded(in_memory(config));
  for (const TextData& data : {load_in_files(in_memory(config)), load_in_files(config), loaded(config)})
    check_equal(memory, data);
  return memory;
}

}  // namespace

TEST_CASE("the cache gives what memory gives: every tokenizer, packing and split, bad lines left out") {
  for (const TokenizerConfig& tokenizer : tokenizers())
    for (const TextSplit split : {TextSplit::tail, TextSplit::by_file}) {
      const TemporaryFolder folder;
      std::string bad_lines = story(5000, 2) + "\n\xff\nfine\n" + story(3000, 3) + "\nbad \xc3\n\xc3\xa9";
      folder.write("text/large.txt", story(text_block + 70000));
      folder.write("text/bad.txt", bad_lines);
      write_gzip(folder, "text/packed.txt.gz", story(60000, 4));
      write_gzip(folder, "text/bad.gz", bad_lines);
      write_zstd(folder, "text/packed.txt.zst", story(50000, 5));
      folder.write("text/small.txt", "x");
      TextSourceConfig config = cached(folder, {folder.path("text")});
      config.tokenizer = tokenizer;
      config.split = split;
      config.test_fraction = 0.05;
      config.on_error = OnError::skip;
      Told first, second;
      const TextData memory = loaded(in_memory(config)), made = loaded(config, nullptr, first.log());
      check_equal(memory, made);
      check_equal(memory, loaded(config, nullptr, second.log()));
      check_equal(memory, loaded(config, memory.tokenizer, second.log()));
      CHECK(memory.left_out.empty() == !memory.tokenizer->needs_utf8());
      CHECK(first.have("data: tokenising the text, once, into " + *config.cache));
      CHECK_FALSE(second.have("tokenising"));
      CHECK(second.have("data: tokens from " + *config.cache));
      CHECK_FALSE(fs::exists(fs::path(file_called(folder, "index.json")).parent_path().parent_path() / ".partial"));
    }
}

TEST_CASE("given validation and test files are in the cache as well") {
  const TemporaryFolder folder;
  TextSourceConfig config = cached(folder, {folder.write("train", story(9000))});
  config.valid = {write_zstd(folder, "valid.zst", story(700, 2))};
  config.test = {folder.write("test", story(800, 3))};
  config.tokenizer = WordTokenizerConfig{};
  const TextData memory = same_in_all_ways(config);
}

TEST_CASE("packed files of training, validation and test text are kept apart, and so are copies without bad lines") {
  for (const size_t held_out : {size_t{700}, size_t{30000}})  // shorter and longer than the training text
    for (const bool bad : {false, true}) {
      const TemporaryFolder folder;
      const auto write = [&](const std::string& name, size_t bytes, int seed) {
        const std::string text = story(bytes, seed) + (bad ? "\n\xff\nfine\n" : "\n");
        return bad ? folder.write(name, text) : write_gzip(folder, name + ".gz", text);
      };
      TextSourceConfig config = cached(folder, {write("train", 9000, 1)});
      config.valid = {write("valid", held_out, 2)};
      config.test = {write("test", held_out + 50, 3)};
      config.on_error = OnError::skip;
      config.tokenizer = WordTokenizerConfig{};
      const TextData memory = same_in_all_ways(config);
    }
}

TEST_CASE("documents and weighted sources are in the cache as they are in memory") {
  const std::vector<DocumentsConfig> kinds = {NoDocumentsConfig{}, FileDocumentsConfig{}, LineDocumentsConfig{},
                                              BlankLineDocumentsConfig{}, MarkerDocumentsConfig{"<end>"}};
  const TemporaryFolder folder;
  std::string documents;
  for (int i = 0; documents.size() < text_block + 20000; ++i)
    documents += story(static_cast<size_t>(900 + i), i) + (i % 3 == 0 ? "\n \n" : i % 3 == 1 ? "<end>" : "\n<end>\n");
  const std::string large = folder.write("large.txt", documents);
  folder.write("more/b.txt", story(3000, 7) + "<end>");
  write_zstd(folder, "more/a.txt.zst", "<end>" + story(2000, 8));
  for (const DocumentsConfig& kind : kinds)
    for (const TokenizerConfig& tokenizer : tokenizers())
      for (const bool weighted : {false, true}) {
        TextSourceConfig config = cached(folder, {large, folder.path("more")});
        config.tokenizer = tokenizer;
        config.documents = kind;
        if (weighted) config.weights = {1, 3};
        if (std::holds_alternative<FileDocumentsConfig>(kind)) config.split = TextSplit::by_file;
        const TextData memory = same_in_all_ways(config);
        CHECK(memory.train.sources.size() == (weighted ? 2 : 0));
        if (has_documents(kind)) CHECK(memory.train.tokens[memory.train.size() - 1] == *memory.train.end_of_document);
      }
}

TEST_CASE("tokens take as many bytes as the vocabulary needs") {
  const TemporaryFolder folder;
  struct Row {
    int words, width;
  };
  for (const Row& row : {Row{100, 1}, Row{300, 2}, Row{66000, 4}}) {
    std::string text;
    for (int i = 0; i < row.words; ++i) text += "w" + std::to_string(i) + " ";
    const TemporaryFolder apart;
    TextSourceConfig config = cached(apart, {folder.write("text" + std::to_string(row.words), text)});
    config.tokenizer = WordTokenizerConfig{};
    config.valid_fraction = 0;
    const TextData data = loaded(config);
    check_equal(loaded(in_memory(config)), data);
    CHECK(fs::file_size(file_called(apart, "train.tokens")) == static_cast<size_t>(row.words * row.width));
  }
}

TEST_CASE("without a folder, only large text is kept, of which packed files count four times") {
  const TemporaryFolder folder;
  TextSourceConfig config;
  CHECK(config.cache_of(64'000'000) == "");
  CHECK(config.cache_of(64'000'001) == "runs/.cache");
  config.cache = "here";
  CHECK(config.cache_of(1) == "here");
  config.cache = "";
  CHECK(config.cache_of(64'000'001) == "");
  const std::string packed = write_zstd(folder, "packed.zst", story(3000));
  config.train = {packed, folder.write("text", story(3000))};
  CHECK(size_of_text(lists_of(config)) == 4 * fs::file_size(packed) + fs::file_size(folder.path("text")));
}

TEST_CASE("changed text has other tokens, whatever its date; text that was only touched is not tokenised again") {
  const TemporaryFolder folder;
  const std::string path = folder.write("text", story(3000));
  const auto old_date = fs::last_write_time(path) - std::chrono::hours(1);
  fs::last_write_time(path, old_date);
  const TextSourceConfig config = cached(folder, {path});
  loaded(config);
  const auto before = kept_files(folder);
  CHECK(before.size() == 4);  // an index and three rows

  fs::last_write_time(path, old_date - std::chrono::hours(1));
  Told touched, changed;
  loaded(config, nullptr, touched.log());
  CHECK_FALSE(touched.have("once"));

  folder.write("text", story(3000, 2));
  fs::last_write_time(path, old_date);
  const TextData data = loaded(config, nullptr, changed.log());
  CHECK(changed.have("once"));
  check_equal(loaded(in_memory(config)), data);
  CHECK(kept_files(folder).size() == 8);
}

TEST_CASE("what the tokens depend on has tokens of its own") {
  const TemporaryFolder folder;
  folder.write("text/a", story(3000));
  folder.write("text/b", story(2000));
  const TextSourceConfig base = cached(folder, {folder.path("text")});
  loaded(base);
  const std::vector<std::function<void(TextSourceConfig&)>> changes = {
      [](auto& c) { c.valid_fraction = 0.2; },
      [](auto& c) { c.test_fraction = 0.2; },
      [](auto& c) { c.split = TextSplit::by_file; },
      [](auto& c) { c.on_error = OnError::skip; },
      [](auto& c) { c.tokenizer = CharTokenizerConfig{}; },
      [](auto& c) { c.exclude = {"b"}; },
      [](auto& c) { c.documents = LineDocumentsConfig{}; },
      [](auto& c) { c.documents = MarkerDocumentsConfig{"one"}; },
      [](auto& c) { c.documents = MarkerDocumentsConfig{"two"}; },
      [&](auto& c) { c.valid = {folder.path("text/b")}; },
      [&](auto& c) { c.test = {folder.path("text/b")}; }};
  for (const auto& change : changes) {
    TextSourceConfig config = base;
    change(config);
    Told lines;
    check_equal(loaded(in_memory(config)), loaded(config, nullptr, lines.log()));
    CHECK(lines.have("once"));
  }
  TextSourceConfig same = base;
  same.sequence_length = 7;
  same.windows = WindowRule::random;
  Told lines;
  loaded(same, nullptr, lines.log());
  CHECK_FALSE(lines.have("once"));
}
