// Opening a safetensors file: the header is parsed; each tensor is checked on its own, then that all tensors fill the
// data, then the checksum. Only afterwards do stored rows and factors, which the metadata name, become part of their
// tensors. All numbers come from outside: none is used in arithmetic before it was compared with its limit.
#include "core/io/safetensors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.hpp"
#include "core/base/sizes.hpp"
#include "core/io/hash.hpp"
#include "core/io/json.hpp"
#include "core/io/safetensors_format.hpp"

namespace capstan {
namespace {

using nlohmann::json;
using namespace safetensors;  // NOLINT: of both files

constexpr uint64_t header_limit = 100'000'000;           // the limit of the format's reference reader
constexpr int64_t max_file_elements = int64_t{1} << 48;  // of a tensor

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw Error(fmt::format("{}: {}: the file is damaged or not a safetensors file; use another copy of it", path, what));
}

/// The header as JSON; throws Error for text that no writer of this format writes.
json parse_header(const std::string& path, std::string_view text) {
  constexpr size_t levels = 3;  // {"name": {"shape": [...]}}
  try {
    return parse_json(text, {"its header", 1, levels});
  } catch (const JsonError& problem) {
    damaged(path, problem.what());
  }
}

uint64_t count_at(const std::string& path, const std::string& name, const json& list, size_t index) {
  const auto count = whole_number(list[index], 0);
  if (!count) damaged(path, fmt::format("tensor {}: expected whole numbers, got {}", name, json_excerpt(list[index])));
  return static_cast<uint64_t>(*count);
}

FileTensor parse_tensor(const std::string& path, const std::string& name, const json& entry, const unsigned char* data,
                        uint64_t data_size) {
  const auto is_list = [&](const char* key) { return entry.contains(key) && entry[key].is_array(); };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() || !is_list("shape") ||
      !is_list("data_offsets") || entry["data_offsets"].size() != 2)
    damaged(path, fmt::format("tensor {}: needs dtype, shape and two data_offsets", name));
  FileTensor tensor;
  tensor.name = name;
  const std::string dtype = entry["dtype"].get<std::string>();
  const auto known = dtype_called(dtype);
  if (!known) throw Error(fmt::format("{}: tensor {}: unknown dtype \"{}\"", path, name, dtype));
  tensor.dtype = *known;

  uint64_t size = 1;
  for (size_t axis = 0; axis < entry["shape"].size(); ++axis) {
    const uint64_t extent = count_at(path, name, entry["shape"], axis);
    if (extent > max_file_elements || __builtin_mul_overflow(size, extent, &size) || size > max_file_elements)
      damaged(path, fmt::format("tensor {}: shape {} is too large", name, entry["shape"].dump()));
    tensor.shape.push_back(static_cast<int64_t>(extent));
  }
  tensor.size = static_cast<int64_t>(size);
  const uint64_t begin = count_at(path, name, entry["data_offsets"], 0),
                 end = count_at(path, name, entry["data_offsets"], 1);
  if (begin > end || end > data_size)
    damaged(path, fmt::format("tensor {}: its data [{}, {}) is outside the {} bytes of the file's data", name, begin,
                              end, data_size));
  if (end - begin != size * static_cast<uint64_t>(byte_size(tensor.dtype)))
    damaged(path, fmt::format("tensor {}: {} of shape {} does not fill {} bytes", name, dtype, entry["shape"].dump(),
                              end - begin));
  tensor.bytes = data + begin;
  return tensor;
}

/// Throws Error unless the tensors fill the data without a gap or an overlap.
void check_tiling(const std::string& path, const std::vector<FileTensor>& tensors, const unsigned char* data,
                  uint64_t data_size) {
  std::vector<const FileTensor*> order;
  for (const FileTensor& tensor : tensors) order.push_back(&tensor);
  const auto bytes = [](const FileTensor& tensor) { return tensor.size * byte_size(tensor.dtype); };
  std::sort(order.begin(), order.end(), [&](const FileTensor* a, const FileTensor* b) {
    return std::make_pair(a->bytes, bytes(*a)) < std::make_pair(b->bytes, bytes(*b));
  });
  const unsigned char* next = data;
  for (const FileTensor* tensor : order) {
    if (tensor->bytes != next)
      damaged(path, fmt::format("tensor {}: its data {} the preceding tensor", tensor->name,
                                tensor->bytes < next ? "overlaps" : "leaves a gap after"));
    next += bytes(*tensor);
  }
  if (next != data + data_size) damaged(path, fmt::format("{} bytes after the last tensor", data + data_size - next));
}

