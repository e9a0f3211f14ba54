#include "core/base/error.hpp"
#include "data/files/file_list.hpp"
#include "data/files/text_file.hpp"
#include "support.hpp"

#include <sys/stat.h>

using namespace capstan;

namespace {

std::vector<std::string> names(const std::vector<FoundFile>& files) {
  std::vector<std::string> result;
  for (const FoundFile& file : files) result.push_back(file.name);
  return result;
}

std::string front_of_file(const std::string& path, size_t bytes) {
  std::ifstream file(path, std::ios::binary);
  std::string content(bytes, '\0');
  file.read(content.data(), static_cast<std::streamsize>(bytes));
  return content;
}

}  // namespace

TEST_CASE("plain, gzip and zstd files give the same text") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(i * 7919) + "\n";
  CHECK(read_text_file(folder.write("a.txt", text)) == text);
  CHECK(read_text_file(write_gzip(folder, "a.txt.gz", text)) == text);
  CHECK(read_text_file(write_zstd(folder, "a.txt.zst", text)) == text);
  const std::string frame =
      front_of_file(folder.path("a.txt.zst"), std::filesystem::file_size(folder.path("a.txt.zst")));
  CHECK(read_text_file(folder.write("two.zst", frame + frame)) == text + text);
  for (const size_t size : {size_t{1}, size_t{1} << 18, (size_t{1} << 18) + 1, size_t{1} << 20})  // blocks of 256 KiB
    CHECK(read_text_file(write_zstd(folder, "b.zst", std::string(size, 'x'))).size() == size);
  CHECK(looks_binary(write_zstd(folder, "zero.zst", std::string(1 << 20, '\0'))));
  CHECK_FALSE(looks_binary(folder.path("a.txt.zst")));
}

TEST_CASE("files that cannot be read are named with what is wrong") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 100000; ++i) text += std::to_string(i * 7919) + "\n";
  const std::string packed = write_gzip(folder, "whole.gz", text);
  const auto packed_size = std::filesystem::file_size(packed);
  std::string flipped = front_of_file(packed, packed_size);
  flipped[packed_size / 2] = static_cast<char>(flipped[packed_size / 2] ^ 0x55);
  const std::string zstd = write_zstd(folder, "whole.zst", text);
  const auto zstd_size = std::filesystem::file_size(zstd);
  std::string flipped_zstd = front_of_file(zstd, zstd_size);
  for (size_t i = 0; i < 64; ++i)
    flipped_zstd[zstd_size / 2 + i] = static_cast<char>(flipped_zstd[zstd_size / 2 + i] ^ 0x55);
  struct Row {
    std::string path, message;
  };
  for (const Row& row :
       {Row{folder.path("none.txt"), "no such file"}, Row{folder.path(), "is a folder"},
        Row{folder.write("empty.txt", ""), "is empty"}, Row{write_gzip(folder, "empty.gz", ""), "is empty"},
        Row{folder.write("plain.gz", "plain text"), "is not a gzip file"},
        Row{folder.write("cut.gz", front_of_file(packed, packed_size / 2)), "is truncated"},
        Row{folder.write("cut8.gz", front_of_file(packed, packed_size - 4)), "is truncated"},
        Row{folder.write("flipped.gz", flipped), "damaged gzip file"},
        Row{write_zstd(folder, "empty.zst", ""), "is empty"}, Row{folder.write("none.zst", ""), "is empty"},
        Row{folder.write("plain.zst", "plain text"), "is not a zstd file"},
        Row{folder.write("tail.zst", front_of_file(zstd, zstd_size) + "plain text"), "damaged zstd file"},
        Row{folder.write("cut.zst", front_of_file(zstd, zstd_size / 2)), "is truncated"},
        Row{folder.write("cut1.zst", front_of_file(zstd, zstd_size - 1)), "is truncated"},
        Row{folder.write("flipped.zst", flipped_zstd), "damaged zstd file"}}) {
    const std::string message = message_of<Error>([&] { read_text_file(row.path); });
    check_contains(message, {row.path, row.message});
  }
}

TEST_CASE("compressed files that hold more than is allowed are refused, whatever their size") {
  const TemporaryFolder folder;
  const std::string large(3'000'000, 'x');
  for (const std::string& path : {write_gzip(folder, "bomb.gz", large), write_zstd(folder, "bomb.zst", large),
                                  folder.write("plain.txt", large)}) {
    const std::string message = message_of<Error>([&] { read_text_file(path, 2); });
    check_contains(message, {path + ": holds more than 2 million bytes"});
    CHECK(read_text_file(path, 3).size() == large.size());
    CHECK_FALSE(looks_binary(path));
  }
}

TEST_CASE("a zstd file cannot make the program reserve more than 128 MiB") {
  const TemporaryFolder folder;
  // A frame of three bytes that asks for a window of 2 GiB, and one of 128 MiB.
  const std::string block = std::string("\x19\0\0", 3) + "abc", frame("\x28\xb5\x2f\xfd\0", 5);
  const std::string message =
      message_of<Error>([&] { read_text_file(folder.write("wide.zst", frame + "\xa8" + block)); });
  check_contains(message, {"compressed with a window of more than 128 MiB", "zstd --long=27"});
  CHECK(read_text_file(folder.write("usual.zst", frame + "\x88" + block)) == "abc");
}

