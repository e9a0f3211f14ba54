// Locks the folder of a run and checks that all ranks see the same one. tests/train/test_loop.cpp.
#include "train/checkpoints/run_folder.hpp"

#include <chrono>
#include <thread>

#include "core/io/hash.hpp"

namespace capstan {
namespace {

/// What rank 0 writes into the folder, for the others to see.
constexpr const char* probe_name = ".ranks";

std::string read_probe(const std::filesystem::path& folder) {
  try {
    return read_file((folder / probe_name).string());
  } catch (const Error&) {
    return "";
  }
}

/// Does this rank see the text in the folder within five seconds? A file system over the network may show new files
/// late.
bool sees(const std::filesystem::path& folder, const std::string& text) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (read_probe(folder) == text) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return false;
}

/// Collective: throws Error unless the folder is the same for all ranks, which all write into it.
void check_shared(const std::filesystem::path& folder, Communicator& ranks) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  const std::string path = (folder / probe_name).string();
  const std::string text = ranks.broadcast(ranks.first() ? hash_hex(fmt::format("{} {}", ranks.name_of(0), now)) : "");
  if (ranks.first()) replace_file(path, text);
  ranks.barrier();
  const std::vector<char> seen = ranks.gather_values<char>(sees(folder, text) ? 1 : 0);
  if (ranks.first()) remove_tree(path);
  for (int rank = 0; rank < ranks.size(); ++rank)
    if (seen[static_cast<size_t>(rank)] == 0)
      throw Error(
          fmt::format("{}: this folder of {} is not the one of {}: all ranks write into the run's folder; put it "
                      "on a file system that all machines share (key folder)",
                      folder.string(), ranks.name_of(rank), ranks.name_of(0)));
}

/// Throws Error where a folder that is no run's has a file that training would replace. A run's has a lock, or
/// checkpoints where it was copied without hidden files.
void refuse_files_of_others(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / ".lock") || Checkpoints(folder / "checkpoints").last()) return;
  for (const char* const name : {"config.yaml", "tokenizer.json", "classes.txt", "metrics.jsonl", "train.log"})
    if (std::filesystem::is_regular_file(std::filesystem::symlink_status(folder / name)))  // others are named later
      throw Error(
          fmt::format("{}: training would replace this file, which belongs to no run: move it away, or give the "
                      "run another name",
                      (folder / name).string()));
}

}  // namespace

RunFolder::RunFolder(std::filesystem::path folder, Communicator& ranks)
    : folder_(std::move(folder)), checkpoints_(folder_ / "checkpoints") {
  if (ranks.first()) {
    refuse_files_of_others(folder_);
    make_folders(folder_.string());
    lock_.emplace((folder_ / ".lock").string());
    if (!lock_->try_lock())
      throw Error(fmt::format("{}: another process is training in this folder: wait for it or choose another folder",
                              folder_.string()));
    remove_unfinished(folder_.string());
    checkpoints_.recover();
  }
  if (ranks.size() > 1) check_shared(folder_, ranks);
}

}  // namespace capstan
