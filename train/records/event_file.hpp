// TensorBoard's event files: the scalars of metrics.jsonl for `tensorboard --logdir runs`.
//
// A file is a row of TFRecords: length (8 bytes), masked CRC-32C of these, data, masked CRC-32C of the data; numbers
// little endian. The data are protocol buffers, tensorflow.Event: 1 wall_time (double), 2 step (int64), 3 file_version
// (string), 5 summary { repeated 1 value { 1 tag (string), 2 simple_value (float) } }, 7 session_log { 1 status }.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/file.hpp"

namespace capstan {

/// CRC-32C (Castagnoli), as in RFC 3720.
uint32_t crc32c(std::string_view bytes);
/// The same, turned and shifted as TFRecords have it, so that a checksum of data with checksums inside is a good one.
uint32_t masked_crc32c(std::string_view bytes);

/// A record with its frame.
std::string framed(std::string_view data);

struct Scalar {
  std::string tag;
  float value = 0;
};
/// An Event as data of a record.
std::string scalar_event(double wall_time, int64_t step, const std::vector<Scalar>& scalars);
/// The step of an Event; nothing where it has none, or is no Event.
std::optional<int64_t> step_of_event(std::string_view data);

/// Length of the leading part of a file's content whose records are whole and belong to steps up to `step`.
size_t events_until(std::string_view content, int64_t step);

class EventFile {
 public:
  /// For a run in `folder` that stands at `step`. Files of earlier sessions lose what they tell of later steps and
  /// half-written records, as metrics.jsonl does, so that no step is there twice. The first line begins a new file,
  /// which says where it begins: a TensorBoard that has read the earlier ones already forgets those steps, too.
  EventFile(std::string folder, int64_t step);

  /// The scalars of a line of metrics.jsonl, train/... or valid/...; numbers that are null are left out.
  void add(const nlohmann::json& line);

 private:
  void begin();

  std::string folder_;
  int64_t step_;
  std::optional<FileWriter> file_;
};

}  // namespace capstan
