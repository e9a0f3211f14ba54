#include "run/exports/export_run.hpp"

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "run/exports/export_files.hpp"
#include "run/exports/huggingface.hpp"
#include "run/setup/file_safety.hpp"

namespace capstan {
namespace fs = std::filesystem;

namespace {

void write_export(const SavedRun& run, ExportFormat format, const fs::path& folder) {
  const ModelFacts facts = facts_of(run.config.model);
  if (format == ExportFormat::onnx && facts.reads_texts)
    throw Error(fmt::format("export: a {} reads texts, which ONNX cannot hash to n-grams; use --format huggingface",
                            type_of(run.config.model)));
  if (format == ExportFormat::gguf && facts.predicts != Predicts::next_token)
    throw Error(fmt::format("export: GGUF has language models of Llama's shape (configs/lm-llama.yaml), not a {}",
                            type_of(run.config.model)));
  write_huggingface(run, folder);
  if (const std::string script = export_script(format); !script.empty())
    write_file((folder / script).string(), format == ExportFormat::onnx ? export_onnx : export_gguf);
}

}  // namespace

std::string export_script(ExportFormat format) {
  if (format == ExportFormat::huggingface) return "";
  return fmt::format("export_{}.py", enum_name(format));
}

std::vector<std::string> export_run(const SavedRun& run, ExportFormat format, const fs::path& given) {
  refuse_file_of_run(given);
  const std::string folder = new_folder(given.string());
  write_new_folder(folder, [&](const fs::path& unfinished) { write_export(run, format, unfinished); });
  return names_in_folder(folder);
}

}  // namespace capstan
