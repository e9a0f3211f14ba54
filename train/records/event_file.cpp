#include "train/records/event_file.hpp"

#include <nmmintrin.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "train/evaluation/metric.hpp"

namespace capstan {
namespace {

namespace fs = std::filesystem;

constexpr const char* name_begin = "events.out.tfevents.";
constexpr size_t header_bytes = 12, footer_bytes = 4;

template <class T>
void append_number(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));  // x86 is little endian
  out.append(bytes, sizeof(T));
}

template <class T>
T number_at(std::string_view text, size_t at) {
  T value;
  std::memcpy(&value, text.data() + at, sizeof(T));
  return value;
}

// Protocol buffers: a field is a key (field number and wire type) and its value.
enum class Wire : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_key(std::string& out, uint32_t field, Wire wire) {
  append_varint(out, field << 3 | static_cast<uint32_t>(wire));
}

void append_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  append_key(out, field, Wire::bytes);
  append_varint(out, bytes.size());
  out += bytes;
}

std::optional<uint64_t> take_varint(std::string_view& data) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !data.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(data.front());
    data.remove_prefix(1);
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string event_head(double wall_time, int64_t step) {
  std::string out;
  append_key(out, 1, Wire::fixed64);
  append_number(out, wall_time);
  append_key(out, 2, Wire::varint);
  append_varint(out, static_cast<uint64_t>(step));
  return out;
}

/// A name for a copy of a damaged file, without "tfevents": TensorBoard would read it.
std::string name_of_copy(const std::string& path) {
  const fs::path file(path);
  std::string name = file.filename().string();
  name.replace(name.find("tfevents"), std::string_view("tfevents").size(), "damaged");
  fs::path copy = file.parent_path() / name;
  for (int count = 2; fs::exists(fs::symlink_status(copy)); ++count)
    copy = file.parent_path() / fmt::format("{}-{}", name, count);
  return copy.string();
}

/// Removes what earlier sessions wrote about steps after `step`.
void cut_files(const fs::path& folder, int64_t step, bool open_window, const EventFile::Warn& warn) {
  for (const std::string& name : names_in_folder(folder.string())) {
    const std::string path = (folder / name).string();
    if (!starts_with(name, name_begin) || !fs::is_regular_file(path)) continue;
    const std::string content = read_file(path);
    const EventsKept kept = events_until(content, step, open_window);
    if (kept.damaged) {
      const std::string copy = name_of_copy(path);
      replace_file(copy, content);
      warn(fmt::format("{} is damaged at byte {}: it was copied to {}, and ends there", path, kept.bytes, copy));
    }
    if (kept.bytes < content.size()) truncate_file(path, kept.bytes);
  }
}

/// TensorBoard reads the files of a folder in the order of their names: here by start time, then by step.
std::string file_name(const std::string& folder, int64_t step) {
  char host[256] = "host";
  gethostname(host, sizeof(host) - 1);
  return (fs::path(folder) /
          fmt::format("{}{:010}.{}.{:012}", name_begin, static_cast<int64_t>(now()), host, std::max<int64_t>(step, 0)))
      .string();
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : bytes) crc = _mm_crc32_u8(crc, static_cast<unsigned char>(byte));
  return ~crc;
}

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

std::string framed(std::string_view data) {
  std::string out;
  append_number(out, static_cast<uint64_t>(data.size()));
  append_number(out, masked_crc32c(out));
  out += data;
  append_number(out, masked_crc32c(data));
  return out;
}

std::string scalar_event(double wall_time, int64_t step, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    append_bytes(value, 1, scalar.tag);
    append_key(value, 2, Wire::fixed32);
    append_number(value, scalar.value);
    append_bytes(summary, 1, value);
  }
  std::string event = event_head(wall_time, step);
  append_bytes(event, 5, summary);
  return event;
}

