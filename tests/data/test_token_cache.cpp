#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/file.hpp"
#include "data/text_source.hpp"
#include "data/texts.hpp"
#include "support.hpp"

using namespace capstan;
namespace fs = std::filesystem;

namespace {

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Lines of words, numbers and accents; other ones for another seed.
std::string story(size_t bytes, int seed = 1) {
  static const std::vector<std::string> words = {"one", "two", "caf\xc3\xa9", "the", "tree", "\xe6\xbc\xa2", "of", "-"};
  std::string text;
  auto state = static_cast<uint32_t>(seed);
  for (int i = 1; text.size() < bytes; ++i) {
    state = state * 1664525 + 1013904223;
    text += words[state >> 29] + (i % 11 == 0 ? "\n" : " ");
    if (i % 50 == 0) text += std::to_string(state % 1000);
  }
  return text;
}

/// What the loading of a text told.
struct Told {
  std::vector<std::string> all;
  Tell tell() {
    return [this](const std::string& line) { all.push_back(line); };
  }
  bool have(const std::string& part) const {
    return std::any_of(all.begin(), all.end(), [&](const std::string& line) { return contains(line, part); });
  }
};

TextSourceConfig cached(const TemporaryFolder& folder, std::vector<std::string> train) {
  TextSourceConfig config;
  config.train = std::move(train);
  config.cache = folder.path("cache");
  config.cache_above_mb = 0;
  return config;
}

TextSourceConfig in_memory(TextSourceConfig config) {
  config.cache = "";
  return config;
}

/// The files of a cache that stay, by name; locks and notes about contents left out.
std::map<std::string, std::string> kept_files(const TemporaryFolder& folder) {
  std::map<std::string, std::string> files;
  const fs::path cache = folder.path("cache");
  if (!fs::exists(cache)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(cache)) {
    const std::string name = entry.path().lexically_relative(cache).string();
    if (entry.is_regular_file() && !contains(name, ".lock") && !contains(name, "contents"))
      files[name] = content_of(entry.path());
  }
  return files;
}

/// The file of a cache whose name ends so.
std::string file_called(const TemporaryFolder& folder, const std::string& ending) {
  for (const auto& entry : fs::recursive_directory_iterator(folder.path("cache")))
    if (entry.is_regular_file() && contains(entry.path().string() + "$", ending + "$")) return entry.path().string();
  FAIL("no file ", ending);
  return "";
}

void check_equal(const TextCorpus& a, const TextCorpus& b, bool held_out) {
  CHECK(a.tokens.to_vector() == b.tokens.to_vector());
  CHECK(a.end_of_document == b.end_of_document);
  REQUIRE(a.sources.size() == b.sources.size());
  for (size_t i = 0; i < a.sources.size(); ++i) {
    CHECK(a.sources[i].name == b.sources[i].name);
    CHECK(a.sources[i].weight == b.sources[i].weight);
    CHECK(a.sources[i].begin == b.sources[i].begin);
    CHECK(a.sources[i].end == b.sources[i].end);
  }
  REQUIRE(a.files.size() == b.files.size());
  for (size_t i = 0; i < a.files.size(); ++i) {
    CHECK(a.files[i].path == b.files[i].path);
    CHECK(a.files[i].name == b.files[i].name);
    CHECK(a.files[i].begin == b.files[i].begin);
    CHECK(a.files[i].end == b.files[i].end);
    CHECK(a.files[i].bytes == b.files[i].bytes);
    CHECK(a.files[i].source == b.files[i].source);
    if (held_out) CHECK(a.files[i].text() == b.files[i].text());
  }
}

void check_equal(const TextData& a, const TextData& b) {
  check_equal(a.train, b.train, false);
  check_equal(a.valid, b.valid, true);
  check_equal(a.test, b.test, true);
  CHECK(a.tokenizer->fingerprint() == b.tokenizer->fingerprint());
  CHECK(a.fingerprint == b.fingerprint);
  CHECK(a.left_out == b.left_out);
}

std::vector<TokenizerConfig> tokenizers() {
  CharTokenizerConfig chars;
  WordTokenizerConfig words;
  SentencePieceTokenizerConfig pieces;
  chars.normalisation.form = NormalForm::nfc;
  words.split = WordSplit::words;
  words.max_size = 400;
  pieces.vocabulary_size = 330;
  pieces.training_bytes = 20000;
  return {ByteTokenizerConfig{}, chars, words, pieces};
}

/// Runs `work` in a child process, which must not return to the tests. The process's number.
template <class Work>
pid_t in_child(const Work& work) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child != 0) return child;
  try {
    work();
    _exit(0);
  } catch (const std::exception&) {
    _exit(1);
  }
}

