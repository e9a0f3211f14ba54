// States that may be needed again: of the beginnings of prompts, and sessions, which requests keep under a name. Each
// engine has one cache, for the computing thread alone. tests/serve/test_company.cpp holds that texts are the same with
// the cache and without.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "models/stack.hpp"

namespace capstan {

/// A sequence that has read some tokens of its text.
struct Snapshot {
  DecodeState state;            // of one sequence, which has read the first positions[0] tokens of the window
  std::vector<int32_t> window;  // tokens begin, begin + 1, ... of the text
  int64_t begin = 0;
  int64_t bytes = 0;  // the memory that the snapshot takes

  int64_t tokens() const { return begin + static_cast<int64_t>(window.size()); }
};

/// Holds the snapshots used last, up to a number of bytes.
class StateCache {
 public:
  explicit StateCache(int64_t max_bytes) : most_(max_bytes) {}

  /// The snapshot that has read the most of the first tokens of `window`, but not all of them; null without one.
  std::shared_ptr<Snapshot> prefix_of(const std::vector<int32_t>& window);
  /// Whether a prefix of these tokens is held; it then counts as used.
  bool has_prefix(const std::vector<int32_t>& tokens);
  void keep_prefix(std::shared_ptr<Snapshot> snapshot);

  std::shared_ptr<Snapshot> session(const std::string& name);
  /// Keeps a snapshot in place of an earlier one of this name; false where it is larger than the whole cache.
  bool keep_session(const std::string& name, std::shared_ptr<Snapshot> snapshot);
  bool remove_session(const std::string& name);
  void for_each_session(const std::function<void(const std::string& name, const Snapshot& snapshot)>& body) const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<Snapshot> snapshot;
  };
  std::shared_ptr<Snapshot> find(const std::string& key);
  bool keep(std::string key, std::shared_ptr<Snapshot> snapshot);
  bool remove(const std::string& key);

  int64_t most_, bytes_ = 0;
  std::list<Entry> entries_;  // the one used last comes first
  std::unordered_map<std::string, std::list<Entry>::iterator> places_;
};

}  // namespace capstan
