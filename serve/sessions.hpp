// Sessions: states that requests keep under a name, to go on from later. Each engine has its own, for the computing
// thread alone. tests/serve/test_company.cpp holds that a text goes on as if it had been written at once.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/stack.hpp"

namespace capstan {

/// A sequence that has read some tokens of its text.
struct TextSession {
  DecodeState state;            // of one sequence, which has read the first positions[0] tokens of the window
  std::vector<int32_t> window;  // tokens begin, begin + 1, ... of the text
  int64_t begin = 0;

  /// The memory that it takes, about.
  int64_t bytes() const;
};

/// Holds the sessions used last, up to a number of bytes.
class TextSessions {
 public:
  explicit TextSessions(int64_t max_bytes) : max_bytes_(max_bytes) {}

  /// The session of this name, which then counts as used; null without one.
  std::shared_ptr<TextSession> find(const std::string& name);
  /// Keeps a session in place of an earlier one of this name; false where it is larger than all may be.
  bool keep(const std::string& name, std::shared_ptr<TextSession> session);

 private:
  int64_t max_bytes_;
  std::list<std::pair<std::string, std::shared_ptr<TextSession>>> sessions_;  // the one used last comes first
};

}  // namespace capstan
