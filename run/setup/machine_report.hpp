// What a run says of the machine that it runs on.
#pragma once

#include <string>

namespace capstan {

/// This process, its threads, instruction set and BLAS.
std::string machine_line();
/// That the CPU supports faster kernels than those that BLAS uses; empty where it does not.
std::string blas_warning();

/// Both, whether products in bf16 have instructions, and measured rates of memory and of affine maps by shape.
std::string machine_report();

}  // namespace capstan
