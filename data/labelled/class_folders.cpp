// Takes classes from the names of folders and files, and writes the messages about folders and files that are no class.
#include "data/labelled/class_folders.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"
#include "data/files/file_list.hpp"
#include "data/files/text_file.hpp"

namespace capstan {
namespace {

/// What to do where each line of a file is a text. `files`: of all classes; `path`: whose last part is the class.
std::string table_of_lines(const std::filesystem::path& files, const char* path) {
  return fmt::format(
      "if each line is a text, write a table: for f in {}; do sed \"s|^|$(basename {})\\t|\" $f; done > TRAIN.tsv",
      files.string(), path);
}

/// Throws Error if the folders that would be classes are the parts of a data set (train, test), whose folders are the
/// classes. `files`: those found below `paths`.
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

/// Throws Error that says why no file is a text of a class. `loose`: files beside the folders; `files`: number of all
/// files.
[[noreturn]] void refuse_no_texts(const std::vector<std::string>& paths, const std::vector<std::string>& wanted,
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

/// Throws Error for classes of one file each, of which `file` is one, that have many lines.
[[noreturn]] void refuse_lists_of_texts(const std::string& file) {
  throw Error(fmt::format(
      "{}: each class has one file of many lines, and with format: folders a file is one text; give several files "
      "per class or, {}",
      file, table_of_lines(std::filesystem::path(file).parent_path().parent_path() / "*/*", "$(dirname $f)")));
}

/// Logs which files are not read. `what`: the reason, as the end of a sentence.
void say_left_out(const std::vector<std::string>& files, const char* what, Split split, const LogLine& log) {
  if (!files.empty() && log)
    log(fmt::format("data.{}: left out {} file{} {}: {}", to_string(split), files.size(), files.size() == 1 ? "" : "s",
                    what, join_first(files)));
}

/// The label of a file, empty if it has none: the name of its folder, one level below the path.
std::string label_of_file(const std::string& name) {
  const size_t slash = name.find('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

/// Reads a file that is a text of `label`; a text or label that is not UTF-8 goes to loading.bad.
void read_file_of_class(const std::string& path, const std::string& label, Split split, const Loading& loading,
                        RowTexts& texts, Progress& progress, std::vector<LabelledRow>& rows) {
  if (!loading.bad.guard([&] { check_name(label, path, "the class in its path"); })) return loading.bad.lost(label);
  std::string text = read_text_file(path);
  progress.add(static_cast<double>(text.size()));
  TableReading of_text;
  of_text.file = path;
  const uint32_t number = loading.check.add_file(split, std::move(of_text));
  loading.check.set_content(number, text);
  if (loading.utf8 && !loading.bad.guard([&] { check_utf8(text, path); })) return loading.bad.lost(label);
  rows.push_back(texts.add({label, std::move(text), 1}, number));
}

/// Says which folders, given with their numbers of files, are left out because data.classes (`wanted`, may be empty)
/// does not name them. Throws Error for a class without a folder of training texts.
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

}  // namespace

std::vector<LabelledRow> read_folders(const std::vector<std::string>& paths, Split split, const Loading& loading,
                                      RowTexts& texts) {
  const std::vector<std::string>& wanted = loading.config.classes;
  std::vector<LabelledRow> rows;
  std::vector<std::string> no_texts, loose;  // empty or binary files; files beside the folders
  std::map<std::string, int64_t> folders;    // files in each
  const std::vector<FoundFile> files = list_files(paths, {}, &no_texts);
  if (wanted.empty()) refuse_parts_as_classes(files, paths);
  Progress progress(loading.log, "reading", 0);
  const int64_t bad_before = loading.bad.count();
  for (const FoundFile& file : files) {
    const std::string label = label_of_file(file.name);
    if (label.empty()) {
      loose.push_back(file.path);
      continue;
    }
    ++folders[label];
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), label) != wanted.end())
      read_file_of_class(file.path, label, split, loading, texts, progress, rows);
  }
  if (rows.empty() && !paths.empty() && loading.bad.count() == bad_before)
    refuse_no_texts(paths, wanted, loose, files.size());
  report_folders(folders, wanted, split, loading.log);
  say_left_out(no_texts, "that are empty or binary", split, loading.log);
  // With named classes, files beside their folders are expected: the original IMDB has lists of addresses there.
  if (wanted.empty()) say_left_out(loose, "beside the folders of the classes", split, loading.log);
  const auto is_list = [&](const LabelledRow& row) {
    constexpr int64_t many = 20;
    return loading.check.files()[row.file].encoding.lf >= many;
  };
  const bool alone = std::all_of(folders.begin(), folders.end(), [](const auto& f) { return f.second == 1; });
  if (split == Split::train && rows.size() > 1 && alone && std::all_of(rows.begin(), rows.end(), is_list))
    refuse_lists_of_texts(files.front().path);
  return rows;
}

}  // namespace capstan
