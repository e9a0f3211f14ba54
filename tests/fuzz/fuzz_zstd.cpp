// Texts packed with zstd. The mutator changes the text and packs it again, or changes the file.
#include <zstd.h>

#include "tests/fuzz/packed.hpp"

namespace capstan::fuzz {
namespace {

void read_zstd_file(std::string_view input) { read_packed(input, ".zst"); }

std::string change_zstd(const std::string& input, size_t most, std::mt19937& random, const Change& change) {
  std::string text = input;
  if (random() % 3 == 0) {
    change(text, most);
    return text;
  }
  text.assign(4096, '\0');
  const size_t size = ZSTD_decompress(text.data(), text.size(), input.data(), input.size());
  text.resize(ZSTD_isError(size) ? 0 : size);
  change(text, 4096);
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), static_cast<int>(random() % 6)));
  return random() % 4 == 0 ? packed + packed : packed;
}

const Registered zstd_target("zstd", read_zstd_file, change_zstd);

}  // namespace
}  // namespace capstan::fuzz
