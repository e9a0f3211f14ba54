#include "run/exports/gguf_file.hpp"

#include "core/io/file.hpp"

namespace capstan {
namespace {

constexpr uint64_t alignment = 32;
enum ValueType : uint32_t {
  type_int32 = 5,
  type_uint32 = 4,
  type_float32 = 6,
  type_bool = 7,
  type_string = 8,
  type_array = 9
};

/// Little-endian, as all machines are that this is built for.
template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
void put_string(std::string& out, std::string_view text) {
  put(out, static_cast<uint64_t>(text.size()));
  out += text;
}
uint64_t aligned(uint64_t size) { return (size + alignment - 1) / alignment * alignment; }

}  // namespace

void GgufFile::begin(const std::string& key, uint32_t type) {
  put_string(keys_, key);
  put(keys_, type);
  ++key_count_;
}

void GgufFile::begin_list(const std::string& key, uint32_t type, size_t count) {
  begin(key, type_array);
  put(keys_, type);
  put(keys_, static_cast<uint64_t>(count));
}

void GgufFile::add(const std::string& key, uint32_t value) {
  begin(key, type_uint32);
  put(keys_, value);
}
void GgufFile::add(const std::string& key, float value) {
  begin(key, type_float32);
  put(keys_, value);
}
void GgufFile::add(const std::string& key, bool value) {
  begin(key, type_bool);
  put(keys_, static_cast<uint8_t>(value));
}
void GgufFile::add(const std::string& key, std::string_view value) {
  begin(key, type_string);
  put_string(keys_, value);
}
void GgufFile::add(const std::string& key, const std::vector<std::string>& values) {
  begin_list(key, type_string, values.size());
  for (const std::string& value : values) put_string(keys_, value);
}
void GgufFile::add(const std::string& key, const std::vector<float>& values) {
  begin_list(key, type_float32, values.size());
  for (const float value : values) put(keys_, value);
}
void GgufFile::add(const std::string& key, const std::vector<int32_t>& values) {
  begin_list(key, type_int32, values.size());
  for (const int32_t value : values) put(keys_, value);
}

void GgufFile::add_tensor(const std::string& name, const std::vector<int64_t>& shape, std::vector<float> values) {
  tensors_.push_back({name, shape, std::move(values)});
}

void GgufFile::write(const std::string& path) const {
  std::string head = "GGUF";
  put(head, uint32_t{3});
  put(head, static_cast<uint64_t>(tensors_.size()));
  put(head, key_count_);
  head += keys_;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    put_string(head, tensor.name);
    put(head, static_cast<uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size)
      put(head, static_cast<uint64_t>(*size));
    put(head, uint32_t{0});  // float32
    put(head, offset);
    offset += aligned(tensor.values.size() * sizeof(float));
  }
  head.resize(aligned(head.size()), '\0');
  FileWriter file(path);
  file.write(head);
  for (const Tensor& tensor : tensors_) {
    const size_t bytes = tensor.values.size() * sizeof(float);
    file.write(tensor.values.data(), bytes);
    file.write(std::string(aligned(bytes) - bytes, '\0'));
  }
  file.sync();
  file.close();
}

}  // namespace capstan