/// A key of the metadata that only readers of its form understand: {"format": 1, ...}. Null where there is none.
json versioned(const SafetensorsFile& file, const char* key, const char* of_what, int64_t newest) {
  const auto entry = file.metadata().find(key);
  if (entry == file.metadata().end()) return nullptr;
  json content = try_parse_json(entry->second);
  const auto format =
      content.is_object() && content.contains("format") ? whole_number(content["format"], 1) : std::nullopt;
  if (format && *format > newest)
    throw NewerFile(fmt::format(
        "{}: a newer version of Capstan wrote this file (the format of its {} is {}, this version reads up to {}): use "
        "that version",
        file.path(), of_what, *format, newest));
  if (!format) damaged(file.path(), fmt::format("__metadata__: {} is {}", key, json_excerpt(content)));
  return content;
}

/// The checksum is the hash of the header without the checksum itself, then of the data. `file`: null for bytes in
/// memory.
void verify_checksum(const std::string& path, json header, std::string_view data, const MappedFile* file) {
  if (!header.contains(metadata_key) || !header[metadata_key].contains(checksum_key)) return;
  const std::string expected = header[metadata_key][checksum_key].get<std::string>();
  header[metadata_key].erase(checksum_key);
  Hash checksum;
  add_header(checksum, header);
  if (file != nullptr)
    add_data(checksum, *file, file->size() - data.size());
  else
    checksum.add(data);
  if (checksum.hex() != expected)
    throw Error(
        fmt::format("{}: the content does not match its checksum: the file is damaged (bits changed after it was "
                    "written), or another program rewrote it and kept the metadata key {}",
                    path, checksum_key));
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : path_(path), file_(std::make_shared<MappedFile>(path)) {
  open({reinterpret_cast<const char*>(file_->data()), file_->size()});
}

SafetensorsFile::SafetensorsFile(std::string name, std::string_view bytes) : path_(std::move(name)) { open(bytes); }

void SafetensorsFile::open(std::string_view bytes) {
  if (bytes.size() < length_bytes) damaged(path_, fmt::format("only {} bytes", bytes.size()));
  uint64_t header_size = 0;
  for (size_t i = 0; i < length_bytes; ++i) header_size |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  if (bytes.substr(0, 2) == "PK")
    throw Error(fmt::format(
        "{}: this is a zip archive, as torch.save() writes it, and not a safetensors file: write the state dict in "
        "Python with safetensors.torch.save_file()",
        path_));
  if (header_size > header_limit) damaged(path_, fmt::format("it declares a header of {} bytes", header_size));
  if (header_size > bytes.size() - length_bytes) damaged(path_, "it ends inside the header");

  const json header = parse_header(path_, bytes.substr(length_bytes, header_size));
  if (!header.is_object()) damaged(path_, "the header is not a JSON object");
  const uint64_t data_size = bytes.size() - length_bytes - header_size;
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data() + length_bytes + header_size);
  for (const auto& [name, entry] : header.items()) {
    if (name != metadata_key) {
      tensors_.push_back(parse_tensor(path_, name, entry, data, data_size));
      tensors_.back().file = file_.get();
      continue;
    }
    if (!entry.is_object()) damaged(path_, "__metadata__ is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) damaged(path_, fmt::format("__metadata__: {} is not a string", key));
      metadata_[key] = value.get<std::string>();
    }
  }
  check_tiling(path_, tensors_, data, data_size);
  verify_checksum(path_, header, bytes.substr(length_bytes + header_size), file_.get());
  join_stored_rows();
  take_factors();
}

