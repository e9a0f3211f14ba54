// A sequence of a decode state as bytes, which another process can take up.
#pragma once

#include <string>
#include <string_view>

#include "models/stack.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Position and elements of sequence `row`, after a format number and with a hash at the end. `identity` says whose
/// state it is: the weights; `more` is returned by set_state(). Little-endian.
std::string state_bytes(DecodeState& state, int64_t row, std::string_view identity, std::string_view more);
/// Sequence `row` becomes the one of which state_bytes() made `bytes`. Throws Error, and leaves the sequence half set,
/// for bytes of another format, identity or form, and for damaged ones.
std::string set_state(DecodeState& state, int64_t row, std::string_view bytes, std::string_view identity);
/// Bytes that one sequence takes after `position` tokens.
int64_t bytes_per_sequence(const DecodeState& state, int64_t position);

}  // namespace capstan::CAPSTAN_PRECISION
