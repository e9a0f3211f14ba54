// A checkpoint marks how many bytes of the file belong to it, and their checksum. If they are as marked, the file is
// cut there; otherwise it is read line by line, and what is readable is kept. tests/train/test_run_files.cpp.
#include "train/records/metrics.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"

namespace capstan {
namespace {

std::function<void(const std::string& line)> record_sink;

namespace fs = std::filesystem;

/// The step of a line; nothing when it is damaged.
std::optional<int64_t> step_of_line(std::string_view text) {
  const nlohmann::json line = try_parse_json(text);
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) return std::nullopt;
  return line["step"].get<int64_t>();
}

std::string free_name(const std::string& path, const char* why) {
  for (int count = 1;; ++count)
    if (std::string name = fmt::format("{}.{}-{}", path, why, count); !fs::exists(fs::symlink_status(name)))
      return name;
}

/// Does the text begin with the bytes of the mark?
bool begins_as_marked(std::string_view text, const MetricsMark& mark) {
  const auto marked = static_cast<size_t>(std::max<int64_t>(mark.bytes, 0));
  return text.size() >= marked && hash_hex(text.substr(0, marked)) == mark.checksum;
}

}  // namespace

std::string read_metrics(const fs::path& folder, const RunState* last) {
  const std::string path = (folder / "metrics.jsonl").string();
  const MetricsMark mark = last != nullptr ? MetricsMark{last->metrics_bytes, last->metrics_checksum} : MetricsMark();
  std::error_code unknown;
  if (mark.bytes <= 0 && !fs::exists(path, unknown)) return "";
  std::string text = read_file(path);
  int64_t before = last != nullptr ? last->step : -1;
  if (mark.bytes >= 0 && !begins_as_marked(text, mark))
    throw Error(fmt::format("{}: not what the checkpoint of step {} recorded", path, before));
  size_t at = static_cast<size_t>(std::max<int64_t>(mark.bytes, 0));
  for (size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    const auto step = step_of_line(std::string_view(text).substr(at, end - at));
    if (!step) throw Error(fmt::format("{}: a line after that of step {} cannot be read", path, before));
    if (*step < before) throw Error(fmt::format("{}: a line of step {} follows those of step {}", path, *step, before));
    before = *step;
  }
  return text;
}

MetricsText readable_metrics(std::string_view text, int64_t step) {
  MetricsText result;
  bool later = false;
  size_t at = 0;
  for (size_t end; (end = text.find('\n', at)) != std::string_view::npos; at = end + 1) {
    const auto line_step = step_of_line(text.substr(at, end - at));
    // Steps are written in order: one up to `step` after a later one is damage.
    if (!line_step || (later && *line_step <= step)) ++result.bad;
    if (!line_step) continue;
    later = later || *line_step > step;
    if (*line_step > step) continue;
    result.kept += text.substr(at, end + 1 - at);
    ++result.lines;
  }
  return result;
}

MetricsFile::MetricsFile(std::string path, int64_t step, const MetricsMark& mark, bool own, const Warn& warn)
    : path_(std::move(path)) {
  check_replaceable(path_);
  std::error_code error;
  const bool exists = fs::exists(path_, error);
  if (error) throw_file_error("read", path_, error.value());  // a file that cannot be looked at is not missing
  const std::string content = exists ? read_file(path_) : "";
  const auto marked = static_cast<size_t>(std::max<int64_t>(mark.bytes, 0));
  if (mark.bytes >= 0 && begins_as_marked(content, mark)) {
    if (!own && content.size() > marked) {
      const std::string copy = free_name(path_, "replaced");
      replace_file(copy, content);
      warn(fmt::format("{} goes on from step {}: its later lines are kept in {}", path_, step, copy));
    }
    keep(content.substr(0, marked));
    return;
  }
  const bool differs = own && mark.bytes >= 0;
  if (differs && !exists)
    warn(fmt::format("{} is missing: its lines up to step {} are lost", path_, step));
  else
    salvage(content, step, differs, warn);
}

void MetricsFile::keep(std::string_view content) {
  kept_ += static_cast<int64_t>(content.size());
  hash_.add(content);
}

void MetricsFile::salvage(const std::string& content, int64_t step, bool damaged, const Warn& warn) {
  const MetricsText readable = readable_metrics(content, step);
  if (damaged || readable.bad > 0) {
    const std::string copy = free_name(path_, "damaged");
    replace_file(copy, content);
    replace_file(path_, readable.kept);
    const std::string state = readable.bad > 0
                                  ? fmt::format("is damaged ({} unreadable lines)", readable.bad)
                                  : fmt::format(
                                        "does not belong to the checkpoint of step {} (damaged, or another "
                                        "session has continued from an earlier step)",
                                        step);
    warn(fmt::format("{} {}: it was copied to {}, and continues with the {} lines up to step {} that can be read",
                     path_, state, copy, readable.lines, step));
  }
  keep(readable.kept);
}

FileWriter& MetricsFile::file() {
  if (file_) return *file_;
  std::error_code error;
  const auto size = fs::file_size(path_, error);
  if (!error && size > static_cast<uintmax_t>(kept_)) truncate_file(path_, static_cast<size_t>(kept_));
  file_.emplace(path_, FileWriter::Mode::append);
  return *file_;
}

void MetricsFile::add(const nlohmann::json& line) {
  const std::string text = json_text(line) + "\n";
  file().write(text);
  keep(text);
  if (record_sink) record_sink(text);
}

void set_record_sink(std::function<void(const std::string& line)> sink) { record_sink = std::move(sink); }

MetricsMark MetricsFile::sync() {
  file().sync();
  if (!named_) sync_folder(fs::path(path_).parent_path().string());
  named_ = true;
  return {kept_, hash_.hex()};
}

}  // namespace capstan
