// Classes of data with one text per file, whose folder is its class (format: folders): what is refused and what is left
// out. For the reader of rows; tests/data/labelled/test_labelled_source.cpp ("one folder per class") and
// test_tables_people_have.cpp hold it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/io/progress.hpp"
#include "data/files/file_list.hpp"
#include "data/files/split.hpp"

namespace capstan {

/// Throws Error if the folders that would be classes are the parts of a data set (train, test), whose folders are the
/// classes. `files`: those found below `paths`.
void refuse_parts_as_classes(const std::vector<FoundFile>& files, const std::vector<std::string>& paths);

/// Throws Error that says why no file is a text of a class. `loose`: files beside the folders; `files`: number of all
/// files.
[[noreturn]] void refuse_no_texts(const std::vector<std::string>& paths, const std::vector<std::string>& wanted,
                                  const std::vector<std::string>& loose, size_t files);

/// Throws Error for classes of one file each, of which `file` is one, that have many lines.
[[noreturn]] void refuse_lists_of_texts(const std::string& file);

/// Says which folders, given with their numbers of files, are left out because data.classes (`wanted`, may be empty)
/// does not name them. Throws Error for a class without a folder of training texts.
void report_folders(const std::map<std::string, int64_t>& folders, const std::vector<std::string>& wanted, Split split,
                    const LogLine& log);

}  // namespace capstan
