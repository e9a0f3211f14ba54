// Looks for recipes in the working folder, beside the program and beside its sources.
// tests/cli/inputs/test_bad_input.cpp has misspelt ones.
#include "apps/command_line/recipes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/strings/nearest.hpp"
#include "core/strings/strings.hpp"

namespace capstan {

namespace fs = std::filesystem;

namespace {

/// In the order in which recipes are looked for. The last one is from build/<preset>.
std::vector<fs::path> recipe_folders() {
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  return {"configs", program / CAPSTAN_RECIPES, program / "../../configs"};
}

/// The names of all recipes, sorted: classify, compare/listops.
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

/// The recipe that was probably meant: listops means "compare/listops". Empty if none is near.
std::string nearest_recipe(const std::string& file) {
  const std::vector<std::string> names = recipe_names();
  const std::string stem = fs::path(file).stem().string();
  const auto below = std::find_if(names.begin(), names.end(), [&](const auto& n) { return ends_with(n, "/" + stem); });
  return below != names.end() ? *below : nearest(stem, names);
}

/// May a text be the name of a recipe? Such a name cannot lead out of the folders of recipes.
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

std::string missing_recipe(const std::string& name) {
  if (const std::string recipe = nearest_recipe(name); !recipe.empty())
    return fmt::format("{}: no such file and no such recipe, did you mean {}?", name, recipe);
  if (name.find('.') != std::string::npos) return "";
  std::error_code unknown;
  for (const fs::path& folder : recipe_folders())
    if (fs::is_directory(folder, unknown))
      return fmt::format("{}: no such file and no such recipe; the recipes are the files of {}", name,
                         folder.lexically_normal().string());
  return fmt::format("{}: no such file, and no folder of recipes is beside this program; give the path of a file",
                     name);
}

}  // namespace capstan