int end_of(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

/// Calls `at_call` before the n-th call that changes the file system, while it lives.
class AtCall {
 public:
  AtCall(int n, std::function<void()> at_call) {
    set_file_hook([n, at_call = std::move(at_call), count = 0](const char*, const std::string&) mutable {
      if (count++ == n) at_call();
    });
  }
  ~AtCall() { set_file_hook({}); }
};

}  // namespace

TEST_CASE("the cache gives what memory gives: every tokenizer, packing and split, bad lines left out") {
  for (const TokenizerConfig& tokenizer : tokenizers())
    for (const TextSplit split : {TextSplit::tail, TextSplit::by_file}) {
      const TemporaryFolder folder;
      std::string bad_lines = story(5000, 2) + "\n\xff\nfine\n" + story(3000, 3) + "\nbad \xc3\n\xc3\xa9";
      folder.write("text/large.txt", story(text_block + 70000));
      folder.write("text/bad.txt", bad_lines);
      folder.write_gzip("text/packed.txt.gz", story(60000, 4));
      folder.write_gzip("text/bad.gz", bad_lines);
      folder.write_zstd("text/packed.txt.zst", story(50000, 5));
      folder.write("text/small.txt", "x");
      TextSourceConfig config = cached(folder, {folder.path("text")});
      config.tokenizer = tokenizer;
      config.split = split;
      config.test_fraction = 0.05;
      config.on_error = OnError::skip;
      Told first, second;
      const TextData memory = load_text(in_memory(config)), made = load_text(config, nullptr, first.tell());
      check_equal(memory, made);
      check_equal(memory, load_text(config, nullptr, second.tell()));
      check_equal(memory, load_text(config, memory.tokenizer, second.tell()));
      CHECK(memory.left_out.empty() == !memory.tokenizer->needs_utf8());
      CHECK(first.have("data: tokenising the text, once, into " + config.cache));
      CHECK_FALSE(second.have("tokenising"));
      CHECK(second.have("data: tokens from " + config.cache));
      CHECK_FALSE(fs::exists(fs::path(file_called(folder, "index.json")).parent_path().parent_path() / ".partial"));
    }
}

TEST_CASE("given validation and test files are in the cache as well") {
  const TemporaryFolder folder;
  TextSourceConfig config = cached(folder, {folder.write("train", story(9000))});
  config.valid = {folder.write_zstd("valid.zst", story(700, 2))};
  config.test = {folder.write("test", story(800, 3))};
  config.tokenizer = WordTokenizerConfig{};
  const TextData memory = load_text(in_memory(config));
  for (int i = 0; i < 2; ++i) check_equal(memory, load_text(config));
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
  folder.write_zstd("more/a.txt.zst", "<end>" + story(2000, 8));
  for (const DocumentsConfig& kind : kinds)
    for (const TokenizerConfig& tokenizer : tokenizers())
      for (const bool weighted : {false, true}) {
        TextSourceConfig config = cached(folder, {large, folder.path("more")});
        config.tokenizer = tokenizer;
        config.documents = kind;
        if (weighted) config.weights = {1, 3};
        if (std::holds_alternative<FileDocumentsConfig>(kind)) config.split = TextSplit::by_file;
        const TextData memory = load_text(in_memory(config));
        for (int i = 0; i < 2; ++i) check_equal(memory, load_text(config));
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
    const TextData data = load_text(config);
    check_equal(load_text(in_memory(config)), data);
    CHECK(fs::file_size(file_called(apart, "train.tokens")) == static_cast<size_t>(row.words * row.width));
  }
}

TEST_CASE("text up to the limit stays in memory") {
  const TemporaryFolder folder;
  struct Row {
    std::string path;
    int64_t limit;
    bool large;
  };
  const std::string text = folder.write("text", std::string(1000001, 'a'));
  std::string letters;  // of which packing saves little
  for (uint32_t i = 1, state = 1; i < 600000; ++i)
    letters.push_back(static_cast<char>('A' + ((state = state * 1664525 + 1013904223) >> 26)));
  const std::string packed = folder.write_zstd("packed.zst", letters);
  CHECK(fs::file_size(packed) < 900000);
  for (const Row& row : {Row{text, 1, true}, Row{text, 2, false}, Row{packed, 1, true}, Row{packed, 64, false}}) {
    TextSourceConfig config = cached(folder, {row.path});
    config.cache_above_mb = row.limit;
    load_text(config);
    CHECK(fs::exists(config.cache) == row.large);
    fs::remove_all(config.cache);
  }
}

