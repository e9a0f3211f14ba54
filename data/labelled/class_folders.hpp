// Rows of data with one text per file, whose folder is its class (format: folders).
// tests/data/labelled/test_class_folders.cpp and test_tables_people_have.cpp.
#pragma once

#include <string>
#include <vector>

#include "data/labelled/labelled_rows.hpp"

namespace capstan {

/// A row per file below `paths` that has a wanted class (data.classes), or any class where none are named. Logs which
/// other files are left out; throws Error when no file has a text of a class, and for folders that are no classes.
std::vector<LabelledRow> read_folders(const std::vector<std::string>& paths, Split split, const Loading& loading,
                                      RowTexts& texts);

}  // namespace capstan
