// The configurations of configs/, by name. tests/cli/runs/test_commands.cpp finds them from any folder.
#pragma once

#include <string>

namespace capstan {

/// `name`, or with .yaml after it, if there is such a file. Otherwise the recipe "classify", "compare/listops" or
/// "configs/classify.yaml" of the working folder, of the installed program or of the sources that it was built from;
/// `name` if there is none.
std::string recipe_path(const std::string& name);

/// What is said of a name that is neither a file nor a recipe; empty for a name with a dot, which is the path of a
/// file.
std::string missing_recipe(const std::string& name);

}  // namespace capstan
