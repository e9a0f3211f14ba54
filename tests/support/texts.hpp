// What tests ask of texts and of exceptions.
#pragma once

#include <doctest/doctest.h>

#include <exception>
#include <string>
#include <vector>

namespace capstan {

/// The message of the exception of type E that `action` throws, or "no error".
template <class E = std::exception, class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// How often `part` is in a text.
inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// `count` lines: the texts in turns, each with the number of its line.
inline std::string numbered_lines(int count, const std::vector<std::string>& texts) {
  std::string lines;
  for (int i = 0; i < count; ++i) lines += texts[static_cast<size_t>(i) % texts.size()] + std::to_string(i) + "\n";
  return lines;
}

/// All of these must be in the text.
inline void check_contains(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) CHECK_MESSAGE(contains(text, part), "must have: ", part, "\nbut is: ", text);
}

}  // namespace capstan