TEST_CASE("pipes and devices are refused where a text is expected") {
  const TemporaryFolder folder;
  const std::string pipe = folder.path("pipe.gz");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& path : {pipe, std::string("/dev/zero")})
    CHECK(contains(message_of<Error>([&] { read_text_file(path); }), "a file is needed here"));
}

TEST_CASE("lines end at \\n alone") {
  const std::string text =
      "a\r\n\nb\xc2\x85\xe2\x80\xa8"
      "c\rd\nlast";
  Lines lines(text);
  std::vector<std::pair<std::string, int64_t>> found;
  for (Line line; lines.next(line);) found.emplace_back(line.text, line.number);
  CHECK(found == std::vector<std::pair<std::string, int64_t>>{{"a", 1},
                                                              {"", 2},
                                                              {"b\xc2\x85\xe2\x80\xa8"
                                                               "c\rd",
                                                               3},
                                                              {"last", 4}});
}

TEST_CASE("patterns") {
  struct Row {
    const char *path, *pattern;
    bool matches;
  };
  for (const Row& row : {Row{"a.cpp", "*.cpp", true}, Row{"x/a.cpp", "*.cpp", false}, Row{"x/a.cpp", "**/*.cpp", true},
                         Row{"a.cpp", "**/*.cpp", true}, Row{"x/y/z/a.cpp", "x/**/a.*", true},
                         Row{"x/a.cpp", "x/**", true}, Row{"xa", "x?", true}, Row{"x1", "x[0-9]", true},
                         Row{"xa", "x[0-9]", false}, Row{"x/y", "x", false}, Row{"a/b/a/b/c", "**/a/**/b/**/c", true},
                         Row{"a/b/a/b/d", "**/a/**/b/**/c", false}, Row{"a", "/", false}, Row{"a", "", false}})
    CHECK_MESSAGE(matches_pattern(row.path, row.pattern) == row.matches, row.path, " ", row.pattern);
  std::string deep, pattern;  // backtracking would take for ever
  for (int i = 0; i < 200; ++i) {
    deep += "a/";
    pattern += "**/a/";
  }
  CHECK_FALSE(matches_pattern(deep + "b", pattern + "c"));
  std::string stars, name(255, 'a');
  for (int i = 0; i < 60; ++i) stars += "*a";
  CHECK_FALSE(matches_pattern(name, stars + "b"));
  CHECK(matches_pattern(name, stars));
}

TEST_CASE("folders and patterns give their text files, sorted, each once") {
  const TemporaryFolder folder;
  for (const char* name : {"b.md", "a.cpp", "src/deep/c.cpp", "src/d.hpp", "build/out.cpp", ".git/config", ".hidden"})
    folder.write(name, "text");
  folder.write("empty.md", "");
  folder.write("image.md", std::string("\x89PNG\0\0", 6));
  using Names = std::vector<std::string>;
  CHECK(names(list_files({folder.path()})) == Names{"a.cpp", "b.md", "build/out.cpp", "src/d.hpp", "src/deep/c.cpp"});
  CHECK(names(list_files({folder.path()}, {{"*.cpp"}, {"build"}})) == Names{"a.cpp", "src/deep/c.cpp"});
  CHECK(names(list_files({folder.path()}, {{"src/**/*.?pp"}, {}})) == Names{"src/d.hpp", "src/deep/c.cpp"});
  CHECK(names(list_files({folder.path("*.cpp")})) == Names{"a.cpp"});
  CHECK(names(list_files({folder.path("**/*.cpp")}, {{}, {"build"}})) == Names{"a.cpp", "src/deep/c.cpp"});
  CHECK(names(list_files({folder.path("a.cpp"), folder.path("./a.cpp"), folder.path("src/../a.cpp")})).size() == 1);
  CHECK(names(list_files({folder.path("a.cpp"), folder.path("*.cpp"), folder.path("image.md")})) ==
        Names{"a.cpp", "image.md"});
}

TEST_CASE("a list that names no text is an error") {
  const TemporaryFolder folder;
  folder.write("sub/image", std::string("\0\1", 2));
  struct Row {
    std::string path, message;
  };
  for (const Row& row :
       {Row{folder.path("none"), "no such file or folder"}, Row{folder.path("sub"), "the folder holds no text"},
        Row{folder.path("*.txt"), "no text file matches"}, Row{folder.path("gone/*.txt"), "there is no folder"}}) {
    const std::string message = message_of<Error>([&] { list_files({row.path}); });
    check_contains(message, {row.path, row.message});
  }
  CHECK(contains(message_of<Error>([&] { list_files({folder.path("sub")}, {{"*.md"}, {}}); }), "include and exclude"));
}
