#include "data/files/text_file.hpp"

namespace capstan {

void read_blocks(const std::string& path, size_t block, const std::function<bool(std::string_view)>& take,
                 int64_t max_mb) {
  TextReader reader(path);
  reader.limit(max_mb);
  std::string text(block, '\0');
  while (const size_t got = reader.read(text.data(), block))
    if (!take({text.data(), got})) return;
}

std::string read_text_file(const std::string& path, int64_t max_mb) {
  TextReader reader(path);
  reader.limit(max_mb);
  std::string text = reader.read_rest();
  if (text.empty()) throw empty_file(path);
  return text;
}

bool looks_binary(const std::string& path) {
  bool found = false;
  read_blocks(path, 8192, [&](std::string_view front) {
    found = front.find('\0') != std::string_view::npos;
    return false;
  });
  return found;
}

bool Lines::next(Line& line) {
  if (rest_.empty()) return false;
  const size_t end = rest_.find('\n');
  line.text = rest_.substr(0, end);
  line.number = ++number_;
  rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
  if (!line.text.empty() && line.text.back() == '\r') line.text.remove_suffix(1);
  return true;
}

}  // namespace capstan
