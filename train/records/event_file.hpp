// TensorBoard's event files: the scalars of metrics.jsonl for `tensorboard --logdir runs`.
//
// A file is a sequence of TFRecords: length (8 bytes), masked CRC-32C of the length, data, masked CRC-32C of the data;
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
/// The same, rotated and offset as TFRecords require: a CRC of data that contains CRCs would be weak.
uint32_t masked_crc32c(std::string_view bytes);

/// The data as a record: with length and checksums.
std::string framed(std::string_view data);

struct Scalar {
  std::string tag;
  float value = 0;
};
/// An Event, as the data of a record.
std::string scalar_event(double wall_time, int64_t step, const std::vector<Scalar>& scalars);
/// The step of an Event; nothing if it has none, or if the data is not an Event.
std::optional<int64_t> step_of_event(std::string_view data);

/// Length of the leading part of a file's content whose records are complete and belong to steps up to `step`.
size_t events_until(std::string_view content, int64_t step);

class EventFile {
 public:
  /// For a run in `folder` that is at `step`. Records of later steps and half-written records are removed from the
  /// files of earlier sessions, as from metrics.jsonl, so that no step occurs twice. The first call of add() begins a
  /// new file, which names its first step: a TensorBoard that has already read the removed
  /// records then drops them, too.
  EventFile(std::string folder, int64_t step);

  /// Writes the scalars of a line of metrics.jsonl, as train/... or valid/...; null values are left out.
  void add(const nlohmann::json& line);

 private:
  void begin();

  std::string folder_;
  int64_t step_;
  std::optional<FileWriter> file_;
};

}  // namespace capstan
