#include "core/io/safetensors.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.hpp"
#include "core/base/sizes.hpp"
#include "core/io/hash.hpp"
#include "core/io/json.hpp"

namespace capstan {
namespace {

using nlohmann::json;

constexpr const char* checksum_key = "xxh3_128";
constexpr const char* metadata_key = "__metadata__";
constexpr const char* sparse_key = "sparse";
constexpr const char* rows_suffix = ".rows";
constexpr int64_t sparse_format = 1;
constexpr uint64_t header_limit = 100'000'000;  // the limit of the format's reference reader
constexpr size_t length_bytes = 8;
constexpr size_t alignment = 64;
constexpr int64_t most_bytes = std::numeric_limits<int64_t>::max();
constexpr int64_t most_file_elements = int64_t{1} << 48;  // of a tensor

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw Error(fmt::format("{}: {}: the file is damaged or not a safetensors file; use another copy of it", path, what));
}

json parse_header(const std::string& path, std::string_view text) {
  constexpr size_t levels = 3;  // {"name": {"shape": [...]}}
  try {
    return parse_json(text, {"its header", 1, levels, true});
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
    if (extent > most_file_elements || __builtin_mul_overflow(size, extent, &size) || size > most_file_elements)
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

/// The checksum is the hash of the header without the checksum itself, then of the data.
void add_header(Hash& checksum, const json& header) {
  checksum.add(header.dump(-1, ' ', false, json::error_handler_t::replace));
}

void verify_checksum(const std::string& path, json header, const unsigned char* data, uint64_t data_size) {
  if (!header.contains(metadata_key) || !header[metadata_key].contains(checksum_key)) return;
  const std::string expected = header[metadata_key][checksum_key].get<std::string>();
  header[metadata_key].erase(checksum_key);
  Hash checksum;
  add_header(checksum, header);
  checksum.add(data, data_size);
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
      continue;
    }
    if (!entry.is_object()) damaged(path_, "__metadata__ is not an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) damaged(path_, fmt::format("__metadata__: {} is not a string", key));
      metadata_[key] = value.get<std::string>();
    }
  }
  check_tiling(path_, tensors_, data, data_size);
  verify_checksum(path_, header, data, data_size);
  join_stored_rows();
}

/// Makes one tensor of the rows that the file has and the bits that say which they are.
void SafetensorsFile::join_stored_rows() {
  const auto found = metadata_.find(sparse_key);
  if (found == metadata_.end()) return;
  const json sparse = try_parse_json(found->second);
  const auto format =
      sparse.is_object() && sparse.contains("format") ? whole_number(sparse["format"], 1) : std::nullopt;
  if (format && *format > sparse_format)
    throw NewerFile(fmt::format(
        "{}: a newer version of Capstan wrote this file (the format of its sparse tensors is {}, this version reads "
        "up to {}): use that version",
        path_, *format, sparse_format));
  if (!format || !sparse.contains("rows") || !sparse["rows"].is_object())
    damaged(path_, fmt::format("__metadata__: {} is {}", sparse_key, json_excerpt(sparse)));
  std::set<std::string> joined;  // names of the bits
  for (const auto& [name, rows] : sparse["rows"].items()) {
    const auto all = whole_number(rows, 0);
    FileTensor* const tensor = known(name);
    const FileTensor* const bits = find(name + rows_suffix);
    if (!all || tensor == nullptr || tensor->shape.empty() || bits == nullptr || bits->dtype != DType::u8 ||
        joined.count(name) > 0)
      damaged(path_, fmt::format("tensor {}: there is no tensor {}{} for its {} rows", name, name, rows_suffix,
                                 json_excerpt(rows)));
    try {
      auto stored =
          std::make_shared<const StoredRows>(*all, std::vector<unsigned char>(bits->bytes, bits->bytes + bits->size));
      check(stored->count() == tensor->shape[0], "{} rows for {} bits", tensor->shape[0], stored->count());
      tensor->shape[0] = *all;
      tensor->size = 1;
      for (const int64_t extent : tensor->shape)
        tensor->size = checked_product("shape", {tensor->size, extent}, most_file_elements);
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

namespace {

/// The header of a file of these tensors, which are sorted into the order of their data.
struct Layout {
  json header;
  std::vector<int64_t> offsets, sizes;  // in bytes
  int64_t bytes = 0;
};

/// put(bytes, count), in order and in large pieces, for what a file has of the elements from `begin` on that are in
/// [data, data + count) bytes.
template <class Put>
void for_stored(const StoredRows* stored, int64_t row_size, int64_t begin, const void* data, int64_t count,
                const Put& put) {
  const auto* const bytes = static_cast<const char*>(data);
  if (stored == nullptr) return put(bytes, static_cast<size_t>(count));
  constexpr size_t large = size_t{1} << 20;
  std::string piece;
  for (int64_t at = begin; at < begin + count;) {
    const int64_t row = at / row_size, next = std::min(begin + count, (row + 1) * row_size);
    if (stored->has(row)) piece.append(bytes + (at - begin), static_cast<size_t>(next - at));
    if (piece.size() >= large) {
      put(piece.data(), piece.size());
      piece.clear();
    }
    at = next;
  }
  if (!piece.empty()) put(piece.data(), piece.size());
}

/// Bytes that a file has before byte `at` of a tensor.
int64_t stored_before(const StoredRows* stored, int64_t row_size, int64_t at) {
  if (stored == nullptr || row_size == 0) return at;
  const int64_t row = at / row_size;
  return stored->before(row) * row_size + (row < stored->rows() && stored->has(row) ? at % row_size : 0);
}

/// Throws Error for text that JSON cannot hold.
void check_text(const char* what, const std::string& text) {
  const std::string shown = json(text).dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
  if (json::parse(shown).get_ref<const std::string&>() != text)
    throw Error(fmt::format("safetensors: {} {} is not UTF-8", what, shown));
}

/// The bytes of one row of a tensor.
int64_t row_size(const TensorToWrite& tensor) {
  int64_t bytes = byte_size(tensor.dtype);
  for (size_t axis = 1; axis < tensor.shape.size(); ++axis)
    bytes = checked_product("safetensors", {bytes, tensor.shape[axis]}, most_bytes);
  return bytes;
}

Layout lay_out(std::vector<TensorToWrite>& tensors, std::map<std::string, std::string> metadata) {
  json sparse;
  for (size_t i = 0, count = tensors.size(); i < count; ++i) {
    if (tensors[i].stored == nullptr) continue;
    const StoredRows& stored = *tensors[i].stored;
    check(!tensors[i].shape.empty() && tensors[i].shape[0] == stored.rows(), "safetensors: {} rows are stored of {}",
          stored.rows(), tensors[i].name);
    sparse[tensors[i].name] = stored.rows();
    tensors.push_back(
        {tensors[i].name + rows_suffix, DType::u8, {StoredRows::bytes_of(stored.rows())}, stored.bits().data()});
  }
  if (!sparse.empty()) metadata[sparse_key] = json{{"format", sparse_format}, {"rows", sparse}}.dump();
  std::sort(tensors.begin(), tensors.end(), [](const TensorToWrite& a, const TensorToWrite& b) {
    return std::make_pair(-byte_size(a.dtype), a.name) < std::make_pair(-byte_size(b.dtype), b.name);
  });
  Layout layout;
  layout.header[metadata_key] = metadata;
  for (const auto& [key, value] : metadata) check_text("the metadata", key + ": " + value);
  for (const TensorToWrite& tensor : tensors) {
    check_text("the name of tensor", tensor.name);
    check(tensor.name != metadata_key && !layout.header.contains(tensor.name), "safetensors: two tensors called {}",
          tensor.name);
    std::vector<int64_t> shape = tensor.shape;
    if (tensor.stored) shape[0] = tensor.stored->count();
    int64_t bytes = byte_size(tensor.dtype);
    for (const int64_t extent : shape) bytes = checked_product("safetensors", {bytes, extent}, most_bytes);
    layout.offsets.push_back(layout.bytes);
    layout.sizes.push_back(bytes);
    const int64_t end = checked_sum("safetensors", {layout.bytes, bytes}, most_bytes);
    layout.header[tensor.name] = {
        {"dtype", to_string(tensor.dtype)}, {"shape", shape}, {"data_offsets", {layout.bytes, end}}};
    layout.bytes = end;
  }
  return layout;
}

/// What a file begins with: the header's length and the header with the checksum.
std::string file_begin(json header, const std::string& checksum) {
  header[metadata_key][checksum_key] = checksum;
  std::string text = header.dump();
  text.append((alignment - (length_bytes + text.size()) % alignment) % alignment, ' ');
  std::string length(length_bytes, '\0');
  for (size_t i = 0; i < length_bytes; ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 255);
  return length + text;
}

}  // namespace

void write_safetensors(const std::string& path, std::vector<TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const Layout layout = lay_out(tensors, metadata);
  const auto for_data = [&](const auto& put) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      const int64_t row = row_size(tensors[i]),
                    all = tensors[i].stored ? tensors[i].stored->rows() * row : layout.sizes[i];
      for_stored(tensors[i].stored.get(), row, 0, tensors[i].bytes, all, put);
    }
  };
  Hash checksum;
  add_header(checksum, layout.header);
  for_data([&](const void* bytes, size_t count) { checksum.add(bytes, count); });
  FileWriter file(path);
  file.write(file_begin(layout.header, checksum.hex()));
  for_data([&](const void* bytes, size_t count) { file.write(bytes, count); });
  file.sync();
  file.close();
}

SafetensorsParts::SafetensorsParts(std::string path, std::vector<TensorToWrite> tensors,
                                   std::map<std::string, std::string> metadata)
    : path_(std::move(path)) {
  const Layout layout = lay_out(tensors, std::move(metadata));
  header_ = layout.header.dump(-1, ' ', false, json::error_handler_t::replace);
  begin_ = file_begin(layout.header, std::string(32, '0'));
  bytes_ = layout.bytes;
  for (size_t i = 0; i < tensors.size(); ++i)
    places_[tensors[i].name] = {layout.offsets[i], byte_size(tensors[i].dtype), row_size(tensors[i]),
                                tensors[i].stored};
}

void SafetensorsParts::create() const {
  {
    FileWriter file(path_);
    file.write(begin_);
    file.close();
  }
  truncate_file(path_, begin_.size() + static_cast<size_t>(bytes_));
  std::vector<Part> bits;
  for (const auto& [name, place] : places_)
    if (place.stored)
      bits.push_back({name + rows_suffix, 0, StoredRows::bytes_of(place.stored->rows()), place.stored->bits().data()});
  if (!bits.empty()) write(bits);
}

void SafetensorsParts::write(const std::vector<Part>& parts) const {
  FileWriter file(path_, FileWriter::Mode::update);
  for (const Part& part : parts) {
    const Place& place = places_.at(part.name);
    const int64_t begin = part.begin * place.size;
    size_t at =
        begin_.size() + static_cast<size_t>(place.offset + stored_before(place.stored.get(), place.row_size, begin));
    for_stored(place.stored.get(), place.row_size, begin, part.bytes, (part.end - part.begin) * place.size,
               [&](const void* bytes, size_t count) {
                 file.write_at(at, bytes, count);
                 at += count;
               });
  }
  file.sync();
  file.close();
}

void SafetensorsParts::finish() const {
  Hash checksum;
  checksum.add(header_);
  {
    const MappedFile file(path_);
    check(file.size() == begin_.size() + static_cast<size_t>(bytes_), "safetensors: {} has {} bytes instead of {}",
          path_, file.size(), begin_.size() + static_cast<size_t>(bytes_));
    constexpr size_t block = size_t{8} << 20;  // so that the file takes no more memory than this
    for (size_t at = begin_.size(); at < file.size(); at += block) {
      const size_t end = std::min(at + block, file.size());
      checksum.add(file.data() + at, end - at);
      file.release(at, end);
    }
  }
  FileWriter file(path_, FileWriter::Mode::update);
  const std::string begin = file_begin(json::parse(header_), checksum.hex());
  file.write_at(0, begin.data(), begin.size());
  file.sync();
  file.close();
}

}  // namespace capstan
