// Texts and bytes that were damaged at random, for readers that must read or refuse whatever they are given.
#pragma once

#include <random>
#include <string>

namespace capstan {

/// One to four times: a byte changed, put in or removed with some behind it, a stretch repeated, or the end cut off.
/// New bytes are mostly of those that mean something to the reader, `telling`.
inline std::string damaged(std::string text, std::mt19937& random, const std::string& telling) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (size_t edits = 1 + below(4); edits > 0 && !text.empty(); --edits) {
    const size_t at = below(text.size());
    const char c = below(4) == 0 ? static_cast<char>(below(256)) : telling[below(telling.size())];
    switch (below(5)) {
      case 0:
        text[at] = c;
        break;
      case 1:
        text.erase(at, 1 + below(8));
        break;
      case 2:
        text.insert(at, 1, c);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), 1 + below(40)));
        break;
      default:
        text.resize(at + 1);
        break;
    }
  }
  return text;
}

}  // namespace capstan