TEST_CASE("changed text has other tokens, whatever its date; text that was only touched is not tokenised again") {
  const TemporaryFolder folder;
  const std::string path = folder.write("text", story(3000));
  const auto old_date = fs::last_write_time(path) - std::chrono::hours(1);
  fs::last_write_time(path, old_date);
  const TextSourceConfig config = cached(folder, {path});
  load_text(config);
  const auto before = kept_files(folder);
  CHECK(before.size() == 4);  // an index and three rows

  fs::last_write_time(path, old_date - std::chrono::hours(1));
  Told touched, changed;
  load_text(config, nullptr, touched.tell());
  CHECK_FALSE(touched.have("once"));

  folder.write("text", story(3000, 2));
  fs::last_write_time(path, old_date);
  const TextData data = load_text(config, nullptr, changed.tell());
  CHECK(changed.have("once"));
  check_equal(load_text(in_memory(config)), data);
  CHECK(kept_files(folder).size() == 8);
}

TEST_CASE("text whose files have not been touched is not read again to know it") {
  const TemporaryFolder folder;
  const TextSourceConfig config = cached(folder, {folder.write("text", story(3000))});
  const fs::path notes = folder.path("cache/contents");
  load_text(config);
  CHECK_FALSE(fs::exists(notes));  // it may change again within this tick of its clock
  sleep(3);
  load_text(config);
  REQUIRE(fs::exists(notes));
  const fs::path note = fs::directory_iterator(notes)->path();
  Told noted, broken;
  std::ofstream(note) << std::string(32, '0');  // to see that it is believed
  load_text(config, nullptr, noted.tell());
  CHECK(noted.have("once"));
  std::ofstream(note) << std::string(32, '/');
  load_text(config, nullptr, broken.tell());
  CHECK_FALSE(broken.have("once"));
  CHECK(content_of(note).find('/') == std::string::npos);
}

TEST_CASE("what the tokens depend on has tokens of its own") {
  const TemporaryFolder folder;
  folder.write("text/a", story(3000));
  folder.write("text/b", story(2000));
  const TextSourceConfig base = cached(folder, {folder.path("text")});
  load_text(base);
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
    check_equal(load_text(in_memory(config)), load_text(config, nullptr, lines.tell()));
    CHECK(lines.have("once"));
  }
  TextSourceConfig same = base;
  same.sequence_length = 7;
  same.windows = WindowRule::random;
  Told lines;
  load_text(same, nullptr, lines.tell());
  CHECK_FALSE(lines.have("once"));
}

TEST_CASE("damaged tokens are noticed, told of and made again") {
  for (const char* name : {"train.tokens", "valid.tokens", "index.json", "tokenizer.*json"}) {
    const std::string ending = contains(name, "*") ? ".json" : name;
    for (const char* damage : {"shorter", "changed", "gone"}) {
      const TemporaryFolder folder;
      TextSourceConfig config = cached(folder, {folder.write("text", story(5000))});
      config.tokenizer = WordTokenizerConfig{};
      load_text(config);
      const TextData good = load_text(in_memory(config));
      const auto files = kept_files(folder);
      std::string path = file_called(folder, ending);
      if (contains(name, "*"))
        for (const auto& entry : fs::recursive_directory_iterator(config.cache))
          if (entry.path().filename().string().rfind("tokenizer-", 0) == 0) path = entry.path().string();
      std::string content = content_of(path);
      if (std::string(damage) == "shorter") content.pop_back();
      if (std::string(damage) == "changed") content[content.size() / 2] ^= 1;
      std::ofstream(path, std::ios::binary) << content;
      if (std::string(damage) == "gone") fs::remove(path);
      Told lines;
      check_equal(good, load_text(config, nullptr, lines.tell()));
      CHECK_MESSAGE(kept_files(folder) == files, name, " ", damage);
      CHECK_MESSAGE(lines.have("made again") == !contains(name, "*"), name, " ", damage);
    }
  }
}

TEST_CASE("SIGKILL before any call to the file system leaves nothing half, and the next run makes the same files") {
  const TemporaryFolder folder;
  TextSourceConfig config =
      cached(folder, {folder.write("text", story(4000)), folder.write_zstd("z.zst", story(3000, 2))});
  config.tokenizer = WordTokenizerConfig{};
  const TextData good = load_text(config);
  const auto files = kept_files(folder);
  CHECK(files.size() == 5);
  int kills = 0;
  for (bool killed = true; killed; kills += killed ? 1 : 0) {
    fs::remove_all(config.cache);
    const pid_t child = in_child([&] {
      const AtCall at(kills, [] { raise(SIGKILL); });
      load_text(config);
    });
    const int status = end_of(child);
    killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    CHECK((killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)));
    for (const auto& file : kept_files(folder))
      if (!contains(file.first, ".partial"))
        CHECK_MESSAGE((files.count(file.first) == 1 && files.at(file.first) == file.second), file.first);
    check_equal(good, load_text(config));
    CHECK(kept_files(folder) == files);
  }
  CHECK(kills > 20);
}

