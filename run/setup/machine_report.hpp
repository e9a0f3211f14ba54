// What a run says of the machine that it runs on.
#pragma once

#include <string>
#include <vector>

namespace capstan {

/// One line about this process, its threads, instruction set and BLAS, and a warning if the CPU supports faster kernels
/// than those that BLAS uses.
std::vector<std::string> machine_lines();

/// These lines, whether products in bf16 have instructions, and measured rates of memory and of affine maps by shape.
std::string machine_report();

}  // namespace capstan
