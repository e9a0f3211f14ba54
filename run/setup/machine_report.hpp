// What the log of a run says of the machine: threads, instructions, libraries. tests/cli/training/test_precision.cpp.
#pragma once

#include <string>

namespace capstan {

/// This process, its threads, instruction set and BLAS.
std::string machine_line();
/// That the CPU supports faster kernels than those that BLAS uses; empty where it does not.
std::string blas_warning();

}  // namespace capstan
