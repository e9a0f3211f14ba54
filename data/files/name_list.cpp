#include "data/files/name_list.hpp"

#include "core/base/error.hpp"

namespace capstan {

std::string listed(const std::vector<std::string>& names, const char* separator) {
  constexpr size_t shown = 20;
  std::string text;
  for (size_t i = 0; i < names.size() && i < shown; ++i) text += (i > 0 ? separator : "") + names[i];
  return names.size() > shown ? fmt::format("{}, ... ({} in all)", text, names.size()) : text;
}

}  // namespace capstan
