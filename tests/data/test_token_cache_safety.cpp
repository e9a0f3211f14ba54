// Tokens on the disk when something goes wrong: damage, kills, full disks, two processes at once, text that changes.
#include <signal.h>
#include <sys/wait.h>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/machine/parallel.hpp"
#include "data/files/token_row.hpp"
#include "data/tokenizers/texts.hpp"
#include "token_cache_support.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

/// Runs `work` in a child process, which must not return to the tests. The process's number.
template <class Work>
pid_t in_child(const Work& work) {
  end_threads();
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

/// Writes an index with the fingerprint that is right for it and the tokens beside it.
void write_index(const fs::path& path, const std::string& json) {
  Fingerprint seal;
  seal.add(json);
  for (const char* const name : {"train.tokens", "valid.tokens", "test.tokens"})
    TokenRow::of_file(path.parent_path() / name, 1).for_blocks([&](const auto& tokens) { seal.add(tokens); });
  std::ofstream(path, std::ios::binary) << seal.hex() + "\n" + json;
}

}  // namespace

TEST_CASE("damaged tokens are noticed, told of and made again") {
  for (const char* name : {"train.tokens", "valid.tokens", "index.json", "tokenizer.*json"}) {
    const std::string ending = contains(name, "*") ? ".json" : name;
    for (const char* damage : {"shorter", "changed", "gone"}) {
      const TemporaryFolder folder;
      TextSourceConfig config = cached(folder, {folder.write("text", story(5000))});
      config.tokenizer = WordTokenizerConfig{};
      loaded(config);
      const TextData good = loaded(in_memory(config));
      const auto files = kept_files(folder);
      std::string path = file_called(folder, ending);
      if (contains(name, "*"))
        for (const auto& entry : fs::recursive_directory_iterator(*config.cache))
          if (entry.path().filename().string().rfind("tokenizer-", 0) == 0) path = entry.path().string();
      std::string content = content_of(path);
      if (std::string(damage) == "shorter") content.pop_back();
      if (std::string(damage) == "changed") content[content.size() / 2] ^= 1;
      std::ofstream(path, std::ios::binary) << content;
      if (std::string(damage) == "gone") fs::remove(path);
      Told lines;
      check_equal(good, loaded(config, nullptr, lines.log()));
      CHECK_MESSAGE(kept_files(folder) == files, name, " ", damage);
      CHECK_MESSAGE(lines.have("tokenising again") == !contains(name, "*"), name, " ", damage);
    }
  }
}

TEST_CASE("an index that names what is not there is made again, not followed") {
  const TemporaryFolder folder;
  const TextSourceConfig config = cached(folder, {folder.write("text", story(5000))});
  loaded(config);
  const TextData good = loaded(in_memory(config));
  const auto files = kept_files(folder);
  const std::string path = file_called(folder, "index.json"), sealed = content_of(path),
                    json = sealed.substr(sealed.find('\n') + 1);
  const auto changed = [&](const std::string& from, const std::string& to) {
    REQUIRE(contains(json, from));
    return std::string(json).replace(json.find(from), from.size(), to);
  };
  for (const std::string& index :
       {changed("\"sources\":[]", "\"sources\":[7]"), changed("\"bytes\":45", "\"bytes\":-45"),
        changed("\"bytes\":45", "\"bytes\":1e99"), changed("\"warnings\":[]", "\"warnings\":[7]"),
        changed("\"splits\"", "\"other\""), std::string("{"), std::string("[]"), std::string(80000, '[')}) {
    CAPTURE(index.substr(0, 300));
    write_index(path, index);
    Told lines;
    check_equal(good, loaded(config, nullptr, lines.log()));
    CHECK(lines.have("tokenising again"));
    CHECK(kept_files(folder) == files);
  }
}

TEST_CASE("ids that the vocabulary does not have are noticed, though their checksum is right") {
  const TemporaryFolder folder;
  TextSourceConfig config = cached(folder, {folder.write("text", "some words and some more words\n" + story(2000))});
  config.tokenizer = CharTokenizerConfig{};
  loaded(config);
  const TextData good = loaded(in_memory(config));
  std::string tokens = content_of(file_called(folder, "train.tokens"));
  tokens[tokens.size() / 2] = static_cast<char>(0xff);
  std::ofstream(file_called(folder, "train.tokens"), std::ios::binary) << tokens;
  const std::string path = file_called(folder, "index.json"), index = content_of(path);
  write_index(path, index.substr(index.find('\n') + 1));
  Told lines;
  check_equal(good, loaded(config, nullptr, lines.log()));
  CHECK(lines.have("holds the id 255"));
}

