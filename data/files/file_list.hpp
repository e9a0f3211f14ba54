// Lists the files that a user names by paths, patterns and folders: for data.train and its like, and for --input of
// commands. The order of the files is the order of their rows and tokens, and therefore part of what a run was trained
// on. tests/data/test_text_file.cpp holds it and the patterns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capstan {

/// Which files of folders and patterns are taken. A pattern without '/' is held against a file's or folder's own name,
/// one with '/' against its path below the listed folder. Files that are named one by one are always taken.
struct FileFilter {
  std::vector<std::string> include;  // empty: all
  std::vector<std::string> exclude;  // files, and folders that are not entered
};

struct FoundFile {
  std::string path;
  std::string name;   // path below the listed folder or the pattern's fixed part: does not depend on where that is
  size_t source = 0;  // list_sources: which of the paths it comes from
};

/// An error message for a path that does not exist and is no pattern; empty for any other path.
std::string missing_file(const std::string& path);

/// The files that `paths` name, sorted by path, each once: files as they are; folders with everything below them;
/// patterns with `*`, `?` and `[a-z]` (within a name) and `**` (any number of folders). From folders and patterns,
/// hidden files and folders, the folders of runs, empty files and binary files (looks_binary) are left out. Throws
/// Error for a path that does not exist, and for a folder or pattern that gives no text. `left_out` gets the empty and
/// the binary files of folders, not those of patterns.
std::vector<FoundFile> list_files(const std::vector<std::string>& paths, const FileFilter& filter = {},
                                  std::vector<std::string>* left_out = nullptr);

/// Expands path by path: the files of paths[0], then those of paths[1], and so on.
/// Throws Error for a file that two paths name.
std::vector<FoundFile> list_sources(const std::vector<std::string>& paths, const FileFilter& filter = {});

/// Does a whole path match a pattern? Takes a time in proportion to the product of their numbers of parts.
bool matches_pattern(std::string_view path, std::string_view pattern);

}  // namespace capstan
