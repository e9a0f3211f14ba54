// The tables of bench_models (models.cpp) that need no other program to compare with.
#pragma once

#include <vector>

#include "bench/subject.hpp"

namespace capstan::bench {

struct TableOptions {
  Setup setup;                       // `system` and `work` are chosen by the table
  std::vector<std::string> systems;  // empty: all
  int64_t rounds = 9;
};

/// Training steps: time, tokens per second, share of sgemm, peak memory. Medians with [lowest, highest].
void print_steps(const TableOptions& options);
/// Training steps at T = 16384 over T = 256 and T = 1024, B T = 16384: time per token.
void print_length(const TableOptions& options);
/// Time per generated token at position 256 with float32 and with bf16 weights, over the time to read them once; steps
/// of 1, 8 and 64 streams in both formats; then, in bf16, one stream at position 4096 over 256 and at 8192 over 512.
void print_decode(const TableOptions& options);

}  // namespace capstan::bench
