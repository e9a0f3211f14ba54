#include "run/exports/export_run.hpp"

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "run/exports/gguf.hpp"
#include "run/exports/huggingface.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

/// The folder without a slash at its end. Throws Error unless it is absent or empty.
fs::path new_folder(const fs::path& given) {
  const fs::path folder = given.has_filename() ? given : given.parent_path();
  const fs::file_status status = fs::symlink_status(folder);
  if (fs::exists(status) && !(fs::is_directory(status) && fs::is_empty(folder)))
    throw Error(fmt::format("{}: is there already, and is no empty folder: give another one", folder.string()));
  return folder;
}

void write_export(const SavedRun& run, ExportFormat format, const fs::path& folder) {
  switch (format) {
    case ExportFormat::huggingface:
      return write_huggingface(run, folder, WithOnnx::no);
    case ExportFormat::onnx:
      return write_huggingface(run, folder, WithOnnx::yes);
    case ExportFormat::gguf:
      return write_gguf(run, folder);
  }
}

}  // namespace

/// The folder is made under another name: it is whole or not there. What a killed export has left is removed.
std::vector<std::string> export_run(const SavedRun& run, ExportFormat format, const fs::path& given) {
  const fs::path folder = new_folder(given);
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : ".";
  const fs::path unfinished = parent / (".exporting-" + folder.filename().string());
  remove_tree(unfinished.string());
  try {
    make_folders(unfinished.string());
    write_export(run, format, unfinished);
    sync_folder(unfinished.string());
    rename_path(unfinished.string(), folder.string());
  } catch (...) {
    remove_tree(unfinished.string());
    throw;
  }
  sync_folder(parent.string());
  return names_in_folder(folder.string());
}

}  // namespace capstan
