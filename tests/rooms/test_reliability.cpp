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

TEST_CASE("the promises of docs/reliability.md link to test cases that exist") {
  const std::string page = content("docs/reliability.md");
  const std::regex link(R"(\[([^\]]+)\]\(\.\./(tests/[^)]+)\))");
  int links = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), link), end; at != end; ++at, ++links) {
    const std::string title = at->str(1), file = at->str(2);
    INFO(file, ": ", title);
    CHECK(content(file).find("TEST_CASE(\"" + title + "\")") != std::string::npos);
  }
  CHECK(links > 60);
}

TEST_CASE("every row of promises in docs/reliability.md has a test") {
  std::istringstream page(content("docs/reliability.md"));
  bool promises = false;
  int rows = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| ", 0) != 0) {
      promises = promises && !line.empty() && line.front() == '|';
    } else if (line.find("| test |") != std::string::npos) {
      promises = true;
    } else if (promises) {
      INFO(line);
      CHECK(line.find("](../tests/") != std::string::npos);
      ++rows;
    }
  }
  CHECK(rows > 50);
}

}  // namespace
}  // namespace capstan::testing
