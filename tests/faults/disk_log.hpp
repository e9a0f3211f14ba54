// What a disk may hold after a loss of power: a log of the changes to a folder, in the order in which they were asked
// for, and the states that a prefix of it allows. Until a file is synced, its data may be absent, torn or zeros; until
// a folder is synced, names created, renamed or removed in it may be as before. A rename is whole or not there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace capstan::testing {

/// Which of the changes that were not synced are on the disk.
struct Survival {
  enum class Names {
    all,      // all of them
    synced,   // what the folder's last sync covers: what POSIX promises
    journal,  // all up to the last sync of any file or folder: ext4, xfs, btrfs
    drawn     // in every folder, all up to a random one
  };
  enum class Data {
    all,     // as after a kill
    synced,  // what the file's last sync covers; a new file is empty
    zeros,   // sizes, but zeros for data
    torn,    // the last write of every file by half
    drawn    // each file's writes up to a random one, which is torn
  };
  Names names;
  Data data;
};
/// The combinations that differ, and one drawn at random.
const std::vector<Survival>& survivals();
std::string describe(const Survival& survival);

/// A folder's content: path → what is there.
struct DiskEntry {
  char kind = 'f';      // file, d: folder, l: link
  std::string content;  // of the file; where the link points
};
using DiskImage = std::map<std::string, DiskEntry>;
DiskImage read_image(const std::filesystem::path& folder);
void write_image(const DiskImage& image, const std::filesystem::path& folder);

class DiskLog {
 public:
  /// The content of `root` now is on the disk. Paths below are absolute and have no links in their folders.
  explicit DiskLog(const std::filesystem::path& root);

  bool holds(const std::string& path) const;
  bool knows(const std::string& path) const;
  void create_file(const std::string& path);
  void create_folder(const std::string& path);
  void create_link(const std::string& path, const std::string& target);
  void write(const std::string& path, uint64_t offset, const std::string& bytes);
  void truncate(const std::string& path, uint64_t size);
  void remove(const std::string& path);
  void rename(const std::string& from, const std::string& to);
  /// A file's data, or a folder's names.
  void sync(const std::string& path);

  /// Changes and syncs so far; the first entry is the start.
  size_t length() const { return log_.size(); }
  /// The i-th of them: "rename runs/x/.last.tmp runs/x/last".
  const std::string& entry(size_t i) const { return log_[i]; }
  /// The content after the first `prefix` entries (at least one) and a loss of power.
  DiskImage after(size_t prefix, const Survival& survival, std::mt19937& random) const;

 private:
  struct DataChange {
    size_t time;
    uint64_t offset;
    std::string bytes;
    bool cut;  // truncation to `offset`
  };
  struct NameChange {
    size_t time;
    std::vector<std::pair<std::string, int>> names;  // node, or -1: removed
    int other = -1;                                  // the other folder of a rename, if there is one
  };
  struct Node {
    DiskEntry start;  // content of a file that was there at the beginning
    std::vector<DataChange> data;
    std::vector<NameChange> names;
    std::vector<size_t> syncs;
    std::map<std::string, int> now;  // a folder's names without any loss
  };

  size_t note(const std::string& text);
  int find(const std::filesystem::path& path) const;
  int add(DiskEntry entry);
  void create(const std::string& path, const DiskEntry& entry, const char* what);
  /// The folder of a path and the path's name in it.
  std::pair<Node*, std::string> place_of(const std::string& path);
  void set(const std::string& path, int node, size_t time);
  std::string content(const Node& node, size_t prefix, Survival::Data data, std::mt19937& random) const;
  /// The last change of a folder's names that survives; those of other times do when they belong to a rename whose
  /// other folder keeps it.
  size_t kept_until(const Node& folder, size_t prefix, Survival::Names names, std::mt19937& random) const;
  void collect(int node, const std::string& path, const std::vector<size_t>& kept, const std::vector<std::string>& data,
               DiskImage& image) const;

  std::filesystem::path root_;
  std::vector<Node> nodes_;  // the first is the root
  std::vector<std::string> log_;
  std::vector<size_t> syncs_;
};

}  // namespace capstan::testing
