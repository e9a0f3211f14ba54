// A short convolution in front of a mixer: each token first sees the few before it.
#pragma once

#include <memory>

#include "nn/mixer/mixer.hpp"
#include "nn/params/scope.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// y = mixer(x + conv(x)), with a depthwise causal convolution of `taps` tokens within each document
/// (core/ops/conv.hpp), also in models that read in both directions. After the Canon layers of Allen-Zhu 2025 ("Physics
/// of Language Models: Part 4.1", in front of the mixer, with a residual and without an activation); Arora et al. 2023
/// (Zoology, arXiv 2312.04927) put one in front of mixers for recall. Parameter short_conv.kernel (D, taps), the last
/// tap that of the token itself.
/// `scope` is that of the block. taps >= 1.
std::unique_ptr<Mixer> make_short_conv(const Scope& scope, int64_t width, int64_t taps, std::unique_ptr<Mixer> mixer);

}  // namespace capstan::CAPSTAN_PRECISION
