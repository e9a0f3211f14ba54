// A pattern is divided at its slashes; the parts in front of the first wildcard are a folder that is walked, and the
// names below it are held against the rest. Paths are sorted as bytes, whatever the locale.
#include "data/files/file_list.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "core/base/error.hpp"
#include "core/strings/pattern.hpp"
#include "core/strings/strings.hpp"
#include "data/files/text_file.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(path, "/"))
    if (!part.empty()) parts.emplace_back(part);
  return parts;
}

bool has_wildcard(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

/// reachable[j] says whether the first j parts of the pattern match the parts of the path so far. There is no
/// backtracking, so no pattern is slow.
bool parts_match(const std::vector<std::string>& path, const std::vector<std::string>& pattern) {
  std::vector<bool> reachable(pattern.size() + 1, false);
  reachable[0] = true;
  const auto skip_any = [&](std::vector<bool>& matched) {  // `**` may match no folder at all
    for (size_t j = 0; j < pattern.size(); ++j)
      if (matched[j] && pattern[j] == "**") matched[j + 1] = true;
  };
  skip_any(reachable);
  for (const std::string& part : path) {
    std::vector<bool> next(pattern.size() + 1, false);
    for (size_t j = 0; j < pattern.size(); ++j) {
      if (!reachable[j]) continue;
      if (pattern[j] == "**")
        next[j] = true;
      else if (fnmatch(pattern[j].c_str(), part.c_str(), FNM_NOESCAPE) == 0)
        next[j + 1] = true;
    }
    skip_any(next);
    reachable = std::move(next);
  }
  return reachable[pattern.size()];
}

/// An include or exclude pattern: see FileFilter.
bool selects(const std::string& pattern, const std::string& name) {
  if (pattern.find('/') != std::string::npos) return matches_pattern(name, pattern);
  const std::vector<std::string> parts = parts_of(name);
  return !parts.empty() && matches_pattern(parts.back(), pattern);
}

bool selects_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& p) { return selects(p, name); });
}

[[noreturn]] void throw_unreadable(const fs::path& path, const std::error_code& problem) {
  throw Error(fmt::format("{}: cannot be read: {}", path.string(), problem.message()));
}

/// Throws Error where the system does not say: a file that is left out for this reason would change what is trained on.
fs::file_type type_of(const fs::path& path) {
  std::error_code problem;
  const fs::file_type type = fs::status(path, problem).type();
  if (problem == std::errc::too_many_symbolic_link_levels) return fs::file_type::not_found;
  if (type == fs::file_type::none) throw_unreadable(path, problem);
  return type;
}

/// Is a folder that of a run? Its files are no data.
bool is_run_folder(const fs::path& folder) {
  std::error_code unknown;
  return fs::exists(folder / "config.yaml", unknown) &&
         (fs::exists(folder / "checkpoints", unknown) || fs::exists(folder / "train.log", unknown));
}

/// Calls visit(path, name) for every file below `folder`, but those of runs. Links to folders are not followed, so
/// there are no circles.
void walk(const fs::path& folder, const FileFilter& filter,
          const std::function<void(const fs::path&, const std::string&)>& visit) {
  std::error_code problem;
  for (auto entry = fs::recursive_directory_iterator(folder, problem);
       !problem && entry != fs::recursive_directory_iterator(); entry.increment(problem)) {
    const std::string name = entry->path().lexically_relative(folder).generic_string();
    const fs::file_type type = type_of(entry->path());
    const bool hidden = entry->path().filename().string().front() == '.';
    if (hidden || selects_any(filter.exclude, name) ||
        (type == fs::file_type::directory && is_run_folder(entry->path()))) {
      if (type == fs::file_type::directory) entry.disable_recursion_pending();
      continue;
    }
    if (type == fs::file_type::regular && (filter.include.empty() || selects_any(filter.include, name)))
      visit(entry->path(), name);
  }
  if (problem) throw_unreadable(folder, problem);
}

bool is_text(const fs::path& path) {
  std::error_code problem;
  const auto size = fs::file_size(path, problem);
  if (problem) throw_unreadable(path, problem);
  return size > 0 && !looks_binary(path.string());
}

