#include "train/runs/run_folder.hpp"

namespace capstan {
namespace {

const std::filesystem::path& created(const std::filesystem::path& folder) {
  make_folders(folder.string());
  return folder;
}

}  // namespace

RunFolder::RunFolder(std::filesystem::path folder)
    : folder_(std::move(folder)), lock_((created(folder_) / ".lock").string()), checkpoints_(folder_ / "checkpoints") {
  if (!lock_.try_lock())
    throw Error(fmt::format("{}: another process is training in this folder: wait for it or choose another folder",
                            folder_.string()));
  remove_unfinished(folder_.string());
  checkpoints_.recover();
}

}  // namespace capstan
