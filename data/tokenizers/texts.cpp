#include "data/tokenizers/texts.hpp"

#include <algorithm>
#include <numeric>

namespace capstan {
namespace {

size_t cut(std::string_view text, size_t size, const Boundary& boundary) {
  if (size >= text.size()) return text.size();
  const size_t line_end = text.rfind('\n', size - 1);
  return boundary(text, line_end != std::string_view::npos && line_end >= size / 2 ? line_end + 1 : size);
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
  for (size_t begin = 0; begin < all.size();) {
    size_t length = 0;
    for (size_t wanted = size; length == 0; wanted *= 2) length = cut(all.substr(begin), wanted, boundary);
    visit(all.substr(begin, length));
    text.pass(begin, begin + length);
    begin += length;
  }
}

}  // namespace capstan
