// TensorBoard's event files: the scalars of metrics.jsonl for `tensorboard --logdir runs`.
//
// A file is a sequence of TFRecords: length (8 bytes), masked CRC-32C of the length, data, masked CRC-32C of the data;
// little endian. The data are protocol buffers, tensorflow.Event: 1 wall_time (double), 2 step (int64), 3 file_version
// (string), 5 summary { repeated 1 value { 1 tag (string), 2 simple_value (float) } }, 7 session_log { 1 status }.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/file.hpp"

namespace capstan {

/// CRC-32C (Castagnoli), as in RFC 3720.
uint32_t crc32c(std::string_view bytes);
/// crc32c(), rotated and offset as TFRecords require: a CRC of data that contains CRCs would be weak.
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

/// How far a file's content can be kept.
struct EventsKept {
  size_t bytes = 0;      // of the leading records that are complete and belong to the steps asked for
  bool damaged = false;  // what follows is neither a later step nor a half-written record at the end
};
/// The records of steps up to `step`. With `open_window`, training records of `step` itself are left out: such a record
/// is the last of a run that ended between two logged steps, and a resumed run logs the whole window later.
EventsKept events_until(std::string_view content, int64_t step, bool open_window = false);

class EventFile {
 public:
  using Warn = std::function<void(const std::string& line)>;

  /// For a run in `folder` that is at `step`; `open_window`: as for events_until(). The first call of add() removes
  /// records of later steps and half-written records from the files of earlier sessions, as from metrics.jsonl, so that
  /// no step occurs twice; a damaged file is copied first, with a warning. It then begins a new file, which names its
  /// first step: a TensorBoard that has already read the removed records drops them, too.
  EventFile(std::string folder, int64_t step, bool open_window, Warn warn);

  /// Writes the scalars of a line of metrics.jsonl, as train/... or valid/...; null values are left out.
  void add(const nlohmann::json& line);
  /// Returns when all records are on the disk.
  void sync();

 private:
  void begin();

  std::string folder_;
  int64_t step_;
  bool open_window_;
  Warn warn_;
  std::optional<FileWriter> file_;
  bool named_ = false;  // its name is on the disk
};

}  // namespace capstan