TEST_CASE("SIGKILL before any call to the file system leaves nothing half, and the next run makes the same files") {
  const TemporaryFolder folder;
  TextSourceConfig config =
      cached(folder, {folder.write("text", story(4000)), write_zstd(folder, "z.zst", story(3000, 2))});
  config.tokenizer = WordTokenizerConfig{};
  const TextData good = loaded(config);
  const auto files = kept_files(folder);
  CHECK(files.size() == 5);
  int kills = 0;
  for (bool killed = true; killed; kills += killed ? 1 : 0) {
    fs::remove_all(*config.cache);
    const pid_t child = in_child([&] {
      const AtCall at(kills, [] { raise(SIGKILL); });
      loaded(config);
    });
    const int status = end_of(child);
    killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    CHECK((killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)));
    for (const auto& file : kept_files(folder))
      if (!contains(file.first, ".partial"))
        CHECK_MESSAGE((files.count(file.first) == 1 && files.at(file.first) == file.second), file.first);
    check_equal(good, loaded(config));
    CHECK(kept_files(folder) == files);
  }
  CHECK(kills > 20);
}

TEST_CASE("a disk that is full, at any write, is an error and leaves nothing that looks finished") {
  const TemporaryFolder folder;
  const TextSourceConfig config = cached(folder, {folder.write("text", story(4000))});
  loaded(config);
  const auto files = kept_files(folder);
  int failures = 0;
  for (bool failed = true; failed; failures += failed ? 1 : 0) {
    fs::remove_all(*config.cache);
    {
      const AtCall at(failures, [] { throw Error("disk full"); });
      failed = message_of<Error>([&] { loaded(config); }) == "disk full";
    }
    for (const auto& file : kept_files(folder)) CHECK_MESSAGE((files.count(file.first) == 1), file.first);
    loaded(config);
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
    loaded(config);
  });
  REQUIRE(take(started[0]));
  const pid_t second = in_child([&] {
    bool waited = false;
    const TextData data = loaded(config, nullptr, [&](const std::string& line) {
      if (contains(line, "waiting for another process")) waited = give(waits[1]);
      if (contains(line, "once")) throw Error("tokenised twice");
    });
    if (!waited || data.train.size() == 0) throw Error("did not wait");
  });
  REQUIRE(take(waits[0]));
  CHECK(give(go[1]));
  CHECK(end_of(first) == 0);
  CHECK(end_of(second) == 0);
  check_equal(loaded(in_memory(config)), loaded(config));
  for (const int* ends : {started, go, waits}) {
    close(ends[0]);
    close(ends[1]);
  }
}

TEST_CASE("text that changes while it is tokenised is refused") {
  const TemporaryFolder folder;
  const TextSourceConfig config = cached(folder, {folder.write("text", story(4000))});
  const std::string message = message_of<Error>([&] {
    loaded(config, nullptr, [&](const std::string& line) {
      if (contains(line, "once")) std::ofstream(folder.path("text"), std::ios::app) << "more";
    });
  });
  CHECK_MESSAGE(contains(message, "the text changed while it was tokenised"), message);
  CHECK(kept_files(folder).empty());
  check_equal(loaded(in_memory(config)), loaded(config));
}

TEST_CASE("text that cannot be used is named the same way, and leaves nothing behind") {
  const TemporaryFolder folder;
  const std::string packed = write_gzip(folder, "whole.gz", story(100000));
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
    const std::string expected = message_of<Error>([&] { loaded(in_memory(config)); });
    CHECK(expected.size() > 20);
    CHECK(message_of<Error>([&] { loaded(config); }) == expected);
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
  const TextData data = loaded(config);
  REQUIRE(fs::exists(pieces.model));
  const auto files = kept_files(folder);
  check_equal(data, loaded(config));
  fs::remove(pieces.model);
  check_equal(data, loaded(config));
  CHECK(fs::exists(pieces.model));
  CHECK(kept_files(folder) == files);
}
