#include "data/files/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <termios.h>

#include <cstdlib>
#include <sstream>

#include "core/base/error.hpp"
#include "support.hpp"

namespace capstan {
namespace {

/// Standard input is another descriptor while it lives.
class InputFrom {
 public:
  explicit InputFrom(int descriptor) : before_(dup(STDIN_FILENO)) {
    REQUIRE(dup2(descriptor, STDIN_FILENO) == STDIN_FILENO);
    close(descriptor);
  }
  ~InputFrom() {
    dup2(before_, STDIN_FILENO);
    close(before_);
  }
  InputFrom(const InputFrom&) = delete;
  InputFrom& operator=(const InputFrom&) = delete;

 private:
  int before_;
};

std::string content_of(const std::string& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

TEST_CASE("lines are read as std::getline reads them, but not without end") {
  const TemporaryFolder folder;
  const std::string zero("a\0b", 3), large(200000, 'x');
  for (const std::string& text :
       {std::string("\n"), std::string("a"), std::string("a\n\nb\r\n"), zero + "\n" + zero, large + "\n" + large,
        std::string(65535, 'y') + "\n", std::string(65536, 'y') + "\nz", std::string(65535, 'y') + "\n\n"}) {
    const std::string path = folder.write("text", text);
    TextReader in = TextReader::input(path);
    std::istringstream expected(text);
    std::string line;
    for (std::string wanted; std::getline(expected, wanted);) {
      REQUIRE(in.read_line(line));
      CHECK(line == wanted);
    }
    CHECK_FALSE(in.read_line(line));
    CHECK(in.at_end());
  }
  TextReader in(folder.write("large", large));
  std::string line;
  CHECK(contains(message_of<Error>([&] { in.read_line(line, 90000); }), "large: a line has more than 90000 bytes"));
}

TEST_CASE("the rest of a text follows its lines, and is bounded") {
  const TemporaryFolder folder;
  const std::string rest = std::string(1'200'000, 'a') + "\nb" + std::string(1, '\0') + "c";
  const std::string path = folder.write("text", "first\n" + rest);
  TextReader in(path);
  std::string line;
  CHECK(in.read_line(line));
  CHECK(in.read_rest() == rest);
  CHECK(in.read_rest().empty());
  TextReader bounded(path, 1);
  const std::string message = message_of<Error>([&] { bounded.read_rest(); });
  CHECK_MESSAGE(contains(message, path + ": holds more than 1 million bytes; give less at a time"), message);
}

TEST_CASE("an error while reading is not the end of a text") {
  // A file whose first byte cannot be read.
  CHECK(
      contains(message_of<Error>([] { TextReader("/proc/self/mem").read_rest(); }), "/proc/self/mem: reading failed"));
  {
    const InputFrom folder(open("/", O_RDONLY));
    TextReader in = TextReader::input("-");
    CHECK(contains(message_of<Error>([&] { in.read_rest(); }), "stdin: reading failed: Is a directory"));
  }
  // A terminal whose other side goes away: what was written is read, then there is an error.
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(master >= 0);
  REQUIRE(grantpt(master) == 0);
  REQUIRE(unlockpt(master) == 0);
  const int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
  REQUIRE(slave >= 0);
  termios raw{};
  cfmakeraw(&raw);
  tcsetattr(slave, TCSANOW, &raw);
  REQUIRE(write(slave, "one\ntwo", 7) == 7);
  close(slave);
  const InputFrom terminal(master);
  TextReader in = TextReader::input("-");
  std::string line;
  CHECK(in.read_line(line));
  CHECK(line == "one");
  CHECK(contains(message_of<Error>([&] { in.read_line(line); }), "stdin: reading failed: Input/output error"));
}

TEST_CASE("standard input that does not wait is waited for, and is idle between its lines") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  REQUIRE(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
  const InputFrom pipe(ends[0]);
  TextReader in = TextReader::input("-");
  CHECK(in.idle());
  REQUIRE(write(ends[1], "one\ntwo\nthr", 11) == 11);
  CHECK_FALSE(in.idle());
  std::string line;
  CHECK(in.read_line(line));
  CHECK_FALSE(in.idle());
  CHECK(in.read_line(line));
  CHECK(in.idle());  // only a part of a line is there
  std::system(fmt::format("(sleep 0.1; echo ee) >/proc/{}/fd/{} &", getpid(), ends[1]).c_str());
  CHECK(in.read_line(line));
  CHECK(line == "three");
  close(ends[1]);
  CHECK_FALSE(in.read_line(line));
  CHECK_FALSE(in.idle());
}

TEST_CASE("a gzip file of several members is read to its end, or its damage is told") {
  const TemporaryFolder folder;
  const std::string first = content_of(write_gzip(folder, "first.gz", "one\n")),
                    second = content_of(write_gzip(folder, "second.gz", "two\n"));
  const auto text_of = [&](const std::string& packed) {
    return TextReader(folder.write("several.gz", packed)).read_rest();
  };
  CHECK(text_of(first + second) == "one\ntwo\n");
  CHECK(text_of(first + second + std::string(512, '\0')) == "one\ntwo\n");
  for (size_t size = 1; size < second.size(); ++size) {
    CAPTURE(size);
    CHECK(contains(message_of<Error>([&] { text_of(first + second.substr(0, size)); }), "is truncated"));
  }
  CHECK(contains(message_of<Error>([&] { text_of(first + "more"); }), "damaged gzip file"));
  // What precedes the damage is given out.
  TextReader in(folder.write("several.gz", first + second.substr(0, 12)));
  std::string line;
  CHECK(in.read_line(line));
  CHECK(line == "one");
  CHECK_THROWS_AS(in.read_line(line), Error);
}

TEST_CASE("an input is a file, or standard input") {
  const TemporaryFolder folder;
  REQUIRE(mkfifo(folder.path("pipe").c_str(), 0600) == 0);
  for (const auto& [path, what] : {std::make_pair(folder.path("pipe"), "is a pipe"),
                                   {folder.path(), "is a folder"},
                                   {std::string("/dev/zero"), "is a device"}}) {
    const std::string message = message_of<Error>([&, &file = path] { TextReader::input(file); });
    CHECK_MESSAGE(message == fmt::format("{}: {}; give a file, or - for standard input", path, what), message);
  }
  CHECK(contains(message_of<Error>([&] { TextReader::input(write_gzip(folder, "empty.gz", "")); }), "is empty"));
  CHECK(TextReader::input(write_zstd(folder, "text.zst", "text")).read_rest() == "text");
}

TEST_CASE("a file that is shortened while it is read is an error, not its end") {
  const TemporaryFolder folder;
  std::string noise;  // that gzip cannot make small
  for (uint32_t i = 0, x = 1; i < 300000; ++i) noise += static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
  for (const std::string& path : {folder.write("a.txt", noise), write_gzip(folder, "a.gz", noise)}) {
    TextReader reader(path);
    REQUIRE(!reader.piece().empty());
    std::filesystem::resize_file(path, 200000);
    CHECK(contains(message_of<Error>([&] { reader.read_rest(); }), path + ": was shortened while it was read, from"));
  }
}

}  // namespace
}  // namespace capstan
