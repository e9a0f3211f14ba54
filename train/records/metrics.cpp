#include "train/records/metrics.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"

namespace capstan {
namespace {

/// Length of the leading part whose lines are complete and belong to steps up to `step`.
size_t valid_length(std::string_view text, int64_t step) {
  size_t length = 0;
  for (size_t end; (end = text.find('\n', length)) != std::string_view::npos; length = end + 1) {
    const nlohmann::json line = try_parse_json(text.substr(length, end - length));
    if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer() ||
        line["step"].get<int64_t>() > step)
      break;
  }
  return length;
}

const std::string& cut(const std::string& path, int64_t step) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return path;
  const auto [size, keep] = [&] {
    const MappedFile file(path);
    return std::make_pair(file.size(), valid_length({reinterpret_cast<const char*>(file.data()), file.size()}, step));
  }();
  if (keep < size) truncate_file(path, keep);
  return path;
}

}  // namespace

MetricsFile::MetricsFile(const std::string& path, int64_t step) : file_(cut(path, step), FileWriter::Mode::append) {}

void MetricsFile::add(const nlohmann::json& line) { file_.write(json_text(line) + "\n"); }

}  // namespace capstan
