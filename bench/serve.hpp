// One subject, timed on request, so that a driver (bench/timing.py) can take turns between this program and others,
// such as those of bench/pytorch, which answer the same requests.
#pragma once

#include "bench/subject.hpp"

namespace capstan::bench {

/// Reads one request per line from stdin and answers each with one line of JSON on stdout until stdin ends:
///   check    {"loss", "grad_norm"}
///   round N  {"seconds"}           of N units of work
///   sgemm    {"flops_per_second"}
///   memory   {"peak_bytes"}        resident, since the last `memory` or the start
///   info     what was built and what runs it
/// A request that fails is answered with {"error"}.
void serve(const Setup& setup);

}  // namespace capstan::bench
