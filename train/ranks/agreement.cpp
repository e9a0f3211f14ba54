#include "train/ranks/agreement.hpp"

#include "core/strings/join.hpp"

namespace capstan {
namespace {

std::string facts_text(const Settings& facts) {
  std::string text;
  for (const auto& [name, value] : facts) text += name + '\0' + value + '\0';
  return text;
}

Settings facts_from(const std::string& text) {
  Settings facts;
  for (size_t at = 0; at < text.size();) {
    const size_t middle = text.find('\0', at), end = text.find('\0', middle + 1);
    facts[text.substr(at, middle - at)] = text.substr(middle + 1, end - middle - 1);
    at = end + 1;
  }
  return facts;
}

/// "train.lr 0.1", "no train.lr"
std::string shown(const Settings& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? "no " + name : name + " " + found->second;
}

}  // namespace

std::vector<std::string> disagreements(Communicator& ranks, const Settings& facts) {
  std::vector<std::string> lines;
  std::vector<Settings> all;
  for (const std::string& text : ranks.gather(facts_text(facts))) all.push_back(facts_from(text));
  for (size_t rank = 1; rank < all.size(); ++rank) {
    Settings names = all[rank];
    names.insert(all[0].begin(), all[0].end());
    for (const auto& [name, value] : names) {
      if (shown(all[rank], name) == shown(all[0], name)) continue;
      lines.push_back(fmt::format("{} has {}, {} has {}", ranks.name_of(static_cast<int>(rank)), shown(all[rank], name),
                                  ranks.name_of(0), shown(all[0], name)));
      break;
    }
  }
  return lines;
}

void require_same(Communicator& ranks, const std::string& what, const Settings& facts, const std::string& remedy) {
  const std::vector<std::string> lines = disagreements(ranks, facts);
  if (!lines.empty()) throw Error(fmt::format("{}: {}; {}", what, join_first(lines, "; "), remedy));
}

}  // namespace capstan
