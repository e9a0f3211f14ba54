#include "tests/faults/disk_log.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace capstan::testing {
namespace fs = std::filesystem;
namespace {

/// The last of `times` before `prefix`; 0, the start, when there is none.
size_t last_before(const std::vector<size_t>& times, size_t prefix) {
  const auto next = std::lower_bound(times.begin(), times.end(), prefix);
  return next == times.begin() ? 0 : *(next - 1);
}

/// How many of these changes were made up to `time`.
template <class Change>
size_t count_until(const std::vector<Change>& changes, size_t time) {
  return static_cast<size_t>(
      std::count_if(changes.begin(), changes.end(), [time](const Change& change) { return change.time <= time; }));
}

void overwrite(std::string& content, uint64_t offset, const std::string& bytes) {
  if (content.size() < offset + bytes.size()) content.resize(offset + bytes.size(), '\0');
  content.replace(offset, bytes.size(), bytes);
}

}  // namespace

const std::vector<Survival>& survivals() {
  using Names = Survival::Names;
  using Data = Survival::Data;
  static const std::vector<Survival> list = {
      {Names::all, Data::all},        {Names::synced, Data::synced}, {Names::all, Data::synced},
      {Names::all, Data::zeros},      {Names::all, Data::torn},      {Names::synced, Data::all},
      {Names::journal, Data::synced}, {Names::journal, Data::all},   {Names::drawn, Data::drawn},
      {Names::journal, Data::drawn},  {Names::drawn, Data::synced},
  };
  return list;
}

std::string describe(const Survival& survival) {
  static const char* const names[] = {"all names", "synced names", "journalled names", "drawn names"};
  static const char* const data[] = {"all data", "synced data", "zeros for data", "torn data", "drawn data"};
  return std::string(names[static_cast<int>(survival.names)]) + ", " + data[static_cast<int>(survival.data)];
}

DiskImage read_image(const fs::path& folder) {
  DiskImage image;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().lexically_relative(folder).string();
    if (entry.is_symlink()) {
      image[path] = {'l', fs::read_symlink(entry.path()).string()};
    } else if (entry.is_directory()) {
      image[path] = {'d', ""};
    } else {
      std::ifstream file(entry.path(), std::ios::binary);
      std::ostringstream text;
      text << file.rdbuf();
      image[path] = {'f', text.str()};
    }
  }
  return image;
}

void write_image(const DiskImage& image, const fs::path& folder) {
  for (const auto& [path, entry] : image) {  // a folder comes before what it holds
    if (entry.kind == 'd') fs::create_directory(folder / path);
    if (entry.kind == 'l') fs::create_symlink(entry.content, folder / path);
    if (entry.kind == 'f') std::ofstream(folder / path, std::ios::binary) << entry.content;
  }
}

DiskLog::DiskLog(const fs::path& root) : root_(fs::canonical(root)) {
  add({'d', ""});
  for (const auto& [path, entry] : read_image(root_)) {
    const int node = add(entry);
    const auto [folder, name] = place_of((root_ / path).string());
    folder->now[name] = node;
    folder->names.push_back({0, {{name, node}}});
  }
  log_.emplace_back("start");  // time 0, when everything is on the disk
}

bool DiskLog::holds(const std::string& path) const {
  const std::string relative = fs::path(path).lexically_relative(root_).string();
  return !relative.empty() && relative.rfind("..", 0) != 0;
}

bool DiskLog::knows(const std::string& path) const { return holds(path) && find(path) >= 0; }

size_t DiskLog::note(const std::string& text) {
  log_.push_back(text);
  return log_.size() - 1;
}

int DiskLog::find(const fs::path& path) const {
  int node = 0;
  const fs::path relative = path.lexically_relative(root_);
  if (relative == ".") return node;
  for (const fs::path& part : relative) {
    const auto found = nodes_[static_cast<size_t>(node)].now.find(part.string());
    if (found == nodes_[static_cast<size_t>(node)].now.end()) return -1;
    node = found->second;
  }
  return node;
}

int DiskLog::add(DiskEntry entry) {
  nodes_.emplace_back();
  nodes_.back().start = std::move(entry);
  return static_cast<int>(nodes_.size()) - 1;
}

std::pair<DiskLog::Node*, std::string> DiskLog::place_of(const std::string& path) {
  const fs::path whole(path);
  const int folder = find(whole.parent_path());
  if (folder < 0) throw std::logic_error("the log has no folder " + whole.parent_path().string());
  return {&nodes_[static_cast<size_t>(folder)], whole.filename().string()};
}

void DiskLog::set(const std::string& path, int node, size_t time) {
  const auto [folder, name] = place_of(path);
  folder->names.push_back({time, {{name, node}}});
  if (node < 0)
    folder->now.erase(name);
  else
    folder->now[name] = node;
}

void DiskLog::create(const std::string& path, const DiskEntry& entry, const char* what) {
  const size_t time = note(std::string(what) + " " + fs::path(path).lexically_relative(root_).string());
  const int node = add(entry);
  set(path, node, time);
}

void DiskLog::create_file(const std::string& path) { create(path, {'f', ""}, "create"); }
void DiskLog::create_folder(const std::string& path) { create(path, {'d', ""}, "mkdir"); }
void DiskLog::create_link(const std::string& path, const std::string& target) {
  create(path, {'l', target}, "symlink");
}

