// A store of bytes that are appended, then read by their place; many bytes are in a file. Texts of data/labelled and
// data/text, and the tokens of every source are in it. tests/data/test_batches.cpp and test_token_row.cpp check that
// memory and files give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/no_copy.hpp"
#include "core/io/mapped_file.hpp"

namespace capstan {

/// In memory up to `max_in_memory` bytes. More than these are in a file without a name, which the system removes
/// however the process ends. The file is in the folder or, where that is "", in the one for temporary files.
class ByteStore : NoCopy {
 public:
  static constexpr size_t max_in_memory = size_t{64} << 20;

  explicit ByteStore(std::string folder = "", size_t limit = max_in_memory)
      : folder_(std::move(folder)), limit_(limit) {}
  ~ByteStore();
  /// The bytes of a file that exists, to which nothing is appended. Throws Error when it cannot be opened.
  static std::unique_ptr<ByteStore> of_file(const std::string& path);

  int64_t size() const { return written_ + static_cast<int64_t>(waiting_.size()); }
  bool in_memory() const { return descriptor_ < 0; }
  const std::string& folder() const { return folder_; }
  /// Throws Error when the file cannot be written.
  void append(const void* bytes, size_t count);
  void append(std::string_view bytes) { append(bytes.data(), bytes.size()); }
  /// Bytes [place, place + count), which must have been appended. Any thread may read while none appends. Throws Error
  /// when the file cannot be read, or has become shorter.
  void read(int64_t place, void* to, size_t count) const;
  /// All bytes of a store in memory, until more are appended.
  std::string_view view() const { return waiting_; }
  /// A mapping of all bytes of a store that is not in memory.
  std::shared_ptr<const MappedFile> map();

 private:
  void flush();

  std::string folder_, path_;  // path_: of a file that has a name
  size_t limit_;
  std::string waiting_;  // bytes that are not in the file yet; all of them where there is none
  int64_t written_ = 0;  // bytes in the file
  int descriptor_ = -1;
};

}  // namespace capstan
