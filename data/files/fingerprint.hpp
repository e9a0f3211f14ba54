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
  /// The same as that of the row's vector.
  Fingerprint& add(const TokenRow& tokens);
  /// The same as add() of a piece of `size` bytes that part() gives one after the other.
  Fingerprint& begin(uint64_t size);
  Fingerprint& part(std::string_view bytes);
  /// 32 hexadecimal digits.
  std::string hex() const { return hash_.hex(); }

 private:
  Hash hash_;
};

}  // namespace capstan
