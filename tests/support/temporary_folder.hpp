// A folder that goes away with the test.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

#include "tests/support/run_paths.hpp"

namespace capstan {

/// In memory where the system offers that: tests save and sync a lot.
inline std::filesystem::path memory_folder() {
  return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : std::filesystem::temp_directory_path();
}

class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::filesystem::path& base = memory_folder()) {
    std::string name = (base / "capstan-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for the test can be made: " + name);
    folder_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  /// Of a checkpoint's path, "checkpoints/last" and "checkpoints/best" are the folders of these steps.
  std::filesystem::path operator/(const std::string& name) const { return in_run(folder_ / name); }
  std::string path(const std::string& name = "") const { return (name.empty() ? folder_ : *this / name).string(); }
  /// Writes a file, its folders included, and returns its path.
  std::string write(const std::string& name, const std::string& content) const {
    const std::filesystem::path file = *this / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
    return file.string();
  }
  std::string read(const std::string& name) const {
    std::ifstream file(*this / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace capstan
