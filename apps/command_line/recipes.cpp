#include "apps/command_line/recipes.hpp"

#include <filesystem>
#include <set>

#include "core/strings/strings.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> recipe_folders() {
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  return {"configs", program / CAPSTAN_RECIPES, program / "../../configs"};  // the last one: from build/<preset>
}

/// A name leads to no other folder than those of the recipes.
bool names_recipe(const std::string& name) {
  return !name.empty() && name.front() != '/' && name.front() != '.' && name.find("/.") == std::string::npos;
}

}  // namespace

std::string recipe_path(const std::string& name) {
  std::error_code unknown;
  if (!names_recipe(name) || (fs::exists(name, unknown) && !fs::is_directory(name, unknown))) return name;
  if (fs::is_regular_file(name + ".yaml", unknown)) return name + ".yaml";
  std::string recipe = name.substr(starts_with(name, "configs/") ? 8 : 0);
  if (!ends_with(recipe, ".yaml")) recipe += ".yaml";
  for (const fs::path& folder : recipe_folders())
    if (const fs::path path = folder / recipe; fs::is_regular_file(path, unknown))
      return path.lexically_normal().string();
  return name;
}

std::vector<std::string> recipe_names() {
  std::set<std::string> names;
  std::error_code unknown;
  for (const fs::path& folder : recipe_folders())
    for (const auto& entry :
         fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, unknown))
      if (entry.path().extension() == ".yaml")
        names.insert(entry.path().lexically_relative(folder).replace_extension().string());
  return {names.begin(), names.end()};
}

}  // namespace capstan
