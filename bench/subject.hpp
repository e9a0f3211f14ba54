// What a benchmark times: a training step, a pass through a block, or decoding, of any system. serve.cpp
// times it. Its work is that of the programs in bench/pytorch: bench/timing.py compares the Outcome of both before it
// times.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace capstan::bench {

enum class Work { step, forward, both, decode };
/// Throws std::invalid_argument for a name that is none of "step", "forward", "both", "decode".
Work work_called(const std::string& name);

/// What is timed, and how large it is. No work uses every field.
struct Setup {
  std::string system = "aft-simple";  // a mixer's type
  Work work = Work::step;
  int64_t width = 256;
  int64_t layers = 4;  // for a Transformer; gau and flash use two each
  int64_t batch = 8;
  int64_t length = 512;    // decode: tokens before the first one that is timed
  int64_t max_length = 0;  // longest position; 0: length
  int64_t lanes = 0;       // as train.lanes
  int64_t micro = 0;       // tokens per micro-batch, 0: the whole batch at once
  bool int8 = false;       // decode: weights in 8 bits
  bool bf16 = false;       // training steps with train.precision: bf16; decode: weights rounded to bf16
  std::string weights;     // safetensors file with every parameter; empty: as the model starts
  std::string data;        // safetensors file with tokens and labels, or x; empty: random ones
};

/// What two programs must have in common, to rounding, if they do the same work.
struct Outcome {
  double loss = 0;       // mean nats per target; of a block the mean of y^2 / 2
  double grad_norm = 0;  // over all parameters; 0 where nothing is differentiated
};

/// Byte-level language model (V = 256, learned positions, pre-norm, tied output), or its blocks alone.
class Subject {
 public:
  virtual ~Subject() = default;
  /// The work without the update of any weight.
  virtual Outcome check() = 0;
  /// Seconds taken by `repeats` units of work: training steps, passes or tokens.
  virtual double run(int64_t repeats) = 0;
  /// Useful FLOPs of a unit: products with weights and mixing, three times where there is a backward pass; recomputed
  /// and masked work does not count.
  virtual double flops() const = 0;
  /// Tokens a unit works through.
  virtual double tokens() const = 0;
  /// Float32 numbers that hold as much as the weights that a unit reads at least once (no table of positions).
  virtual int64_t weights_read() const = 0;
  /// All weights, at least weights_read() floats.
  virtual const float* weights() const = 0;
  /// Float32 numbers in the states of all sequences, before the first token that is timed; 0: nothing is decoded.
  virtual int64_t states_read() const { return 0; }
};

std::unique_ptr<Subject> make_subject(const Setup& setup);

}  // namespace capstan::bench
