// Folders that were given as classes.
#pragma once

#include <string>
#include <vector>

#include "data/files/file_list.hpp"

namespace capstan {

/// Throws Error if the folders that would be classes are the parts of a data set (train, test), whose folders are the
/// classes. `files`: those found below `paths`.
void refuse_parts_as_classes(const std::vector<FoundFile>& files, const std::vector<std::string>& paths);

}  // namespace capstan
