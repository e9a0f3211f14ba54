// What waits, by client: texts of an engine, work of the scheduler, requests of a worker. Not thread-safe: its users
// lock. tests/serve/test_clients.cpp and test_company.cpp hold that no client delays another for long.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace capstan {

/// Items that wait, by client. Clients take turns, so that a client with much to do delays another by one item. Of the
/// items of a client the smallest comes first, and the oldest of equal ones.
template <class Item>
class ClientQueue {
 public:
  bool empty() const { return turns_.empty(); }
  /// How many items a client has.
  size_t count(const std::string& client) const {
    const auto own = items_.find(client);
    return own == items_.end() ? 0 : own->second.size();
  }
  /// Has another client any?
  bool has_other(const std::string& client) const { return items_.size() > items_.count(client); }
  void push(const std::string& client, Item item, size_t size = 0) {
    auto& own = items_[client];
    if (own.empty()) turns_.push_back(client);
    own.emplace(size, std::move(item));
  }
  /// The client whose turn it is, of those that `may` have one, and its item; none without such a client.
  template <class Rule>
  std::optional<std::pair<std::string, Item>> pop(const Rule& may) {
    const auto turn = std::find_if(turns_.begin(), turns_.end(), may);
    if (turn == turns_.end()) return {};
    std::string client = std::move(*turn);
    turns_.erase(turn);
    const auto own = items_.find(client);
    const auto first = own->second.begin();
    Item item = std::move(first->second);
    own->second.erase(first);
    if (own->second.empty())
      items_.erase(own);
    else
      turns_.push_back(client);
    return {{std::move(client), std::move(item)}};
  }
  std::optional<std::pair<std::string, Item>> pop() {
    return pop([](const std::string&) { return true; });
  }
  template <class Rule>
  void remove_if(const Rule& rule) {
    for (auto own = items_.begin(); own != items_.end();) {
      for (auto item = own->second.begin(); item != own->second.end();)
        item = rule(item->second) ? own->second.erase(item) : std::next(item);
      if (own->second.empty()) turns_.erase(std::find(turns_.begin(), turns_.end(), own->first));
      own = own->second.empty() ? items_.erase(own) : std::next(own);
    }
  }
  void clear() {
    items_.clear();
    turns_.clear();
  }

 private:
  std::map<std::string, std::multimap<size_t, Item>> items_;  // by client, then by size
  std::deque<std::string> turns_;                             // clients with items; the first one's turn is next
};

}  // namespace capstan
