// Files are written by core/io alone, so its rule holds for all of them: regular files only, synced before they are
// named.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "support/source_dir.hpp"

namespace capstan::testing {
namespace {

namespace fs = std::filesystem;

/// Lines of the product's sources that write files in another way, as file:line: what.
std::vector<std::string> other_writers(const fs::path& root) {
  const std::vector<std::string> calls = {"ofstream", "file_sink_", "O_CREAT", "::rename(", "mkstemp", "fopen("};
  const std::vector<std::string> allowed = {"core/io/file.cpp", "train/records/reporter.cpp"};
  std::vector<std::string> found;
  for (const char* const top : {"core", "nn", "data", "models", "train", "run", "apps"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / top)) {
      const std::string name = entry.path().lexically_relative(root).generic_string();
      if (!entry.is_regular_file() || std::find(allowed.begin(), allowed.end(), name) != allowed.end()) continue;
      std::ifstream file(entry.path());
      int number = 0;
      for (std::string line; std::getline(file, line);) {
        ++number;
        for (const std::string& call : calls)
          if (line.find(call) != std::string::npos && line.find("\"rb\"") == std::string::npos)
            found.push_back(fmt::format("{}:{}: {}", name, number, call));
      }
    }
  }
  return found;
}

TEST_CASE("files are written by core/io alone") {
  for (const std::string& line : other_writers(source_path(""))) FAIL_CHECK(line);
}

}  // namespace
}  // namespace capstan::testing
