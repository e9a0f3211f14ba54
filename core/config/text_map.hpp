// A field of a config struct that maps texts to texts: {"encoder.*": "blocks.*"}.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/config/schema.hpp"

namespace capstan {

/// In the order in which they were given.
struct TextMap {
  std::vector<std::pair<std::string, std::string>> entries;
};

/// The entries there are; a reader adds those that are given.
template <class Fields>
void describe(Fields& f, TextMap& c) {
  for (auto& [key, value] : c.entries) f(key.c_str(), value, any(), "");
}

}  // namespace capstan
