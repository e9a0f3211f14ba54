// Files are written by core/io alone, so its rule holds for all of them: regular files only, synced before they are
// named. Standard output is written by the commands alone: the results of a program are its own to print. And functions
// whose bits depend on the CPU are in core alone (docs/notes/portable-build.md).
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

/// Lines of the sources in the folders `rooms` that contain one of `calls`, as file:line: what.
std::vector<std::string> lines_with(const std::vector<std::string>& calls, const std::vector<std::string>& rooms,
                                    const std::vector<std::string>& allowed = {}) {
  const fs::path root = source_path("");
  std::vector<std::string> found;
  for (const std::string& room : rooms) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / room)) {
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
  for (const std::string& line : lines_with({"ofstream", "file_sink_", "O_CREAT", "::rename(", "mkstemp", "fopen("},
                                            {"core", "nn", "data", "models", "train", "run", "serve", "apps"},
                                            {"core/io/file.cpp", "core/io/log.cpp"}))
    FAIL_CHECK(line);
}

TEST_CASE("standard output is written by the commands alone") {
  const std::vector<std::string> calls = {"std::cout", " printf(", " puts(", "stdout", "STDOUT_FILENO"};
  for (const std::string& line : lines_with(calls, {"core", "nn", "data", "models", "train", "run", "serve"}))
    FAIL_CHECK(line);
  CHECK_FALSE(lines_with(calls, {"apps"}).empty());
}

TEST_CASE("what computes calls no function whose bits depend on the CPU") {
  for (const std::string& line :
       lines_with({"std::exp(", "std::exp2(", "std::log(", "std::log1p(", "std::log2(", "std::pow(", "std::sin(",
                   "std::cos(", "std::tanh(", "std::erf(", "xsimd::exp(", "xsimd::log", "xsimd::tanh(", "xsimd::fma(",
                   "xsimd::hadd(", "xsimd::rsqrt(", "xsimd::reciprocal(", "xlinalg", "omp simd reduction"},
                  {"core", "nn", "data", "models", "train"},
                  {"core/kernels/simd_functions.hpp", "core/kernels/activation_functions.hpp",
                   "core/kernels/elementwise.cpp"}))  // a sum that is 0 or NaN
    FAIL_CHECK(line, "; use core/base/math.hpp, and for arrays the operations or kernels");
}

}  // namespace
}  // namespace capstan::testing
