// Whole files and their hash.
#include "core/io/file.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/io/hash.hpp"
#include "core/io/mapped_file.hpp"
#include "tests/support/temporary_folder.hpp"

namespace capstan {

TEST_CASE("whole files: what is written is read, and a file is replaced in full") {
  const TemporaryFolder folder;
  const std::string path = folder / "file", content("one\0two\n", 8);
  write_file(path, content);
  CHECK(read_file(path) == content);
  replace_file(path, "three");
  CHECK(read_file(path) == "three");
  CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
  write_file(path, "");
  CHECK(read_file(path).empty());
  CHECK_THROWS_WITH_AS(read_file(folder.path()), (folder.path() + ": is a folder; a file is needed here").c_str(),
                       Error);
  CHECK_THROWS_WITH_AS(MappedFile{folder.path()}, (folder.path() + ": is a folder; a file is needed here").c_str(),
                       Error);
  std::filesystem::remove(path);
  CHECK_THROWS_WITH_AS(read_file(path), doctest::Contains((path + ": no such file; check the path").c_str()), Error);
}

TEST_CASE("what others put under a guessable name of a temporary file is not written to") {
  const TemporaryFolder folder;
  const std::string path = folder / "file", victim = folder / "victim";
  write_file(victim, "theirs");
  std::filesystem::create_hard_link(victim, fmt::format("{}.{}.tmp", path, getpid()));
  replace_file(path, "mine");
  CHECK(read_file(path) == "mine");
  CHECK(read_file(victim) == "theirs");
}

TEST_CASE("a file is on the disk before it gets its name, and its name before the call returns") {
  const TemporaryFolder folder;
  std::vector<std::string> calls;
  set_file_hook([&](const char* call, const std::string&) { calls.push_back(call); });
  replace_file(folder / "file", "text");
  CHECK(calls == std::vector<std::string>{"create", "open", "write", "fsync", "close", "rename", "fsync folder"});
  calls.clear();
  make_folders(folder / "a/b/c");
  CHECK(calls == std::vector<std::string>{"mkdir", "fsync folder", "fsync folder", "fsync folder"});
  set_file_hook({});
}

TEST_CASE("only regular files are written or replaced, and nothing waits for a pipe") {
  const TemporaryFolder folder;
  write_file(folder / "file", "mine");
  std::filesystem::create_symlink("file", folder / "link");
  std::filesystem::create_symlink("absent", folder / "dangling");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  std::filesystem::create_directory(folder / "folder");
  for (const auto& [name, kind] : std::vector<std::pair<std::string, std::string>>{
           {"link", "a symbolic link"}, {"dangling", "a symbolic link"}, {"pipe", "a pipe"}, {"folder", "a folder"}}) {
    const std::string path = folder / name;
    const std::string message = "cannot write " + path + ": it is " + kind;
    CHECK_THROWS_WITH_AS(write_file(path, "x"), doctest::Contains(message.c_str()), Error);
    CHECK_THROWS_WITH_AS(replace_file(path, "x"), doctest::Contains(message.c_str()), Error);
    CHECK_THROWS_WITH_AS(FileLock{path}, doctest::Contains(message.c_str()), Error);
    CHECK_THROWS_WITH_AS(truncate_file(path, 0), doctest::Contains(message.c_str()), Error);
  }
  if (mknod((folder / "device").c_str(), S_IFCHR | 0600, makedev(1, 7)) == 0) {  // as /dev/full
    CHECK_THROWS_WITH_AS(replace_file(folder / "device", "x"), doctest::Contains("it is a device"), Error);
    CHECK(std::filesystem::is_character_file(folder / "device"));
  } else {
    MESSAGE("skipped: a device, which only root can make");
  }
  CHECK(read_file(folder / "file") == "mine");
  CHECK_THROWS_WITH_AS(read_file(folder / "pipe"), doctest::Contains("is a pipe; a file is needed here"), Error);
  CHECK_THROWS_WITH_AS(MappedFile{folder / "pipe"}, doctest::Contains("is a pipe; a file is needed here"), Error);
}

TEST_CASE("a failed replacement leaves nothing behind, a killed one is cleared away") {
  const TemporaryFolder folder;
  const auto names = [&] {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder / ""))
      found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  };
  CHECK_THROWS(replace_file(folder / "file", [](const std::string& unfinished) {
    write_file(unfinished, "half");
    throw Error("full");
  }));
  CHECK(names().empty());
  const std::vector<std::string> own{"7.tmp", "chapter.12.tmp", "mine.tmp", "notes"};  // of a user
  for (const std::string& name : own) write_file(folder / name, "");
  write_file(folder / "config.yaml.00000000000000000123.tmp", "");
  remove_unfinished(folder / "");
  CHECK(names() == own);
}

TEST_CASE("a mapped file, empty or not, keeps no descriptor") {
  const TemporaryFolder folder;
  const auto open_descriptors = [] {
    const std::filesystem::directory_iterator descriptors("/proc/self/fd");
    return std::distance(begin(descriptors), end(descriptors));
  };
  for (const char* const text : {"", "text"}) {
    write_file(folder / "text", text);
    const auto before = open_descriptors();
    const MappedFile file(folder / "text");
    CHECK(file.size() == std::string(text).size());
    CHECK(open_descriptors() == before);
  }
}

TEST_CASE("a mapped file that another process shortens ends the process with its name, not by SIGBUS") {
  const TemporaryFolder folder;
  const std::string path = folder / "text";
  write_file(path, std::string(1 << 20, 'x'));
  const int log = ::open((folder / "log").c_str(), O_WRONLY | O_CREAT, 0600);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int number : {SIGBUS, SIGSEGV}) std::signal(number, SIG_DFL);  // not those of the test's program
    ::close(STDERR_FILENO);
    catch_mapping_faults();
    set_fault_log(log);
    const MappedFile other(folder / "log");
    const MappedFile file(path);
    if (::truncate(path.c_str(), 5000) != 0) _exit(3);
    volatile unsigned char seen = file.data()[4999];
    seen = file.data()[1 << 19];
    static_cast<void>(seen);
    _exit(4);
  }
  ::close(log);
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK(read_file(folder / "log").find("error: " + path + ": a part of this file can no longer be read") == 0);
}

TEST_CASE("the hash is XXH3-128 of all bytes, whatever their pieces") {
  CHECK(hash_hex("") == "99aa06d3014798d86001c324468d497f");  // published by xxHash
  Hash hash;
  hash.add("cap");
  hash.add("stan", 4);
  CHECK(hash.hex() == hash_hex("capstan"));
  CHECK(hash.hex() != hash_hex("capstam"));
}

}  // namespace capstan
