// A store of bytes that are appended, then read by their place; many bytes are in a file. data/labelled keeps texts in
// it, and data/batches tokens. tests/data/test_batches.cpp checks that memory and file give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/no_copy.hpp"

namespace capstan {

/// In memory up to `max_in_memory` bytes. More than these are in a file without a name, which the system removes
/// however the process ends. The file is in the folder or, where that is "", in the one for temporary files.
class ByteStore : NoCopy {
 public:
  static constexpr size_t max_in_memory = size_t{64} << 20;

  explicit ByteStore(std::string folder = "", size_t limit = max_in_memory)
      : folder_(std::move(folder)), limit_(limit) {}
  ~ByteStore();

  int64_t size() const { return written_ + static_cast<int64_t>(waiting_.size()); }
  bool in_memory() const { return descriptor_ < 0; }
  const std::string& folder() const { return folder_; }
  /// Throws Error when the file cannot be written.
  void append(const void* bytes, size_t count);
  void append(std::string_view bytes) { append(bytes.data(), bytes.size()); }
  /// Bytes [place, place + count), which must have been appended. Any thread may read while none appends. Throws Error
  /// when the file cannot be read.
  void read(int64_t place, void* to, size_t count) const;

 private:
  void flush();

  std::string folder_;
  size_t limit_;
  std::string waiting_;  // bytes that are not in the file yet; all of them where there is none
  int64_t written_ = 0;  // bytes in the file
  int descriptor_ = -1;
};

}  // namespace capstan
