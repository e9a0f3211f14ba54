// Texts of any size, read block by block: what tokenizers learn from, and what data/text tokenises. A text in a mapped
// file gives what one in memory gives, and takes little of it: tests/data/test_texts.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include "core/io/file.hpp"
#include "core/io/mapped_file.hpp"
#include "core/io/progress.hpp"

namespace capstan {

/// Bytes that are worked on at a time.
constexpr size_t text_block = size_t{1} << 20;

/// A text that is read from front to back, in memory or in a mapped file.
class Text {
 public:
  /// The owner of the text must outlive this. `progress` may be null.
  explicit Text(std::string_view text, Progress* progress = nullptr) : view_(text), progress_(progress) {}
  /// Bytes [begin, end) of a file.
  Text(std::shared_ptr<const MappedFile> file, size_t begin, size_t end, Progress* progress);

  std::string_view view() const { return view_; }
  /// The pages of a file that hold bytes [begin, end) of the text need not stay in memory.
  void release(size_t begin, size_t end) const;
  /// The work on bytes [begin, end) is done: releases them and reports progress.
  void pass(size_t begin, size_t end) const;

 private:
  std::string_view view_;
  std::shared_ptr<const MappedFile> file_;
  size_t offset_ = 0;
  Progress* progress_ = nullptr;
};

/// Several texts, each of which may be opened as often as needed.
class Texts {
 public:
  using Open = std::function<Text(size_t)>;

  Texts() = default;
  /// Texts in memory, whose owner must outlive this.
  Texts(std::vector<std::string_view> texts);
  Texts(std::initializer_list<std::string_view> texts) : Texts(std::vector<std::string_view>(texts)) {}
  /// `open(i)` gives the i-th of `count` texts, which have `bytes` bytes together.
  Texts(size_t count, int64_t bytes, Open open) : count_(count), bytes_(bytes), open_(std::move(open)) {}

  size_t count() const { return count_; }
  int64_t bytes() const { return bytes_; }
  Text open(size_t i) const { return open_(i); }

 private:
  size_t count_ = 0;
  int64_t bytes_ = 0;
  Open open_;
};

/// The first occurrence of `sought` (not longer than text_block) at or after `at`, or npos. Releases what it passes.
size_t find(const Text& text, std::string_view sought, size_t at);

/// Where a text may be cut: Tokenizer::boundary().
using Boundary = std::function<size_t(std::string_view text, size_t at)>;
/// The boundary of work that does not care.
inline size_t anywhere(std::string_view, size_t at) { return at; }

/// Calls visit(block) for one block of a text after the other, and passes it. Blocks have about `size` bytes and end
/// at a boundary, at a line's end where one is near; longer ones only where the text has no boundary.
void for_blocks(const Text& text, const Boundary& boundary, const std::function<void(std::string_view)>& visit,
                size_t size = text_block);

/// Calls visit(block) for the blocks of all texts, on all threads at once. Throws what the first block in order throws.
void for_all_blocks(const Texts& texts, const Boundary& boundary, const std::function<void(std::string_view)>& visit);

}  // namespace capstan
