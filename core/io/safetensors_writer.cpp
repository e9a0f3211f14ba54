// Writing safetensors files: by one process, and by several together. For the latter the header and all places are
// known before anything is written; the checksum is zeros until finish(), so that a reader refuses a file that is not
// finished. Both ways give the same bytes (tests/core/io/test_safetensors.cpp).
#include <algorithm>
#include <limits>

#include "core/base/error.hpp"
#include "core/base/sizes.hpp"
#include "core/io/json.hpp"
#include "core/io/safetensors.hpp"
#include "core/io/safetensors_format.hpp"

namespace capstan {

namespace {

using nlohmann::json;
using namespace safetensors;  // NOLINT: of both files

constexpr size_t alignment = 64;
constexpr int64_t max_bytes = std::numeric_limits<int64_t>::max();

/// The header of a file of these tensors, which are sorted into the order of their data.
struct Layout {
  json header;
  std::vector<int64_t> offsets, sizes;  // in bytes
  int64_t bytes = 0;
};

/// Calls put(bytes, count), in order and in large pieces, for the stored part of the `count` bytes at `data`, which are
/// a tensor's elements from `begin` on.
template <class Put>
void for_stored(const StoredRows* stored, int64_t row_size, int64_t begin, const void* data, int64_t count,
                const Put& put) {
  const auto* const bytes = static_cast<const char*>(data);
  if (stored == nullptr) return put(bytes, static_cast<size_t>(count));
  constexpr size_t large = size_t{1} << 20;
  std::string piece;
  stored->for_each([&](int64_t row) {
    const int64_t first = std::max(begin, row * row_size), last = std::min(begin + count, (row + 1) * row_size);
    if (first >= last) return;
    piece.append(bytes + (first - begin), static_cast<size_t>(last - first));
    if (piece.size() < large) return;
    put(piece.data(), piece.size());
    piece.clear();
  });
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

/// Bytes of a row of the tensor; of a scalar, the bytes of its element.
int64_t row_size(const TensorToWrite& tensor) {
  int64_t bytes = byte_size(tensor.dtype);
  for (size_t axis = 1; axis < tensor.shape.size(); ++axis)
    bytes = checked_product("safetensors", {bytes, tensor.shape[axis]}, max_bytes);
  return bytes;
}

/// Adds the tensors that name stored rows, sorts all by the size of an element, largest first, so that every tensor is
/// aligned, then by name, and makes the header. Throws for names or metadata that a file cannot have.
Layout lay_out(std::vector<TensorToWrite>& tensors, std::map<std::string, std::string> metadata) {
  json sparse, factors;
  for (const TensorToWrite& tensor : tensors)
    if (tensor.factor != 1) factors[tensor.name] = tensor.factor;
  if (!factors.empty()) metadata[factors_key] = json_text({{"format", factors_format}, {"of", factors}});
  bool gaps = false;
  for (size_t i = 0, count = tensors.size(); i < count; ++i) {
    if (tensors[i].stored == nullptr) continue;
    const StoredRows& stored = *tensors[i].stored;
    check(!tensors[i].shape.empty() && tensors[i].shape[0] == stored.rows(), "safetensors: {} rows are stored of {}",
          stored.rows(), tensors[i].name);
    sparse[tensors[i].name] = stored.rows();
    tensors.push_back({tensors[i].name + rows_suffix,
                       DType::u8,
                       {static_cast<int64_t>(stored.bytes().size())},
                       stored.bytes().data()});
    check(sparse.size() == 1 || gaps == (stored.form() == StoredRows::Form::gaps), "safetensors: rows in two forms");
    gaps = stored.form() == StoredRows::Form::gaps;
  }
  if (!sparse.empty())
    metadata[sparse_key] = json_text({{"format", gaps ? gaps_format : bits_format}, {"rows", sparse}});
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
    for (const int64_t extent : shape) bytes = checked_product("safetensors", {bytes, extent}, max_bytes);
    layout.offsets.push_back(layout.bytes);
    layout.sizes.push_back(bytes);
    const int64_t end = checked_sum("safetensors", {layout.bytes, bytes}, max_bytes);
    layout.header[tensor.name] = {
        {"dtype", to_string(tensor.dtype)}, {"shape", shape}, {"data_offsets", {layout.bytes, end}}};
    layout.bytes = end;
  }
  return layout;
}

/// What a file begins with: the header's length and the header with the checksum.
std::string file_begin(json header, const std::string& checksum) {
  header[metadata_key][checksum_key] = checksum;
  std::string text = json_text(header);
  text.append((alignment - (length_bytes + text.size()) % alignment) % alignment, ' ');
  std::string length(length_bytes, '\0');
  for (size_t i = 0; i < length_bytes; ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 255);
  return length + text;
}

}  // namespace

std::string write_safetensors(const std::string& path, std::vector<TensorToWrite> tensors,
                              const std::map<std::string, std::string>& metadata, Sync sync) {
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
  if (sync == Sync::now) file.sync();
  file.close();
  return checksum.hex();
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
      bits.push_back(
          {name + rows_suffix, 0, static_cast<int64_t>(place.stored->bytes().size()), place.stored->bytes().data()});
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

std::string SafetensorsParts::finish() const {
  Hash checksum;
  checksum.add(header_);
  {
    const MappedFile file(path_);
    check(file.size() == begin_.size() + static_cast<size_t>(bytes_), "safetensors: {} has {} bytes instead of {}",
          path_, file.size(), begin_.size() + static_cast<size_t>(bytes_));
    add_data(checksum, file, begin_.size());
  }
  FileWriter file(path_, FileWriter::Mode::update);
  const std::string begin = file_begin(json::parse(header_), checksum.hex());
  file.write_at(0, begin.data(), begin.size());
  file.sync();
  file.close();
  return checksum.hex();
}

}  // namespace capstan