void add_folder(std::vector<FoundFile>& found, const std::string& path, const FileFilter& filter,
                std::vector<std::string>* left_out) {
  const size_t before = found.size();
  walk(path, filter, [&](const fs::path& file, const std::string& name) {
    if (is_text(file))
      found.push_back({file.string(), name});
    else if (left_out != nullptr)
      left_out->push_back(file.string());
  });
  if (found.size() > before) return;
  throw Error(fmt::format("{}: the folder holds no text{}", path,
                          filter.include.empty() && filter.exclude.empty()
                              ? " (hidden, empty and binary files are left out)"
                              : " selected by include and exclude; name a file, or change data.include"));
}

void add_pattern(std::vector<FoundFile>& found, const std::string& pattern, const FileFilter& filter) {
  std::vector<std::string> rest = parts_of(pattern);
  fs::path base = pattern.front() == '/' ? "/" : "";
  while (!has_wildcard(rest.front())) {
    base /= rest.front();
    rest.erase(rest.begin());
  }
  const fs::path folder = base.empty() ? fs::path(".") : base;
  std::error_code problem;
  if (!fs::is_directory(folder, problem))
    throw Error(fmt::format("{}: there is no folder {}", pattern, folder.string()));
  const size_t before = found.size();
  walk(folder, filter, [&](const fs::path& file, const std::string& name) {
    if (parts_match(parts_of(name), rest) && is_text(file)) found.push_back({(base / name).string(), name});
  });
  if (found.size() == before) throw Error(fmt::format("{}: no text file matches", pattern));
}

}  // namespace

bool matches_pattern(std::string_view path, std::string_view pattern) {
  return parts_match(parts_of(path), parts_of(pattern));
}

std::string missing_file(const std::string& path) {
  std::error_code problem;
  if (fs::exists(path, problem) || has_wildcard(path)) return "";
  if (starts_with(path, "~/"))
    return fmt::format("{}: no such file or folder; a shell replaces ~ only where a word begins: write $HOME{}", path,
                       path.substr(1));
  return fmt::format("{}: no such file or folder; check the path (the program runs in {})", path,
                     fs::current_path(problem).string());
}

std::vector<FoundFile> list_files(const std::vector<std::string>& paths, const FileFilter& filter,
                                  std::vector<std::string>* left_out) {
  std::vector<FoundFile> found;
  for (const std::string& path : paths) {
    const fs::file_type type = type_of(path);
    if (type == fs::file_type::directory)
      add_folder(found, path, filter, left_out);
    else if (type == fs::file_type::not_found && has_wildcard(path))
      add_pattern(found, path, filter);
    else if (const std::string missing = missing_file(path); !missing.empty())
      throw Error(missing);
    else
      found.push_back({path, fs::path(path).filename().string()});
  }
  std::sort(found.begin(), found.end(), [](const FoundFile& a, const FoundFile& b) { return a.path < b.path; });
  std::set<std::string> known;  // canonical paths: x.txt and ./x.txt are one file
  const auto seen = [&known](const FoundFile& file) {
    std::error_code problem;
    const fs::path canonical = fs::canonical(file.path, problem);
    return !known.insert(problem ? file.path : canonical.string()).second;
  };
  found.erase(std::remove_if(found.begin(), found.end(), seen), found.end());
  return found;
}

std::vector<FoundFile> list_sources(const std::vector<std::string>& paths, const FileFilter& filter) {
  std::vector<FoundFile> found;
  std::map<std::string, size_t> source_of;  // by canonical path
  for (size_t source = 0; source < paths.size(); ++source)
    for (FoundFile& file : list_files({paths[source]}, filter)) {
      std::error_code problem;
      const auto [known, is_new] = source_of.emplace(fs::canonical(file.path, problem).string(), source);
      if (!is_new && known->second != source)
        throw Error(
            fmt::format("{}: belongs to two sources, {} and {}; each text has one weight: remove it from one "
                        "of them",
                        file.path, paths[known->second], paths[source]));
      file.source = source;
      found.push_back(std::move(file));
    }
  return found;
}

}  // namespace capstan
