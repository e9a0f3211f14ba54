#include "tests/fuzz/tensor_files.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "core/io/hash.hpp"
#include "core/io/json.hpp"

namespace capstan::fuzz {
namespace {

using nlohmann::json;

struct Parts {
  json header = json::object();
  std::string data;
};

Parts parts_of(const std::string& file) {
  Parts parts;
  if (file.size() < 8) return parts;
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= uint64_t{static_cast<uint8_t>(file[i])} << (8 * i);
  length = std::min<uint64_t>(length, file.size() - 8);
  json header = try_parse_json(std::string_view(file).substr(8, length));
  if (header.is_object()) parts.header = std::move(header);
  parts.data = file.substr(8 + length);
  return parts;
}

json& any_entry(json& object, std::mt19937& random) {
  auto entry = object.begin();
  std::advance(entry, random() % object.size());
  return *entry;
}

void change_shape(json& entry, std::mt19937& random) {
  static constexpr std::array<int64_t, 8> extents = {0, 1, 2, 3, 8, 255, int64_t{1} << 32, int64_t{1} << 62};
  json& shape = entry["shape"];
  if (!shape.is_array() || random() % 8 == 0) shape = json::array();
  if (shape.empty() || random() % 3 == 0)
    shape.push_back(extents[random() % 5]);
  else
    shape[random() % shape.size()] = extents[random() % extents.size()];
}

void change_entry(json& header, std::mt19937& random) {
  static constexpr std::array<const char*, 11> types = {"F64", "F32", "F16", "BF16", "I64", "I32",
                                                        "I16", "I8",  "U8",  "BOOL", "F8"};
  json& entry = any_entry(header, random);
  if (!entry.is_object()) entry = json::object();
  switch (random() % 4) {
    case 0:
      entry["dtype"] = types[random() % types.size()];
      break;
    case 1:
      change_shape(entry, random);
      break;
    case 2:
      entry["data_offsets"] = {random() % 64, random() % 64};
      break;
    default:
      entry.erase(entry.empty() ? "dtype" : entry.begin().key());
  }
}

void change_names(json& header, std::mt19937& random, const Change& change) {
  std::string name = header.empty() || random() % 2 == 0 ? "t" : header.begin().key();
  change(name, 40);
  json entry = {{"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {0, 4}}};
  if (!header.empty() && random() % 2 == 0) entry = any_entry(header, random);
  header[name] = std::move(entry);
  if (header.size() > 2 && random() % 2 == 0) header.erase(header.begin());
}

int64_t bytes_of(const json& entry) {
  if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry["shape"].is_array())
    return 0;
  static const std::map<std::string, int64_t> widths = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                                                        {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U8", 1},   {"BOOL", 1}};
  const auto width = entry["dtype"].is_string() ? widths.find(entry["dtype"].get<std::string>()) : widths.end();
  int64_t bytes = width == widths.end() ? 0 : width->second;
  for (const json& extent : entry["shape"]) {
    const int64_t factor = whole_number(extent, 0, 4096).value_or(0);
    bytes = bytes > 1 << 16 ? 0 : bytes * factor;
  }
  return bytes;
}

/// Tensors one after the other, and as much data as they need.
void lay_out(Parts& parts, size_t most) {
  int64_t offset = 0;
  for (auto& [name, entry] : parts.header.items()) {
    if (name == "__metadata__" || !entry.is_object()) continue;
    const int64_t bytes = bytes_of(entry);
    entry["data_offsets"] = {offset, offset + bytes};
    offset += bytes;
  }
  parts.data.resize(std::min<size_t>(static_cast<size_t>(offset), most), '\1');
}

void correct_checksum(Parts& parts) {
  json& metadata = parts.header["__metadata__"];
  if (!metadata.is_object()) metadata = json::object();
  metadata.erase("xxh3_128");
  Hash checksum;
  checksum.add(parts.header.dump(-1, ' ', false, json::error_handler_t::replace));
  checksum.add(parts.data);
  metadata["xxh3_128"] = checksum.hex();
}

}  // namespace

std::string tensor_file(const std::string& header, const std::string& data) {
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 255);
  return length + header + data;
}

std::string change_tensor_file(const std::string& input, size_t most, std::mt19937& random, const Change& change) {
  Parts parts = parts_of(input);
  for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
    const size_t kind = parts.header.empty() ? 1 : random() % 5;
    if (kind == 0) change(parts.data, most);
    if (kind == 1) change_names(parts.header, random, change);
    if (kind >= 2) change_entry(parts.header, random);
  }
  if (random() % 4 != 0) lay_out(parts, most);
  if (random() % 4 == 0) correct_checksum(parts);
  std::string header = parts.header.dump(-1, ' ', false, json::error_handler_t::replace);
  if (random() % 8 == 0) change(header, most);
  return tensor_file(header, parts.data);
}

}  // namespace capstan::fuzz
