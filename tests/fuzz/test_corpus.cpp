// Every target reads its corpus, without a fuzzer: what was found once stays found.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "tests/fuzz/target.hpp"
#include "tests/support/source_dir.hpp"

using namespace capstan;
using namespace capstan::fuzz;
namespace fs = std::filesystem;

namespace {

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("every target reads its corpus: no signal, no exception but Error, no broken promise") {
  REQUIRE(targets().size() > 15);
  for (const Target& target : targets()) {
    const fs::path folder = source_path("tests/fuzz/corpus/" + target.name);
    REQUIRE_MESSAGE(fs::is_directory(folder), folder.string());
    int files = 0;
    for (const auto& file : fs::directory_iterator(folder)) {
      CAPTURE(file.path().string());
      CHECK_NOTHROW(run(target, content_of(file.path())));
      ++files;
    }
    CHECK_MESSAGE(files > 0, target.name);
    run(target, "");
  }
}

TEST_CASE("every folder of the corpus has its target") {
  std::set<std::string> names;
  for (const Target& target : targets()) CHECK_MESSAGE(names.insert(target.name).second, target.name);
  for (const auto& folder : fs::directory_iterator(source_path("tests/fuzz/corpus")))
    CHECK_MESSAGE(names.count(folder.path().filename().string()) == 1, folder.path().string());
}

TEST_CASE("mutators make inputs that their targets read") {
  std::mt19937 random(7);
  const Change change = [&](std::string& bytes, size_t most) {
    if (bytes.size() < most) bytes += static_cast<char>(random());
    if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<char>(random());
  };
  for (const Target& target : targets()) {
    if (target.mutate == nullptr) continue;
    for (const auto& file : fs::directory_iterator(source_path("tests/fuzz/corpus/" + target.name))) {
      std::string input = content_of(file.path());
      for (int i = 0; i < 20; ++i) {
        input = target.mutate(input, 4096, random, change);
        CHECK_NOTHROW(run(target, input));
      }
    }
  }
}
