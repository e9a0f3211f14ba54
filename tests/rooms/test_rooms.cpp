// The arrows between rooms, and that a broken one is found.
#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "rooms/includes.hpp"
#include "tests/support/source_dir.hpp"

namespace capstan::testing {
namespace {

namespace fs = std::filesystem;

TEST_CASE("every include of the program follows tests/arrows.txt") {
  for (const std::string& finding : broken_rules(source_path(""), "tests/arrows.txt")) FAIL_CHECK(finding);
}

TEST_CASE("a comment that names a file of the program names one that is there") {
  const std::regex path("(^|[^/\\w])((core|nn|models|data|train|run|serve|apps)/[\\w/]+\\.[hc]pp)");
  for (const char* const room : {"core", "nn", "models", "data", "train", "run", "serve", "apps"})
    for (const auto& entry : fs::recursive_directory_iterator(source_path(room))) {
      if (entry.path().extension() != ".hpp" && entry.path().extension() != ".cpp") continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);)
        for (std::sregex_iterator found(line.begin(), line.end(), path), end; found != end; ++found) {
          INFO(entry.path().string() << ": " << line);
          CHECK(fs::exists(source_path((*found)[2].str())));
        }
    }
}

/// A tree of two files per room that breaks no rule, but for what a test adds.
class PlantedTree {
 public:
  PlantedTree() : root_(fs::temp_directory_path() / ("capstan-rooms-" + std::to_string(getpid()))) {
    plant("arrows.txt", "low/base:  # nothing\nlow/array: low/base\n\nhigh: low\n");
    plant("low/base/real.hpp", "#pragma once\n");
    plant("low/array/shape.hpp", "#include <vector>\n#include \"low/base/real.hpp\"\n");
    plant("low/array/shape.cpp", "#include \"low/array/shape.hpp\"\n");
    plant("high/main.cpp", "#include \"low/array/shape.hpp\"\n#include \"low/base/real.hpp\"\n");
  }
  ~PlantedTree() { fs::remove_all(root_); }
  PlantedTree(const PlantedTree&) = delete;
  PlantedTree& operator=(const PlantedTree&) = delete;

  void plant(const std::string& path, const std::string& content) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << content;
  }
  std::vector<std::string> findings() const { return broken_rules(root_, "arrows.txt"); }

 private:
  fs::path root_;
};

using Findings = std::vector<std::string>;

TEST_CASE("planted: a tree that follows its table has no finding") { CHECK(PlantedTree().findings() == Findings()); }

TEST_CASE("planted: an include without an arrow, up or sideways") {
  const PlantedTree tree;
  tree.plant("low/base/error.hpp", "#pragma once\n\n  #  include \"low/array/shape.hpp\"  // to print it\n");
  tree.plant("low/base/up.cpp", "#include \"high/run.hpp\"\n");
  tree.plant("high/run.hpp", "");
  CHECK(tree.findings() == Findings{"low/base/error.hpp:3: room low/base may not include room low/array (arrows.txt)",
                                    "low/base/up.cpp:1: room low/base may not include room high (arrows.txt)"});
}

TEST_CASE("planted: an include of a missing file") {
  const PlantedTree tree;
  tree.plant("high/run.cpp", "// no header\n#include \"low/base/reel.hpp\"\n");
  CHECK(tree.findings() == Findings{"high/run.cpp:2: there is no file low/base/reel.hpp"});
}

TEST_CASE("planted: circles of files, through sources and through others") {
  const PlantedTree tree;
  SUBCASE("two, each through its source") {
    tree.plant("high/a.hpp", "");
    tree.plant("high/b.hpp", "");
    tree.plant("high/a.cpp", "#include \"high/a.hpp\"\n#include \"high/b.hpp\"\n");
    tree.plant("high/b.cpp", "#include \"high/b.hpp\"\n#include \"high/a.hpp\"\n");
    CHECK(tree.findings() == Findings{"high/b.cpp:2: closes a circle: high/a -> high/b -> high/a"});
  }
  SUBCASE("three, without the fourth that leads to them") {
    tree.plant("high/a.hpp", "#include \"high/b.hpp\"\n");
    tree.plant("high/b.hpp", "#include \"high/c.hpp\"\n");
    tree.plant("high/c.hpp", "#include \"high/d.hpp\"\n");
    tree.plant("high/d.hpp", "#include \"high/b.hpp\"\n");
    CHECK(tree.findings() == Findings{"high/d.hpp:1: closes a circle: high/b -> high/c -> high/d -> high/b"});
  }
}

TEST_CASE("planted: a room of 31 subjects; a header and its source are one") {
  const PlantedTree tree;
  for (int i = 2; i <= 30; ++i) tree.plant("low/array/part" + std::to_string(i) + ".hpp", "");
  tree.plant("low/array/part2.cpp", "");
  CHECK(tree.findings() == Findings());
  tree.plant("low/array/part31.cpp", "");
  CHECK(tree.findings() == Findings{"low/array/part10.*:1: room low/array has 31 subjects, at most 30 are allowed"});
}

TEST_CASE("planted: two rooms with the same last name, other than kernels") {
  const PlantedTree tree;
  for (const std::string file : {"low/text/a.hpp", "high/text/b.hpp", "low/kernels/c.hpp", "high/kernels/d.hpp"})
    tree.plant(file, "");
  tree.plant("arrows.txt",
             "low/base:\nlow/array: low/base\nlow/text:\nlow/kernels:\nhigh/text:\nhigh/kernels:\nhigh: low\n");
  CHECK(tree.findings() == Findings{"arrows.txt:5: room high/text has the last name of room low/text"});
}

TEST_CASE("planted: files outside the rooms, and a table that is wrong") {
  const PlantedTree tree;
  tree.plant("low/loose.hpp", "");
  tree.plant("arrows.txt", "low/base: low/array\nlow/array: low/base\nhigh: low low\nlow/none: low\nhigh low\n");
  CHECK(tree.findings() == Findings{"arrows.txt:1: there is no room low/array above this line",
                                    "arrows.txt:4: expected `room: rooms`, with a folder that has no line yet",
                                    "arrows.txt:5: expected `room: rooms`, with a folder that has no line yet",
                                    "low/loose.hpp:1: is in no room of arrows.txt"});
}

}  // namespace
}  // namespace capstan::testing
