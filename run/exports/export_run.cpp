#include "run/exports/export_run.hpp"

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "run/exports/gguf.hpp"
#include "run/exports/huggingface.hpp"
#include "run/setup/file_safety.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

void write_export(const SavedRun& run, ExportFormat format, const fs::path& folder) {
  switch (format) {
    case ExportFormat::huggingface:
      return write_huggingface(run, folder, WithOnnx::no);
    case ExportFormat::onnx:
      if (facts_of(run.config.model).reads_texts)
        throw Error(fmt::format("export: a {} reads texts, which ONNX cannot hash to n-grams; use --format huggingface",
                                type_of(run.config.model)));
      return write_huggingface(run, folder, WithOnnx::yes);
    case ExportFormat::gguf:
      return write_gguf(run, folder);
  }
}

}  // namespace

std::vector<std::string> export_run(const SavedRun& run, ExportFormat format, const fs::path& given) {
  refuse_file_of_run(given);
  const std::string folder = new_folder(given.string());
  write_new_folder(folder, [&](const fs::path& unfinished) { write_export(run, format, unfinished); });
  return names_in_folder(folder);
}

}  // namespace capstan
