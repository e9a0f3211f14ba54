// Whole files and their hash.
#include "core/io/file.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/base/error.hpp"
#include "core/io/hash.hpp"

namespace capstan {
namespace {

TEST_CASE("whole files: what is written is read, and a file is replaced in full") {
  const auto folder = std::filesystem::temp_directory_path() / ("capstan-file-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "file").string(), content("one\0two\n", 8);
  write_file(path, content);
  CHECK(read_file(path) == content);
  replace_file(path, "three");
  CHECK(read_file(path) == "three");
  CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
  write_file(path, "");
  CHECK(read_file(path).empty());
  CHECK_THROWS_WITH_AS(read_file(folder.string()), ("cannot read " + folder.string() + ": it is not a file").c_str(),
                       Error);
  std::filesystem::remove_all(folder);
  CHECK_THROWS_WITH_AS(read_file(path),
                       ("cannot read " + path + ": No such file or directory (check the path)").c_str(), Error);
}

TEST_CASE("the hash is XXH3-128 of all bytes, whatever their pieces") {
  CHECK(hash_hex("") == "99aa06d3014798d86001c324468d497f");  // published by xxHash
  Hash hash;
  hash.add("cap");
  hash.add("stan", 4);
  CHECK(hash.hex() == hash_hex("capstan"));
  CHECK(hash.hex() != hash_hex("capstam"));
}

}  // namespace
}  // namespace capstan
