// The one thread pool: OpenMP's, which OpenBLAS (its OpenMP build) shares. Every parallel loop of the program is
// parallel_for(), parallel_each() or parallel_units(). What a body computes must not depend on the cut of the loop:
// results are the same on any number of threads (tests/core/autograd/test_tape.cpp, tests/models/test_decode.cpp).
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

#include "core/base/no_copy.hpp"
#include "core/base/stop.hpp"
#include "core/machine/float_mode.hpp"

namespace capstan {

/// While it lives, as a loop runs that has a work buffer per thread, threads() stays what it is on the calling thread,
/// even where another thread calls set_threads().
class FixedThreads : NoCopy {
 public:
  FixedThreads();
  ~FixedThreads();

 private:
  int before_;
};

/// Threads used by kernels and GEMM from now on; 0 = cpu_limit(). Throws
/// std::invalid_argument for a negative number. core/products/blas_info.cpp keeps the number.
void set_threads(int threads);
int threads();

/// Ends the threads that wait for work; the next loop makes new ones. To be called before fork(): the child would wait
/// for threads that it does not have. Not in a parallel loop.
void end_threads();

/// Does a loop that begins here run on the calling thread alone, because it is in the body of a parallel loop or in a
/// OneThread scope? True in the body of a loop long enough to be split even if there is one thread only, so that what
/// depends on in_parallel() depends on shapes, not on the number of threads.
bool in_parallel();

/// How many work buffers a loop that begins here needs: 1 in a OneThread scope, else threads().
int team_size();

/// The number of the running thread's work buffer: less than team_size() was where the loop began.
int thread_index();

/// While it lives, products by OpenBLAS and oneDNN run on the calling thread alone; outside a parallel region they
/// would take all threads that OpenMP offers.
class OneThreadProducts : NoCopy {
 public:
  OneThreadProducts() : before_(in_parallel() ? 1 : omp_get_max_threads()) {
    if (before_ > 1) omp_set_num_threads(1);
  }
  ~OneThreadProducts() {
    if (before_ > 1) omp_set_num_threads(before_);
  }

 private:
  int before_;
};

/// While it lives, all loops and matrix products that the calling thread begins run on that thread alone.
class OneThread : NoCopy {
 public:
  OneThread();
  ~OneThread();

 private:
  OneThreadProducts products_;
  bool before_;
};

/// The grain of element-wise loops: with fewer elements per thread, a second thread costs more than it saves.
constexpr int64_t elementwise_grain = 16384;

/// body(thread, team) on each of `most` threads, or as many as OpenMP gives. When all are done, the exception of the
/// first that threw is thrown again. The threads share the StopPoll of the calling one.
template <class Body>
void run_team(int64_t most, const Body& body) {
  std::exception_ptr error;
  const StopPoll* const poll = StopScope::current();
#pragma omp parallel num_threads(static_cast <int>(most))
  {
    flush_denormals();
    const StopScope same(poll);
    try {
      body(int64_t{omp_get_thread_num()}, int64_t{omp_get_num_threads()});
    } catch (...) {
#pragma omp critical(capstan_parallel_error)
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

/// body(begin, end) over contiguous pieces of [0, count), one per thread; one piece on the calling thread when count is
/// below 2 * grain or a parallel loop is running. The split depends on count, grain and threads() only.
template <class Body>
void parallel_for(int64_t count, int64_t grain, const Body& body) {
  const int64_t most = in_parallel() ? 1 : count / std::max<int64_t>(grain, 1);
  flush_denormals();
  if (most <= 1) {
    if (count > 0) body(int64_t{0}, count);
    return;
  }
  if (threads() == 1) {
    const OneThread alone;
    return body(int64_t{0}, count);
  }
  run_team(std::min<int64_t>(threads(), most), [&](int64_t piece, int64_t team) {
    const int64_t begin = count * piece / team, end = count * (piece + 1) / team;
    if (begin < end) body(begin, end);
  });
}

/// body(i) for i in [0, count), in the pieces of parallel_for.
template <class Body>
void parallel_each(int64_t count, int64_t grain, const Body& body) {
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

/// body(i) for i in [0, count), handed out one by one: for units of unequal cost. Units must not depend on each other.
template <class Body>
void parallel_units(int64_t count, const Body& body) {
  std::atomic<int64_t> next{0};
  const auto take_units = [&](int64_t, int64_t) {
    for (int64_t unit = next++; unit < count; unit = next++) {
      stop_point();
      body(unit);
    }
  };
  flush_denormals();
  if (count <= 1 || in_parallel()) return take_units(0, 1);
  if (threads() > 1) return run_team(std::min<int64_t>(threads(), count), take_units);
  const OneThread alone;
  take_units(0, 1);
}

}  // namespace capstan
