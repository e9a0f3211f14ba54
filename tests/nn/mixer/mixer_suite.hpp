// What every mixer must do, whatever its system: the invariants of nn/mixer/README.md, as checks that are run on every
// sample of the variant. Gradients are checked in gradcheck_samples.cpp.
#pragma once

#include <memory>
#include <vector>

#include "core/autograd/tape.hpp"
#include "nn/blocks/block.hpp"
#include "nn/systems/mixer_config.hpp"
#include "tests/nn/mixer/mixer_case.hpp"
#include "tests/support/agreement.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/ragged.hpp"
#include "tests/support/weights.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

/// Past three SIMD registers of floats, and no multiple of one; 5 heads of 10 channels.
constexpr int64_t width = 50;

/// Of a fused layer against the composed one, relative to max(1, max |y|).
constexpr double layer_tolerance = sizeof(real) == 4 ? 1e-5 : 1e-12;

/// A module with the store it lives in.
template <class Module>
struct Built {
  std::unique_ptr<ParamStore> store = std::make_unique<ParamStore>();
  std::unique_ptr<Module> module;
};

/// With weights of sigma 0.5. `prefix`: as in MixerShape.
Built<Mixer> built_mixer(const MixerConfig& config, bool causal, int64_t max_length);
Built<Mixer> built_mixer(const MixerCase& c, bool causal, int64_t max_length, bool prefix = false);

Array forward(const Mixer& mixer, const Array& x, const Segments& segments);

/// Prefill with the first `prefilled` tokens, then step by step to the end: (B, T, D), put together again.
Array decoded(const Mixer& mixer, const Array& x, int64_t prefilled, MixerState& state);

/// A piece that is one token, read by a step.
constexpr int64_t single_step = -1;
/// The tokens in pieces of these lengths, put together again.
Array in_pieces(const Mixer& mixer, const Array& x, const std::vector<int64_t>& pieces, MixerState& state);

/// Tokens [begin, end) of every sequence: (B, T, D) -> (B, end - begin, D).
Array tokens(const Array& x, int64_t begin, int64_t end);

/// Later tokens, up to 3000 times as large, do not reach earlier outputs; on one thread and on two.
void check_causality(const MixerCase& c);
/// Padding, its side, batch mates and documents packed beside change no valid output.
void check_padding(const MixerCase& c);
/// Inputs that make keys of 10^4 give finite outputs and gradients.
void check_extreme_inputs(const MixerCase& c);
/// Lengths never seen, packed documents; a limit, where there is one, is refused beyond.
void check_lengths(const MixerCase& c);
/// Rows of padding give 0 from the mixer's core, exactly, and no gradient, neither to inputs nor to parameters.
void check_blind_tokens(const MixerCase& c);
/// Batches without sequences or tokens pass through; inputs that do not fit are refused.
void check_shapes(const MixerCase& c);
/// A document that is all prefix gives what a bidirectional mixer gives, in forward and in prefill.
void check_prefix(const MixerCase& c);
/// Decoding gives what forward gives for any prefill; keeps sequences apart; reset forgets; misuse is refused.
void check_decode(const MixerCase& c);

/// Tokens read in pieces of any lengths, and single steps among them, give what one pass gives; a state goes on from
/// there.
void check_pieces(const MixerCase& c);

/// A text's outputs have the same bits alone and among others, which join and leave at random, on one and two threads.
void check_company(const MixerCase& c);

/// All of the above.
void check_mixer(const MixerCase& c);

}  // namespace capstan::CAPSTAN_PRECISION::testing
