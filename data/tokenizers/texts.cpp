// Cuts texts into blocks at boundaries of a tokenizer, and gives back the pages of mapped files that have been read.
// tests/data/test_texts.cpp checks that blocks of any size have the tokens of the whole text.
#include "data/tokenizers/texts.hpp"

#include <algorithm>
#include <numeric>

#include "core/machine/in_order.hpp"

namespace capstan {
namespace {

/// Where a text is cut after about `size` bytes, at a line's end where one is near; 0 where the boundary allows no cut.
size_t cut(std::string_view text, size_t size, const Boundary& boundary) {
  if (size >= text.size()) return text.size();
  const size_t line_end = text.rfind('\n', size - 1);
  return boundary(text, line_end != std::string_view::npos && line_end >= size / 2 ? line_end + 1 : size);
}

/// Where the block that begins at `begin` ends: after about `size` bytes, or more until the boundary allows a cut.
size_t end_of_block(std::string_view text, size_t begin, size_t size, const Boundary& boundary) {
  size_t length = 0;
  for (size_t wanted = size; length == 0; wanted *= 2) length = cut(text.substr(begin), wanted, boundary);
  return begin + length;
}

}  // namespace

Text::Text(std::shared_ptr<const MappedFile> file, size_t begin, size_t end, Progress* progress)
    : file_(std::move(file)), offset_(begin), progress_(progress) {
  view_ = std::string_view(reinterpret_cast<const char*>(file_->data()), file_->size()).substr(begin, end - begin);
}

void Text::release(size_t begin, size_t end) const {
  if (file_) file_->release(offset_ + begin, offset_ + end);
}

void Text::pass(size_t begin, size_t end) const {
  release(begin, end);
  if (progress_ != nullptr) progress_->add(end - begin);
}

Texts::Texts(std::vector<std::string_view> texts)
    : count_(texts.size()),
      bytes_(
          std::accumulate(texts.begin(), texts.end(), int64_t{0},
                          [](int64_t sum, std::string_view text) { return sum + static_cast<int64_t>(text.size()); })),
      open_([texts = std::move(texts)](size_t i) { return Text(texts[i]); }) {}

size_t find(const Text& text, std::string_view sought, size_t at) {
  const std::string_view all = text.view();
  for (; at < all.size(); at += text_block) {
    const size_t found = all.substr(at, text_block + sought.size() - 1).find(sought);
    if (found != std::string_view::npos) return at + found;
    text.release(at, std::min(at + text_block, all.size()));
  }
  return std::string_view::npos;
}

void for_blocks(const Text& text, const Boundary& boundary, const std::function<void(std::string_view)>& visit,
                size_t size) {
  const std::string_view all = text.view();
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    end = end_of_block(all, begin, size, boundary);
    visit(all.substr(begin, end - begin));
    text.pass(begin, end);
  }
}

void for_all_blocks(const Texts& texts, const Boundary& boundary, const std::function<void(std::string_view)>& visit) {
  struct Block {
    Text text;
    size_t begin, end;
  };
  InOrder<Block, bool> blocks(
      [&](const Block& block) {
        visit(block.text.view().substr(block.begin, block.end - block.begin));
        return true;
      },
      [](const Block& block, auto& done) {
        done.get();
        block.text.pass(block.begin, block.end);
      });
  for (size_t i = 0; i < texts.count(); ++i) {
    const Text text = texts.open(i);
    const size_t size = text.view().size();
    for (size_t begin = 0, end = 0; begin < size; begin = end) {
      end = end_of_block(text.view(), begin, text_block / 4, boundary);
      blocks.add({text, begin, end}, end - begin);
    }
  }
  blocks.finish();
}

}  // namespace capstan
