#include "data/labelled/class_folders.hpp"

#include <map>
#include <set>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

bool names_part(const std::string& folder) {
  static const std::set<std::string> parts{"train", "training", "valid", "validation", "val", "dev", "test", "testing"};
  return parts.count(folder) > 0;
}

}  // namespace

void refuse_parts_as_classes(const std::vector<FoundFile>& files, const std::vector<std::string>& paths) {
  std::map<std::string, std::set<std::string>> parts;  // with the folders in each
  for (const FoundFile& found : files) {
    const std::vector<std::string_view> names = split(found.name, "/");
    if (names.size() < 2) continue;
    std::set<std::string>& inner = parts[std::string(names[0])];
    if (names.size() > 2) inner.emplace(names[1]);
  }
  if (parts.size() < 2) return;
  std::vector<std::string> names, classes;
  for (const auto& [part, inner] : parts) {
    if (!names_part(part)) return;
    names.push_back(part);
  }
  for (const std::string& name : parts.begin()->second) {
    bool everywhere = true;
    for (const auto& [part, inner] : parts) everywhere = everywhere && inner.count(name) > 0;
    if (everywhere) classes.push_back(name);
  }
  if (classes.size() < 2) return;
  throw Error(
      fmt::format("{}: its folders {} are parts of a data set, with the classes ({}) one level deeper: give "
                  "the folder of one part, such as {}/{}, or name the classes in data.classes",
                  join_first(paths), join(names), join_first(classes), paths.front(), names.back()));
}

}  // namespace capstan
