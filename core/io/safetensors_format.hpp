// What the reader and the writers of safetensors files agree on (core/io/safetensors*.cpp, run/exports). Stored files
// have these names and numbers: they can be added to, never changed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "core/io/mapped_file.hpp"

namespace capstan::safetensors {

inline constexpr const char* checksum_key = "xxh3_128";
inline constexpr const char* metadata_key = "__metadata__";
inline constexpr const char* sparse_key = "sparse";
inline constexpr const char *rows_suffix = ".rows", *pytorch_rows_suffix = "_rows";
/// The "format" of sparse tensors whose rows are named by bits, or by gaps (StoredRows::Form).
inline constexpr int64_t bits_format = 1, gaps_format = 2;
/// bits_format and gaps_format for files that PyTorch loads, in which no name of a module's own tensor has a dot.
inline constexpr int64_t pytorch_bits_format = 3, pytorch_gaps_format = 4;
inline constexpr const char* factors_key = "factors";
inline constexpr int64_t factors_format = 1;
inline constexpr size_t length_bytes = 8;

/// Adds `header`, without its checksum entry, to the hash: the checksum is the hash of this header and of the data.
inline void add_header(Hash& checksum, const nlohmann::json& header) {
  checksum.add(header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

/// Adds the data of a file, which begin at `begin`, a block at a time, so that they take no more memory than a block.
inline void add_data(Hash& checksum, const MappedFile& file, size_t begin) {
  constexpr size_t block = size_t{8} << 20;
  for (size_t end = begin; begin < file.size(); begin = end) {
    end = std::min(begin + block, file.size());
    checksum.add(file.data() + begin, end - begin);
    file.release(begin, end);
  }
}

}  // namespace capstan::safetensors
