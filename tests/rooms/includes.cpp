#include "rooms/includes.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"

namespace capstan::testing {
namespace {

namespace fs = std::filesystem;

struct Include {
  std::string from, to;  // paths from the root
  int line = 0;
};

using Rooms = std::map<std::string, std::set<std::string>>;  // room -> rooms that it may include
using Findings = std::vector<std::string>;

std::string at(const std::string& file, int line) { return fmt::format("{}:{}: ", file, line); }

bool is_below(const std::string& path, const std::string& folder) { return starts_with(path, folder + "/"); }

/// What a room is called by; `kernels` is part of a room, not one of its own.
std::string short_name(const std::string& room) { return room.substr(room.rfind('/') + 1); }

/// The other room with the same short name; empty when there is none.
std::string namesake(const std::string& room, const Rooms& rooms) {
  for (const auto& [other, arrows] : rooms)
    if (short_name(room) != "kernels" && short_name(other) == short_name(room)) return other;
  return "";
}

/// The rooms that a name in the table means: itself and those below it.
std::set<std::string> rooms_called(const std::string& name, const Rooms& rooms) {
  std::set<std::string> called;
  for (const auto& [room, arrows] : rooms)
    if (room == name || is_below(room, name)) called.insert(room);
  return called;
}

Rooms read_table(const fs::path& root, const std::string& table, Findings& findings) {
  Rooms rooms;
  std::ifstream file(root / table);
  if (!file) findings.push_back(table + ":1: cannot be read");
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    line.resize(std::min(line.find('#'), line.size()));
    const size_t colon = line.find(':');
    if (line.find_first_not_of(' ') == std::string::npos) continue;
    const std::string room = line.substr(0, colon);
    if (colon == std::string::npos || rooms.count(room) > 0 || !fs::is_directory(root / room)) {
      findings.push_back(at(table, number) + "expected `room: rooms`, with a folder that has no line yet");
      continue;
    }
    if (const std::string other = namesake(room, rooms); !other.empty())
      findings.push_back(at(table, number) + "room " + room + " has the last name of room " + other);
    std::set<std::string> arrows;
    std::istringstream names(line.substr(colon + 1));
    for (std::string name; names >> name;) {
      const std::set<std::string> called = rooms_called(name, rooms);
      if (called.empty()) findings.push_back(at(table, number) + "there is no room " + name + " above this line");
      arrows.insert(called.begin(), called.end());
    }
    rooms[room] = arrows;
  }
  return rooms;
}

std::set<std::string> files_of(const fs::path& root, const Rooms& rooms) {
  std::set<std::string> files, tops;
  for (const auto& [room, arrows] : rooms) tops.insert(room.substr(0, room.find('/')));
  for (const std::string& top : tops)
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / top))
      if (entry.path().extension() == ".hpp" || entry.path().extension() == ".cpp")
        files.insert(entry.path().lexically_relative(root).generic_string());
  return files;
}

/// What a line includes in quotes; empty when it does not.
std::string included(std::string_view line) {
  for (const std::string_view part : {"#", "include", "\""}) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!starts_with(line, part)) return "";
    line.remove_prefix(part.size());
  }
  return std::string(line.substr(0, line.find('"')));
}

std::vector<Include> includes_of(const fs::path& root, const std::string& path) {
  std::vector<Include> includes;
  std::ifstream file(root / path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (const std::string name = included(line); !name.empty()) includes.push_back({path, name, number});
  }
  return includes;
}

/// Empty when the file is in none.
std::string room_of(const std::string& path, const Rooms& rooms) {
  std::string longest;
  for (const auto& [room, arrows] : rooms)
    if (is_below(path, room) && room.size() > longest.size()) longest = room;
  return longest;
}

std::string subject_of(const std::string& path) { return path.substr(0, path.rfind('.')); }

/// Walks the includes between subjects in depth and notes each one that leads back to a subject on the way.
class CircleSearch {
 public:
  CircleSearch(const std::vector<Include>& includes, Findings& findings) : findings_(findings) {
    for (const Include& include : includes)
      if (subject_of(include.from) != subject_of(include.to)) includes_[subject_of(include.from)].push_back(include);
    for (const auto& [subject, list] : includes_) visit(subject);
  }

 private:
  void visit(const std::string& subject) {
    if (!seen_.insert(subject).second) return;
    way_.push_back(subject);
    if (const auto list = includes_.find(subject); list != includes_.end())
      for (const Include& include : list->second) {
        const std::string next = subject_of(include.to);
        const auto before = std::find(way_.begin(), way_.end(), next);
        if (before == way_.end()) {
          visit(next);
          continue;
        }
        std::string circle;
        for (auto step = before; step != way_.end(); ++step) circle += *step + " -> ";
        findings_.push_back(at(include.from, include.line) + "closes a circle: " + circle + next);
      }
    way_.pop_back();
  }

  Findings& findings_;
  std::map<std::string, std::vector<Include>> includes_;
  std::set<std::string> seen_;
  std::vector<std::string> way_;
};

}  // namespace

std::vector<std::string> broken_rules(const fs::path& root, const std::string& table) {
  constexpr size_t max_subjects = 30;
  Findings findings;
  const Rooms rooms = read_table(root, table, findings);
  const std::set<std::string> files = files_of(root, rooms);
  std::map<std::string, std::set<std::string>> subjects;
  std::vector<Include> includes;
  for (const std::string& file : files) {
    const std::string room = room_of(file, rooms);
    if (room.empty()) findings.push_back(at(file, 1) + "is in no room of " + table);
    subjects[room].insert(subject_of(file));
    for (const Include& include : includes_of(root, file)) {
      if (files.count(include.to) == 0) {
        findings.push_back(at(file, include.line) + "there is no file " + include.to);
        continue;
      }
      includes.push_back(include);
      const std::string other = room_of(include.to, rooms);
      if (other != room && !room.empty() && rooms.at(room).count(other) == 0)
        findings.push_back(at(file, include.line) + "room " + room + " may not include room " + other + " (" + table +
                           ")");
    }
  }
  for (const auto& [room, list] : subjects)
    if (list.size() > max_subjects)
      findings.push_back(at(*list.begin() + ".*", 1) + fmt::format("room {} has {} subjects, at most {} are allowed",
                                                                   room, list.size(), max_subjects));
  CircleSearch(includes, findings);
  std::sort(findings.begin(), findings.end());
  return findings;
}

}  // namespace capstan::testing
