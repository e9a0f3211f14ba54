// What of this process the bits of a run depend on.
#include "core/machine/kernel_levels.hpp"
#include "core/products/blas_info.hpp"
#include "train/checkpoints/run_state.hpp"

namespace capstan {

Settings this_machine(Precision precision) {
  const BlasInfo blas = blas_info();
  Settings machine{{"SIMD", kernel_level()},
                   {"BLAS", blas.version + ", " + blas.threading},
                   {"BLAS core", blas.core},
                   {"float products", blas.float_products}};
  if (precision == Precision::bf16) machine["bf16 products"] = blas.bf16_products;
  return machine;
}

}  // namespace capstan
