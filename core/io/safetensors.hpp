// Tensors by name in a file of the public safetensors format: 8 bytes of little-endian header length, a JSON header
// {"name": {"dtype", "shape", "data_offsets"}, "__metadata__": {...}}, then the raw data. Independent of `real`.
//
// A tensor with many rows of zeros may be stored without these rows. A second tensor, "name.rows", then has a bit for
// each row of the whole tensor: 1 if it is stored. The metadata key "sparse" has the full numbers of rows. A file that
// is opened here shows whole tensors. The metadata key "factors" has numbers by which the elements of tensors are
// multiplied when they are read: with them, F8_E4M3 covers any range.
//
// Checkpoints, imports and exports are such files. Runs of earlier versions (tests/cli/runs/test_old_runs.cpp) and
// other programs (tests/interop/safetensors_checkpoint.py) have them, so a new form needs a new "format" number, which
// older readers refuse as NewerFile. tests/core/io/test_safetensors.cpp and tests/fuzz/fuzz_safetensors.cpp hold the
// reader.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/file.hpp"
#include "core/io/mapped_file.hpp"
#include "core/io/stored_rows.hpp"

namespace capstan {

enum class DType { f64, f32, f16, bf16, f8, i64, i32, i16, i8, u8, boolean };
/// The name of the type in the safetensors format: "F32".
const char* to_string(DType dtype);
int64_t byte_size(DType dtype);
std::optional<DType> dtype_called(const std::string& name);

/// One tensor of an open file; refers to the file's memory.
struct FileTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  const unsigned char* bytes = nullptr;
  const MappedFile* file = nullptr;                    // that `bytes` are in; null: they are in memory
  int64_t size = 0;                                    // elements
  std::shared_ptr<const StoredRows> stored = nullptr;  // null: the file has all rows
  float factor = 1;                                    // stored elements times this are the values

  std::vector<double> to_doubles() const { return to_vector<double>(); }
  std::vector<float> to_floats() const { return to_vector<float>(); }
  /// Converts elements [begin, end), in row-major order, into `out`.
  void copy_part(int64_t begin, int64_t end, float* out) const;
  void copy_part(int64_t begin, int64_t end, double* out) const;
  /// A tensor of the rows that the file stores; the rows left out are zeros.
  FileTensor without_zeros() const;
  /// Converts all elements into `out`.
  template <class T>
  void copy_to(T* out) const {
    copy_part(0, size, out);
  }

 private:
  template <class T>
  std::vector<T> to_vector() const {
    std::vector<T> values(static_cast<size_t>(size));
    copy_to(values.data());
    return values;
  }
};

/// An open file. Opening checks it strictly and throws Error naming the file and the tensor: for a truncated file, a
/// bad header, duplicate names, offsets that overlap, leave gaps or are out of range, a shape that does not match its
/// bytes, bits that do not match the rows they are for and, if the file has a checksum (files written here do), for
/// content that does not match it; NewerFile for tensors in a form that a later version writes.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);
  /// Opens a file's content in memory, which must outlive this; errors call it `name`.
  SafetensorsFile(std::string name, std::string_view bytes);

  const std::string& path() const { return path_; }
  /// Sorted by name.
  const std::vector<FileTensor>& tensors() const { return tensors_; }
  /// Null if there is no tensor of this name.
  const FileTensor* find(const std::string& name) const;
  /// Throws Error if there is no tensor of this name.
  const FileTensor& at(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// The checksum that the content was compared with; empty for a file without one. Files written here have one.
  std::string checksum() const;

 private:
  /// Parses and checks the file.
  void open(std::string_view bytes);
  void join_stored_rows();
  /// Reads the metadata key "factors" into the tensors.
  void take_factors();
  /// find() for tensors that are still being put together.
  FileTensor* known(const std::string& name);

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  std::vector<FileTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// One tensor to be written; `bytes`, all of its elements, must stay valid until then.
struct TensorToWrite {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  const void* bytes;
  std::shared_ptr<const StoredRows> stored = nullptr;  // null: all rows; otherwise the others are zeros and left out
  float factor = 1;                                    // by which readers multiply the elements
};
inline DType dtype_of(const float*) { return DType::f32; }
inline DType dtype_of(const double*) { return DType::f64; }

/// A file that several processes write together, each some elements of its tensors. It has the same bytes as one by
/// write_safetensors() in the end.
class SafetensorsParts {
 public:
  /// The `bytes` of these tensors are not used.
  SafetensorsParts(std::string path, std::vector<TensorToWrite> tensors,
                   std::map<std::string, std::string> metadata = {});

  /// For one process, before all else: a file of the final size, with the bits of stored rows.
  void create() const;
  /// Elements [begin, end) of a tensor.
  struct Part {
    std::string name;
    int64_t begin = 0, end = 0;
    const void* bytes = nullptr;
  };
  /// For any process. On return, they are on the disk.
  void write(const std::vector<Part>& parts) const;
  /// For one process, after all others have written: adds the checksum, and returns it. The file is then on the disk.
  std::string finish() const;

 private:
  struct Place {
    int64_t offset, size, row_size;  // in bytes; of an element, of a row
    std::shared_ptr<const StoredRows> stored;
  };
  std::string path_;
  std::string header_;  // without the checksum
  std::string begin_;   // what the file begins with, with zeros for the checksum
  std::map<std::string, Place> places_;
  int64_t bytes_ = 0;  // of the data
};

/// Writes the file, with a checksum (XXH3-128 of header and data) under the metadata key "xxh3_128", and returns this.
std::string write_safetensors(const std::string& path, std::vector<TensorToWrite> tensors,
                              const std::map<std::string, std::string>& metadata = {}, Sync sync = Sync::now);

}  // namespace capstan
