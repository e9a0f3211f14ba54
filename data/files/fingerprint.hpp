// Tells whether data or a tokenizer is still what a run began with.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/hash.hpp"
#include "data/files/token_row.hpp"

namespace capstan {

/// XXH3-128 over everything added. Each piece is preceded by its length,
/// so that moving a byte from one piece to the next shows.
class Fingerprint {
 public:
  Fingerprint& add(std::string_view bytes);
  Fingerprint& add(const std::vector<int32_t>& values);
  Fingerprint& add(const std::vector<int64_t>& values);
  /// Adds a row of tokens, with the result of adding it as a vector.
  Fingerprint& add(const TokenRow& tokens);
  /// Begins a piece of `size` bytes, whose parts part() adds; the result is that of add() with the whole piece.
  Fingerprint& begin(uint64_t size);
  Fingerprint& part(std::string_view bytes);
  /// 32 hexadecimal digits.
  std::string hex() const { return hash_.hex(); }

 private:
  Hash hash_;
};

}  // namespace capstan