void DiskLog::write(const std::string& path, uint64_t offset, const std::string& bytes) {
  const int node = find(path);
  if (node < 0) throw std::logic_error("the log has no file " + path);
  const size_t time = note("write " + std::to_string(bytes.size()) + " bytes at " + std::to_string(offset) + " of " +
                           fs::path(path).lexically_relative(root_).string());
  nodes_[static_cast<size_t>(node)].data.push_back({time, offset, bytes, false});
}

void DiskLog::truncate(const std::string& path, uint64_t size) {
  const int node = find(path);
  if (node < 0) throw std::logic_error("the log has no file " + path);
  const size_t time = note("truncate " + fs::path(path).lexically_relative(root_).string());
  nodes_[static_cast<size_t>(node)].data.push_back({time, size, "", true});
}

void DiskLog::remove(const std::string& path) {
  set(path, -1, note("remove " + fs::path(path).lexically_relative(root_).string()));
}

void DiskLog::rename(const std::string& from, const std::string& to) {
  const int node = find(from);
  if (node < 0) throw std::logic_error("the log has no file " + from);
  const auto [old_folder, old_name] = place_of(from);
  const auto [folder, name] = place_of(to);
  const size_t time = note("rename " + fs::path(from).lexically_relative(root_).string() + " " +
                           fs::path(to).lexically_relative(root_).string());
  if (old_folder == folder) {
    folder->names.push_back({time, {{old_name, -1}, {name, node}}});
  } else {
    old_folder->names.push_back({time, {{old_name, -1}}, static_cast<int>(folder - nodes_.data())});
    folder->names.push_back({time, {{name, node}}, static_cast<int>(old_folder - nodes_.data())});
  }
  old_folder->now.erase(old_name);
  folder->now[name] = node;
}

void DiskLog::sync(const std::string& path) {
  const int node = find(path);
  if (node < 0) return;  // removed meanwhile
  const size_t time = note("sync " + fs::path(path).lexically_relative(root_).string());
  nodes_[static_cast<size_t>(node)].syncs.push_back(time);
  syncs_.push_back(time);
}

std::string DiskLog::content(const Node& node, size_t prefix, Survival::Data data, std::mt19937& random) const {
  using Data = Survival::Data;
  const size_t whole = count_until(node.data, prefix - 1),
               safe = count_until(node.data, last_before(node.syncs, prefix));
  size_t kept = data == Data::synced ? safe : whole;
  if (data == Data::drawn) kept = safe + random() % (whole - safe + 1);
  const bool torn = (data == Data::torn || (data == Data::drawn && random() % 2 == 0)) && kept > safe;
  std::string content = node.start.content;
  for (size_t i = 0; i < kept; ++i) {
    const DataChange& change = node.data[i];
    if (change.cut) {
      content.resize(change.offset, '\0');
      continue;
    }
    std::string bytes = change.bytes;
    if (data == Data::zeros && i >= safe) bytes.assign(bytes.size(), '\0');
    if (torn && i + 1 == kept) bytes.resize(bytes.size() / 2);
    overwrite(content, change.offset, bytes);
  }
  return content;
}

size_t DiskLog::kept_until(const Node& folder, size_t prefix, Survival::Names names, std::mt19937& random) const {
  const size_t safe = last_before(folder.syncs, prefix);
  switch (names) {
    case Survival::Names::all:
      return prefix - 1;
    case Survival::Names::synced:
      return safe;
    case Survival::Names::journal:
      return last_before(syncs_, prefix);
    case Survival::Names::drawn: {
      const size_t first = count_until(folder.names, safe), end = count_until(folder.names, prefix - 1);
      const size_t count = first + random() % (end - first + 1);
      return count == 0 ? 0 : folder.names[count - 1].time;
    }
  }
  return 0;
}

void DiskLog::collect(int index, const std::string& path, const std::vector<size_t>& kept,
                      const std::vector<std::string>& data, DiskImage& image) const {
  const Node& node = nodes_[static_cast<size_t>(index)];
  if (!path.empty())
    image[path] = {node.start.kind, node.start.kind == 'f' ? data[static_cast<size_t>(index)] : node.start.content};
  std::map<std::string, int> names;
  for (const NameChange& change : node.names) {
    const bool there = change.time <= kept[static_cast<size_t>(index)] ||
                       (change.other >= 0 && change.time <= kept[static_cast<size_t>(change.other)]);
    if (there)
      for (const auto& [name, child] : change.names) names[name] = child;
  }
  for (const auto& [name, child] : names)
    if (child >= 0) collect(child, path.empty() ? name : path + "/" + name, kept, data, image);
}

DiskImage DiskLog::after(size_t prefix, const Survival& survival, std::mt19937& random) const {
  std::vector<size_t> kept;
  std::vector<std::string> data;
  for (const Node& node : nodes_) {
    kept.push_back(kept_until(node, prefix, survival.names, random));
    data.push_back(node.start.kind == 'f' ? content(node, prefix, survival.data, random) : "");
  }
  DiskImage image;
  collect(0, "", kept, data, image);
  return image;
}

}  // namespace capstan::testing
