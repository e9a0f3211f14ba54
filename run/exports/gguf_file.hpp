// The GGUF format of llama.cpp, version 3: keys with typed values, then tensors, each at a multiple of 32 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace capstan {

class GgufFile {
 public:
  void add(const std::string& key, uint32_t value);
  void add(const std::string& key, float value);
  void add(const std::string& key, bool value);
  void add(const std::string& key, std::string_view value);
  void add(const std::string& key, const std::vector<std::string>& values);
  void add(const std::string& key, const std::vector<float>& values);
  void add(const std::string& key, const std::vector<int32_t>& values);
  /// shape: rows first, as everywhere here.
  void add_tensor(const std::string& name, const std::vector<int64_t>& shape, std::vector<float> values);

  /// Writes and syncs the file.
  void write(const std::string& path) const;

 private:
  struct Tensor {
    std::string name;
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  void begin(const std::string& key, uint32_t type);
  void begin_list(const std::string& key, uint32_t type, size_t count);

  std::string keys_;
  uint64_t key_count_ = 0;
  std::vector<Tensor> tensors_;
};

}  // namespace capstan
