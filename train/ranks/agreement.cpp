// Gathers the facts of all ranks and compares each rank with rank 0. All ranks get the same lines, and so throw the
// same error: tests/train/test_communicator.cpp ("facts that differ are named with both ranks").
#include "train/ranks/agreement.hpp"

#include <algorithm>

#include "core/strings/strings.hpp"

namespace capstan {
namespace {

/// A fact as a message has it: "train.lr 0.1" or, where it is absent, "no train.lr".
std::string shown(const Settings& facts, const std::string& name) {
  const auto found = facts.find(name);
  return found == facts.end() ? "no " + name : name + " " + found->second;
}

}  // namespace

std::vector<std::string> disagreements(Communicator& ranks, const Settings& facts) {
  std::vector<std::string> lines;
  std::vector<std::string> mine;
  for (const auto& [name, value] : facts) mine.insert(mine.end(), {name, value});
  std::vector<Settings> all;
  for (const std::vector<std::string>& list : ranks.gather_lists(mine)) {
    all.emplace_back();
    for (size_t i = 0; i + 1 < list.size(); i += 2) all.back()[list[i]] = list[i + 1];
  }
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

int agreed_signal(Communicator& ranks, int own) {
  const std::vector<int> signals = ranks.gather_values(own);
  const auto first = std::find_if(signals.begin(), signals.end(), [](int signal) { return signal != 0; });
  return first != signals.end() ? *first : 0;
}

}  // namespace capstan