std::optional<int64_t> step_of_event(std::string_view data) {
  while (const std::optional<uint64_t> key = take_varint(data)) {
    const auto wire = static_cast<Wire>(*key & 7);
    if (wire == Wire::varint) {
      const std::optional<uint64_t> value = take_varint(data);
      if (value && *key >> 3 == 2) return static_cast<int64_t>(*value);
      if (!value) return std::nullopt;
      continue;
    }
    const std::optional<uint64_t> size = wire == Wire::fixed64   ? std::optional<uint64_t>(8)
                                         : wire == Wire::fixed32 ? std::optional<uint64_t>(4)
                                         : wire == Wire::bytes   ? take_varint(data)
                                                                 : std::nullopt;
    if (!size || *size > data.size()) return std::nullopt;
    data.remove_prefix(*size);
  }
  return std::nullopt;
}

EventsKept events_until(std::string_view content, int64_t step, bool open_window) {
  EventsKept kept;
  for (size_t at = 0; content.size() - at >= header_bytes + footer_bytes;) {
    const std::string_view rest = content.substr(at);
    const auto size = number_at<uint64_t>(rest, 0);
    // A power failure may leave zeros where the last records should be.
    const bool torn = rest.find_first_not_of('\0') == std::string_view::npos;
    kept.damaged = !torn && number_at<uint32_t>(rest, 8) != masked_crc32c(rest.substr(0, 8));
    if (kept.damaged || torn || size > rest.size() - header_bytes - footer_bytes) break;
    const std::string_view data = rest.substr(header_bytes, size);
    kept.damaged = number_at<uint32_t>(rest, header_bytes + size) != masked_crc32c(data);
    const int64_t of_record = step_of_event(data).value_or(0);
    const bool trained = data.find("train/") != std::string_view::npos;
    const bool open = open_window && of_record == step && trained;
    // The start of a session has no tag ("train/loss"; a single character may be part of its time), and names the step
    // after the one that it goes on from: a validation of that one may follow.
    const bool starts =
        of_record > step && of_record - 1 == step && !trained && data.find("valid/") == std::string_view::npos;
    if (kept.damaged || (of_record > step && !starts) || open) break;
    at += header_bytes + size + footer_bytes;
    if (!starts) kept.bytes = at;
  }
  return kept;
}

EventFile::EventFile(std::string folder, int64_t step, bool open_window, Warn warn)
    : folder_(std::move(folder)), step_(step), open_window_(open_window), warn_(std::move(warn)) {}

void EventFile::begin() {
  cut_files(folder_, step_, open_window_, warn_);
  file_.emplace(file_name(folder_, step_));
  std::string version;
  append_key(version, 1, Wire::fixed64);
  append_number(version, now());
  append_bytes(version, 3, "brain.Event:2");
  file_->write(framed(version));
  if (step_ <= 0) return;
  constexpr uint64_t started = 1;
  std::string log, start = event_head(now(), step_ + 1);
  append_key(log, 1, Wire::varint);
  append_varint(log, started);
  append_bytes(start, 7, log);
  file_->write(framed(start));
}

void EventFile::add(const nlohmann::json& line) {
  static constexpr struct {
    const char *event, *key, *tag;
  } known[] = {{"train", "loss", "train/loss"},
               {"train", "lr", "train/learning_rate"},
               {"train", "grad_norm", "train/gradient_norm"},
               {"train", "tokens_per_second", "train/tokens_per_second"},
               {"valid", "bits", "valid/bits"}};
  std::vector<Scalar> scalars;
  const auto take = [&](const char* event, const std::string& key, const std::string& tag) {
    if (line.at("event") != event) return;
    const auto value = line.find(key);
    if (value != line.end() && value->is_number()) scalars.push_back({tag, value->get<float>()});
  };
  for (const auto& [event, key, tag] : known) take(event, key, tag);
  for (const Metric& metric : metrics()) take("valid", metric.name, std::string("valid/") + metric.name);
  if (scalars.empty()) return;
  if (!file_) begin();
  file_->write(framed(scalar_event(now(), line.at("step").get<int64_t>(), scalars)));
}

void EventFile::sync() {
  if (!file_) return;
  file_->sync();
  if (!named_) sync_folder(folder_);
  named_ = true;
}

}  // namespace capstan
