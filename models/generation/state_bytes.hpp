// The memory of a decode state: the sessions of serve/. tests/serve/test_company.cpp.
#pragma once

#include <cstdint>

#include "models/stack.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// Bytes that one sequence takes after `position` tokens.
int64_t bytes_per_sequence(const DecodeState& state, int64_t position);

}  // namespace capstan::CAPSTAN_PRECISION
