// docs/reliability.md: every promise links to a test case that exists.
#include <doctest/doctest.h>

#include <fstream>
#include <regex>
#include <sstream>
#include <string>

#include "support/source_dir.hpp"

namespace capstan::testing {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(source_path(path));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("the promises of docs/reliability.md link to files of test cases") {
  const std::string page = content("docs/reliability.md");
  const std::regex link(R"(\]\(\.\./(tests/[^)]+)\))");
  int links = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at, ++links) {
    INFO(at->str(1));
    CHECK(content(at->str(1)).find("TEST_CASE") != std::string::npos);
  }
  CHECK(links > 25);
}

TEST_CASE("every promise in docs/reliability.md, a row of a table, has a test") {
  std::istringstream page(content("docs/reliability.md"));
  bool table = false, limits = false;
  int promises = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("## ", 0) == 0) limits = line == "## Limits";
    const bool row = table && line.rfind("| ", 0) == 0, item = !limits && line.rfind("- ", 0) == 0;
    table = line.find("| test |") != std::string::npos || (table && line.rfind('|', 0) == 0);
    if (!row && !item) continue;
    INFO(line);
    CHECK(line.find("](../tests/") != std::string::npos);
    ++promises;
  }
  CHECK(promises > 18);
}

}  // namespace
}  // namespace capstan::testing
