#include "core/strings/join.hpp"

#include "core/base/error.hpp"

namespace capstan {

std::string join_first(const std::vector<std::string>& names, std::string_view separator) {
  constexpr std::size_t shown = 20;
  if (names.size() <= shown) return join(names, separator);
  const std::vector<std::string> first(names.begin(), names.begin() + shown);
  return fmt::format("{}, ... ({} in all)", join(first, separator), names.size());
}

}  // namespace capstan
