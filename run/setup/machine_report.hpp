// What a run and `capstan inspect --machine` say of the machine: threads, instructions, libraries, rates.
// tests/cli/training/test_precision.cpp.
#pragma once

#include <string>

namespace capstan {

/// This process, its threads, instruction set and BLAS.
std::string machine_line();
/// That the CPU supports faster kernels than those that BLAS uses; empty where it does not.
std::string blas_warning();

/// machine_line(), blas_warning(), whether products in bf16 have instructions, and measured rates of products and of
/// memory.
std::string machine_report();

}  // namespace capstan
