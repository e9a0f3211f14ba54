// What the parallel loops of parallel.hpp ask OpenMP, and OneThread, which makes loops run on the calling thread. Not
// in the header: the kernels of a portable build must share these functions and their variable.
// tests/core/machine/test_parallel.cpp.
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

thread_local bool one_thread = false;

}  // namespace

// Not inline: the kernels of a portable build have their own copies of inline functions, and of their variables.
bool in_parallel() { return one_thread || omp_in_parallel() != 0; }
int team_size() { return one_thread ? 1 : threads(); }
int thread_index() { return one_thread ? 0 : omp_get_thread_num(); }

void end_threads() { omp_pause_resource_all(omp_pause_hard); }

OneThread::OneThread() : before_(one_thread) { one_thread = true; }
OneThread::~OneThread() { one_thread = before_; }

}  // namespace capstan
