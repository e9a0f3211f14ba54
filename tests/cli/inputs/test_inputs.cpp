// The texts that commands are given: files, compressed or not, standard input, and what is neither.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <zlib.h>
#include <zstd.h>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

/// Commands without the name of their input.
const std::vector<Words> commands{{"predict", "runs/classifier"},
                                  {"predict", "runs/classifier", "--input", "jsonl"},
                                  {"score", "runs/lm"},
                                  {"embed", "runs/classifier"},
                                  {"generate", "runs/lm", "-n", "3", "--prompt-file"}};

TEST_CASE_FIXTURE(Trained, "every command reads compressed texts as the texts that they hold") {
  for (const Words& command : commands) {
    CAPTURE(command.front());
    const bool jsonl = command.back() == "jsonl";
    const std::string text = jsonl ? "{\"text\": \"a day\"}\n{\"text\": \"a night\"}\n" : "a day\na night\n";
    place.write("texts", text);
    const gzFile file = gzopen((place / "texts.gz").c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
    place.write("texts.zst", packed);
    const std::string plain = succeed(place, command + "texts").out;
    CHECK(succeed(place, command + "-", text).out == plain);
    for (const char* const name : {"texts.gz", "texts.zst"}) CHECK(succeed(place, command + name).out == plain);
    place.write("cut.gz", place.read("texts.gz").substr(0, 20));
    check_refused(place, "cut", command + "cut.gz", "cut.gz: the gzip file is truncated");
  }
}

TEST_CASE_FIXTURE(Trained, "score of no text warns and gives no figure") {
  const Outcome outcome = succeed(place, "score runs/lm");
  CHECK(contains(outcome.err, "warning: there is no text: nothing was scored"));
  CHECK_FALSE(contains(outcome.err, "perplexity"));
}

TEST_CASE_FIXTURE(Trained, "every command refuses what has no end, and tells an error from the end") {
  REQUIRE(mkfifo((place / "pipe").c_str(), 0600) == 0);
  Words lines{"$capstan generate runs/lm -n 3 --interactive"};
  for (const Words& command : commands) {
    const bool reads_folders = command.size() == 2 && command.back() == "runs/classifier";
    for (const std::string& name : {std::string("pipe"), std::string("/dev/zero"), std::string("runs")})
      if (name != "runs" || !reads_folders)
        check_refused(place, name, command + name, {name + ": is a ", "- for standard input"});
    check_refused(place, "a file", command + "/proc/self/mem", "/proc/self/mem: reading failed");
    lines.push_back("$capstan");
    for (const std::string& word : command + "-") lines.back() += " " + word;
  }
  for (const std::string& line : lines)
    for (const char* const input : {"/proc/$$/mem", "runs"}) {  // the shell's memory, which it keeps: an error at once
      const Outcome outcome = run_shell(place, line + " <" + input + " || exit $?");
      CAPTURE(line);
      CHECK(outcome.code == 1);
      CHECK_MESSAGE(contains(outcome.err, "stdin: reading failed"), outcome.err);
    }
}

}  // namespace
}  // namespace capstan::testing
