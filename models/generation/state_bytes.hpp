// Decode states as bytes, with which another process can go on writing a text: the sessions of serve/.
// tests/serve/test_sessions.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/stack.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Sequence `row` of a state as bytes: a format number, position and elements, a hash. `identity` names the weights
/// that the state belongs to; `more` is any text that set_state() gives back. Little-endian.
std::string state_bytes(DecodeState& state, int64_t row, std::string_view identity, std::string_view more);
/// Sequence `row` becomes the one of which state_bytes() made `bytes`. Throws Error, and leaves the sequence half set,
/// for bytes of another format, identity or form, and for damaged ones.
std::string set_state(DecodeState& state, int64_t row, std::string_view bytes, std::string_view identity);
/// Bytes that one sequence takes after `position` tokens.
int64_t bytes_per_sequence(const DecodeState& state, int64_t position);

}  // namespace capstan::CAPSTAN_PRECISION
