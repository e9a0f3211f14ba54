// The hash of files and of what a run began with: XXH3-128, written as 32 hexadecimal digits.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace capstan {

/// Hash of bytes that come in pieces: where one piece ends and the next begins does not matter.
class Hash {
 public:
  Hash();
  ~Hash();
  Hash(const Hash&) = delete;
  Hash& operator=(const Hash&) = delete;

  void add(const void* bytes, size_t count);
  void add(std::string_view bytes) { add(bytes.data(), bytes.size()); }
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string hash_hex(std::string_view bytes);

}  // namespace capstan
