// Keeps sessions by their names, and forgets those used longest ago where they take too much memory.
// tests/serve/test_company.cpp.
#include "serve/sessions.hpp"

#include <algorithm>

#include "models/generation/state_bytes.hpp"

namespace capstan {

int64_t TextSession::bytes() const {
  return bytes_per_sequence(state, state.positions.front()) + static_cast<int64_t>(window.size() * sizeof(int32_t)) +
         4096;  // about what containers take
}

std::shared_ptr<TextSession> TextSessions::find(const std::string& name) {
  const auto found =
      std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& session) { return session.first == name; });
  if (found == sessions_.end()) return nullptr;
  sessions_.splice(sessions_.begin(), sessions_, found);
  return found->second;
}

bool TextSessions::keep(const std::string& name, std::shared_ptr<TextSession> session) {
  if (session->bytes() > max_bytes_) return false;
  sessions_.remove_if([&](const auto& earlier) { return earlier.first == name; });
  sessions_.emplace_front(name, std::move(session));
  int64_t bytes = 0;
  const auto first_surplus = std::find_if(sessions_.begin(), sessions_.end(),
                                          [&](const auto& one) { return (bytes += one.second->bytes()) > max_bytes_; });
  sessions_.erase(first_surplus, sessions_.end());
  return true;
}

}  // namespace capstan
