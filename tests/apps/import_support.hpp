// What the tests of `capstan import` share.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "apps/commands/commands.hpp"
#include "core/array/array_xt.hpp"
#include "nn/params/scope.hpp"
#include "run/imports/import_module.hpp"
#include "run/imports/imported_module.hpp"
#include "run/yaml/config.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temporary_folder.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan::testing {

inline std::string fixture(const std::string& name) {
  return source_path("tests/parity/fixtures/" + name + ".safetensors");
}

struct ImportFolder : TemporaryFolder {
  std::string operator/(const std::string& name) const { return path(name); }
};

/// Catches what goes to std::cout while it lives.
class CapturedOutput {
 public:
  CapturedOutput() : before_(std::cout.rdbuf(text_.rdbuf())) {}
  ~CapturedOutput() { std::cout.rdbuf(before_); }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::streambuf* before_;
};

/// `capstan WORDS...`; what it prints on standard output goes to `out`.
inline int capstan_command(std::vector<std::string> words, std::string* out = nullptr) {
  words.insert(words.begin(), "capstan");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  const CapturedOutput printed;
  const int code = run_command_line(static_cast<int>(pointers.size()), pointers.data());
  if (out != nullptr) *out = printed.text();
  return code;
}

inline Array tensor(const SafetensorsFile& file, const std::string& name) {
  Array out{Shape(file.at(name).shape)};
  file.at(name).copy_to(out.mutable_data());
  return out;
}

/// The tensors of a fixture, to be changed and written again.
struct Tensors {
  explicit Tensors(const std::string& name) {
    const SafetensorsFile file(fixture(name));
    for (const FileTensor& t : file.tensors()) parts.push_back({t.name, t.shape, t.to_floats()});
  }
  struct Part {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  Part& at(const std::string& name) {
    return *std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.name == name; });
  }
  void remove(const std::string& name) { parts.erase(parts.begin() + (&at(name) - parts.data())); }
  void write(const std::string& path) const {
    std::vector<TensorToWrite> tensors;
    for (const Part& part : parts) tensors.push_back({part.name, DType::f32, part.shape, part.values.data()});
    write_safetensors(path, tensors);
  }
  std::vector<Part> parts;
};

}  // namespace capstan::testing
