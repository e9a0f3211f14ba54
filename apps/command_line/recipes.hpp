// The configurations of configs/, by name.
#pragma once

#include <string>
#include <vector>

namespace capstan {

/// `name`, or with .yaml after it, if there is such a file. Otherwise the recipe "classify", "compare/listops" or
/// "configs/classify.yaml" of the working folder, of the installed program or of the sources that it was built from;
/// `name` if there is none.
std::string recipe_path(const std::string& name);

/// The names of all recipes, sorted: classify, compare/listops.
std::vector<std::string> recipe_names();

}  // namespace capstan
