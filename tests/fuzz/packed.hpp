// Packed files as inputs.
#pragma once

#include <string>

#include "data/files/text_file.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {

/// Reads the input as a file of this name's end, at most a megabyte of it.
inline void read_packed(std::string_view input, const char* ending) {
  constexpr int64_t megabytes = 1;
  const std::string path = file_in_memory(input, ending);
  looks_binary(path);
  size_t size = 0;
  for (TextReader reader(path, megabytes); !reader.at_end();) {
    size += reader.piece().size();
    require(size <= megabytes * 1'000'000, "no more is decompressed than was asked for");
  }
}

}  // namespace capstan::fuzz