std::string SafetensorsFile::checksum() const {
  const auto found = metadata_.find(checksum_key);
  return found != metadata_.end() ? found->second : "";
}

void SafetensorsFile::take_factors() {
  const json factors = versioned(*this, factors_key, "factors", factors_format);
  if (factors.is_null()) return;
  if (!factors.contains("of") || !factors["of"].is_object())
    damaged(path_, fmt::format("__metadata__: {} is {}", factors_key, json_excerpt(factors)));
  for (const auto& [name, factor] : factors["of"].items()) {
    FileTensor* const tensor = known(name);
    if (tensor == nullptr || !factor.is_number() ||
        !(std::abs(factor.get<double>()) <= static_cast<double>(std::numeric_limits<float>::max())))
      damaged(path_, fmt::format("__metadata__: {}: {} of tensor {}", factors_key, json_excerpt(factor), name));
    tensor->factor = factor.get<float>();
  }
}

/// Makes one tensor of the rows that the file has and the bytes that say which they are.
void SafetensorsFile::join_stored_rows() {
  const json sparse = versioned(*this, sparse_key, "sparse tensors", pytorch_gaps_format);
  if (sparse.is_null()) return;
  if (!sparse.contains("rows") || !sparse["rows"].is_object())
    damaged(path_, fmt::format("__metadata__: {} is {}", sparse_key, json_excerpt(sparse)));
  const json& format = sparse["format"];
  const bool gaps = format == gaps_format || format == pytorch_gaps_format;
  const std::string suffix = format >= pytorch_bits_format ? pytorch_rows_suffix : rows_suffix;
  std::set<std::string> joined;  // names of the bits
  for (const auto& [name, rows] : sparse["rows"].items()) {
    const auto all_rows = whole_number(rows, 0);
    FileTensor* const tensor = known(name);
    const FileTensor* const bits = find(name + suffix);
    if (!all_rows || tensor == nullptr || tensor->shape.empty() || bits == nullptr || bits->dtype != DType::u8 ||
        joined.count(name) > 0)
      damaged(path_, fmt::format("tensor {}: there is no tensor {}{} for its {} rows", name, name, suffix,
                                 json_excerpt(rows)));
    try {
      auto stored = std::make_shared<const StoredRows>(
          gaps ? StoredRows::from_gaps(*all_rows, bits->bytes, bits->size)
               : StoredRows(*all_rows, std::vector<unsigned char>(bits->bytes, bits->bytes + bits->size)));
      check(stored->count() == tensor->shape[0], "{} rows for {} bits", tensor->shape[0], stored->count());
      tensor->shape[0] = *all_rows;
      tensor->size = 1;
      for (const int64_t extent : tensor->shape)
        tensor->size = checked_product("shape", {tensor->size, extent}, max_file_elements);
      tensor->stored = std::move(stored);
    } catch (const std::exception& problem) {
      damaged(path_, fmt::format("tensor {}: {}", name, problem.what()));
    }
    joined.insert(bits->name);
  }
  const auto is_joined = [&](const FileTensor& tensor) { return joined.count(tensor.name) > 0; };
  tensors_.erase(std::remove_if(tensors_.begin(), tensors_.end(), is_joined), tensors_.end());
}

FileTensor* SafetensorsFile::known(const std::string& name) {
  const auto at =
      std::lower_bound(tensors_.begin(), tensors_.end(), name,
                       [](const FileTensor& tensor, const std::string& wanted) { return tensor.name < wanted; });
  return at != tensors_.end() && at->name == name ? &*at : nullptr;
}

const FileTensor* SafetensorsFile::find(const std::string& name) const {
  return const_cast<SafetensorsFile*>(this)->known(name);
}

const FileTensor& SafetensorsFile::at(const std::string& name) const {
  const FileTensor* const tensor = find(name);
  if (tensor == nullptr) throw Error(fmt::format("{}: there is no tensor {}", path(), name));
  return *tensor;
}

}  // namespace capstan
