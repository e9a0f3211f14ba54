// Takes classes from the names of folders and files, and writes the messages about folders and files that are no class.
// tests/data/labelled/test_labelled_source.cpp and test_tables_people_have.cpp.
#include "data/labelled/class_folders.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

/// What to do where each line of a file is a text. `files`: of all classes; `path`: whose last part is the class.
std::string table_of_lines(const std::filesystem::path& files, const char* path) {
  return fmt::format(
      "if each line is a text, write a table: for f in {}; do sed \"s|^|$(basename {})\\t|\" $f; done > TRAIN.tsv",
      files.string(), path);
}

}  // namespace

void refuse_parts_as_classes(const std::vector<FoundFile>& files, const std::vector<std::string>& paths) {
  std::map<std::string, std::set<std::string>> parts;  // a folder -> the folders in it
  for (const FoundFile& file : files) {
    const std::vector<std::string_view> names = split(file.name, "/");
    if (names.size() < 2) continue;
    std::set<std::string>& inner = parts[std::string(names[0])];
    if (names.size() > 2) inner.emplace(names[1]);
  }
  if (parts.size() < 2) return;
  std::vector<std::string> names, classes;
  for (const auto& [part, inner] : parts) {
    if (!names_split(part)) return;
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

void report_folders(const std::map<std::string, int64_t>& folders, const std::vector<std::string>& wanted, Split split,
                    const LogLine& log) {
  if (wanted.empty()) return;
  std::vector<std::string> left_out, missing;
  for (const auto& [name, files] : folders)
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end())
      left_out.push_back(fmt::format("{} ({} files)", name, files));
  for (const std::string& name : wanted)
    if (folders.count(name) == 0) missing.push_back(name);
  if (!missing.empty() && split == Split::train)
    throw Error(fmt::format("data.classes: there is no folder '{}'{}", join_first(missing, "', '"),
                            left_out.empty() ? "" : "; not in data.classes: " + join_first(left_out)));
  if (!left_out.empty() && log)
    log(fmt::format("data.{}: left out folders that data.classes does not name: {}", to_string(split),
                    join_first(left_out)));
}

void refuse_no_texts(const std::vector<std::string>& paths, const std::vector<std::string>& wanted,
                     const std::vector<std::string>& loose, size_t files) {
  if (!loose.empty() && loose.size() == files)
    throw Error(fmt::format(
        "{}: is not in the folder of a class: with format: folders, give the folder that holds one folder "
        "per class (such as train with pos and neg in it); {}",
        loose.front(), table_of_lines(std::filesystem::path(loose.front()).parent_path() / "*", "${f%.*}")));
  throw Error(wanted.empty()
                  ? fmt::format("{}: holds no files in the folders of classes", join_first(paths))
                  : fmt::format("{}: holds no folder called {}", join_first(paths), join_first(wanted, " or ")));
}

void refuse_lists_of_texts(const std::string& file) {
  throw Error(fmt::format(
      "{}: each class has one file of many lines, and with format: folders a file is one text; give several files "
      "per class or, {}",
      file, table_of_lines(std::filesystem::path(file).parent_path().parent_path() / "*/*", "$(dirname $f)")));
}

}  // namespace capstan
