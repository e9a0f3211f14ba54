// Attention as a composition of primitives: what it is, without any thought of speed. B x H x T x T numbers; for tests
// and for readers. The arguments are those of core/ops_attention.hpp, which computes the same.
#pragma once

#include "core/ops_attention.hpp"

CAPSTAN_BEGIN

Var attention_composed(const Var& q, const Var& k, const Var& v, const Var& bias, const Segments& segments,
                       const AttentionOptions& options);

CAPSTAN_END
