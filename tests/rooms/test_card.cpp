// The packages that Capstan is written with: docs/notes/xtensor.md says where each is, and there it is included.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "support/source_dir.hpp"

namespace capstan::testing {
namespace {

namespace fs = std::filesystem;

bool includes(const fs::path& file, const std::string& header) {
  std::ifstream source(file);
  for (std::string line; std::getline(source, line);)
    if (line.rfind("#include <" + header, 0) == 0) return true;
  return false;
}

/// Is `header` included by the file, or by a file in the folder?
bool included_in(const fs::path& place, const std::string& header) {
  if (fs::is_regular_file(place)) return includes(place, header);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(place))
    if (entry.is_regular_file() && includes(entry.path(), header)) return true;
  return false;
}

/// The places in the page's row of a package: | package | `place`, `place` | ...
std::vector<std::string> places_of(const std::string& package) {
  std::ifstream page(source_path("docs/notes/xtensor.md"));
  std::vector<std::string> places;
  const std::regex place("`([a-z/_.]+)`");
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| " + package + " |", 0) != 0) continue;
    const std::string cell = line.substr(package.size() + 5, line.find('|', package.size() + 5) - package.size() - 5);
    for (std::sregex_iterator found(cell.begin(), cell.end(), place), end; found != end; ++found)
      places.push_back((*found)[1].str());
  }
  return places;
}

TEST_CASE("each package is included where docs/notes/xtensor.md says, all but doctest by the product") {
  const std::vector<std::pair<std::string, std::string>> packages = {
      {"xtensor", "xtensor/"}, {"xtensor-blas", "xtensor-blas/"},
      {"OpenBLAS", "cblas.h"}, {"CLI11", "CLI/"},
      {"spdlog", "spdlog/"},   {"doctest", "doctest/"}};
  for (const auto& [package, header] : packages) {
    INFO(package);
    const std::vector<std::string> places = places_of(package);
    bool in_product = false;
    for (const std::string& place : places) {
      INFO(place);
      CHECK(included_in(source_path(place), header));
      in_product = in_product || place.rfind("tests", 0) != 0;
    }
    CHECK(in_product == (package != "doctest"));
    CHECK_FALSE(places.empty());
  }
}

}  // namespace
}  // namespace capstan::testing
