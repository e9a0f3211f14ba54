// Keeps states of prompts and sessions by a key, and forgets those used longest ago where they take too much memory.
// tests/serve/test_company.cpp.
#include "serve/state_cache.hpp"

#include <algorithm>

#include "core/io/hash.hpp"
#include "core/strings/strings.hpp"
#include "models/generation/written_text.hpp"

namespace capstan {
namespace {

constexpr const char* session_prefix = "session ";

std::string prefix_key(const int32_t* tokens, size_t count) {
  return hash_hex({reinterpret_cast<const char*>(tokens), count * sizeof(int32_t)});
}

bool begins_with(const std::vector<int32_t>& window, const std::vector<int32_t>& tokens) {
  return tokens.size() <= window.size() && std::equal(tokens.begin(), tokens.end(), window.begin());
}

}  // namespace

std::shared_ptr<Snapshot> StateCache::prefix_of(const std::vector<int32_t>& window) {
  if (window.empty()) return nullptr;
  for (size_t count = (window.size() - 1) / prompt_piece * prompt_piece; count > 0; count -= prompt_piece)
    // The tokens decide: hashes of other tokens can be made equal on purpose.
    if (auto found = find(prefix_key(window.data(), count)); found && begins_with(window, found->window)) return found;
  return nullptr;
}

bool StateCache::has_prefix(const std::vector<int32_t>& tokens) {
  return find(prefix_key(tokens.data(), tokens.size())) != nullptr;
}

void StateCache::keep_prefix(std::shared_ptr<Snapshot> snapshot) {
  std::string key = prefix_key(snapshot->window.data(), snapshot->window.size());
  keep(std::move(key), std::move(snapshot));
}

std::shared_ptr<Snapshot> StateCache::session(const std::string& name) { return find(session_prefix + name); }

bool StateCache::keep_session(const std::string& name, std::shared_ptr<Snapshot> snapshot) {
  return keep(session_prefix + name, std::move(snapshot));
}

bool StateCache::remove_session(const std::string& name) { return remove(session_prefix + name); }

void StateCache::for_each_session(const std::function<void(const std::string&, const Snapshot&)>& body) const {
  const std::string prefix = session_prefix;
  for (const Entry& entry : entries_)
    if (starts_with(entry.key, prefix)) body(entry.key.substr(prefix.size()), *entry.snapshot);
}

std::shared_ptr<Snapshot> StateCache::find(const std::string& key) {
  const auto found = places_.find(key);
  if (found == places_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->snapshot;
}

bool StateCache::keep(std::string key, std::shared_ptr<Snapshot> snapshot) {
  remove(key);
  if (snapshot->bytes > most_) return false;
  bytes_ += snapshot->bytes;
  entries_.push_front({key, std::move(snapshot)});
  places_[std::move(key)] = entries_.begin();
  while (bytes_ > most_) remove(std::string(entries_.back().key));
  return true;
}

bool StateCache::remove(const std::string& key) {
  const auto found = places_.find(key);
  if (found == places_.end()) return false;
  bytes_ -= found->second->snapshot->bytes;
  entries_.erase(found->second);
  places_.erase(found);
  return true;
}

}  // namespace capstan