TEST_CASE("a disk that is full, at any write, is an error and leaves nothing that looks finished") {
  const TemporaryFolder folder;
  const TextSourceConfig config = cached(folder, {folder.write("text", story(4000))});
  load_text(config);
  const auto files = kept_files(folder);
  int failures = 0;
  for (bool failed = true; failed; failures += failed ? 1 : 0) {
    fs::remove_all(config.cache);
    {
      const AtCall at(failures, [] { throw Error("disk full"); });
      failed = message_of<Error>([&] { load_text(config); }) == "disk full";
    }
    for (const auto& file : kept_files(folder)) CHECK_MESSAGE((files.count(file.first) == 1), file.first);
    load_text(config);
    CHECK(kept_files(folder) == files);
  }
  CHECK(failures > 10);
}

TEST_CASE("a second process waits for the first one and takes its tokens") {
  const TemporaryFolder folder;
  const TextSourceConfig config = cached(folder, {folder.write("text", story(4000))});
  int started[2], go[2], waits[2];
  REQUIRE((pipe(started) == 0 && pipe(go) == 0 && pipe(waits) == 0));
  const auto give = [](int to) { return write(to, "x", 1) == 1; };
  const auto take = [](int from) {
    char byte = 0;
    return read(from, &byte, 1) == 1;
  };
  const pid_t first = in_child([&] {
    set_file_hook([&](const char* call, const std::string& path) {
      if (std::string(call) != "open" || !contains(path, "valid.tokens")) return;
      give(started[1]);
      take(go[0]);
    });
    load_text(config);
  });
  REQUIRE(take(started[0]));
  const pid_t second = in_child([&] {
    bool waited = false;
    const TextData data = load_text(config, nullptr, [&](const std::string& line) {
      if (contains(line, "waiting for another process")) waited = give(waits[1]);
      if (contains(line, "once")) throw Error("tokenised twice");
    });
    if (!waited || data.train.size() == 0) throw Error("did not wait");
  });
  REQUIRE(take(waits[0]));
  CHECK(give(go[1]));
  CHECK(end_of(first) == 0);
  CHECK(end_of(second) == 0);
  check_equal(load_text(in_memory(config)), load_text(config));
  for (const int* ends : {started, go, waits}) {
    close(ends[0]);
    close(ends[1]);
  }
}

TEST_CASE("text that changes while it is tokenised is refused") {
  const TemporaryFolder folder;
  const TextSourceConfig config = cached(folder, {folder.write("text", story(4000))});
  set_file_hook([&](const char* call, const std::string& path) {
    if (std::string(call) == "open" && contains(path, "valid.tokens"))
      std::ofstream(folder.path("text"), std::ios::app) << "more";
  });
  const std::string message = message_of<Error>([&] { load_text(config); });
  set_file_hook({});
  CHECK_MESSAGE(contains(message, "the text changed while it was tokenised"), message);
  CHECK(kept_files(folder).empty());
  check_equal(load_text(in_memory(config)), load_text(config));
}

TEST_CASE("text that cannot be used is named the same way, and leaves nothing behind") {
  const TemporaryFolder folder;
  const std::string packed = folder.write_gzip("whole.gz", story(100000));
  const std::vector<std::string> paths = {
      folder.write("bad.txt", "one\ntw\xff\n" + story(2000)),
      folder.write("empty.txt", ""),
      folder.write("cut.gz", content_of(packed).substr(0, fs::file_size(packed) / 2)),
      folder.write("plain.zst", "plain"),
      folder.write("word.txt", "word"),
      folder.write("blank.txt", "word    ")};
  for (const std::string& path : paths) {
    TextSourceConfig config = cached(folder, {path});
    config.tokenizer = WordTokenizerConfig{};
    const std::string expected = message_of<Error>([&] { load_text(in_memory(config)); });
    CHECK(expected.size() > 20);
    CHECK(message_of<Error>([&] { load_text(config); }) == expected);
    for (const auto& file : kept_files(folder)) CHECK_MESSAGE(contains(file.first, "tokenizer-"), file.first);
  }
}

TEST_CASE("a SentencePiece model that is learnt for a large text is put where the configuration says") {
  const TemporaryFolder folder;
  TextSourceConfig config = cached(folder, {folder.write("text", story(30000))});
  SentencePieceTokenizerConfig pieces;
  pieces.vocabulary_size = 330;
  pieces.model = folder.path("pieces.model");
  config.tokenizer = pieces;
  const TextData data = load_text(config);
  REQUIRE(fs::exists(pieces.model));
  const auto files = kept_files(folder);
  check_equal(data, load_text(config));
  fs::remove(pieces.model);
  check_equal(data, load_text(config));
  CHECK(fs::exists(pieces.model));
  CHECK(kept_files(folder) == files);
}
