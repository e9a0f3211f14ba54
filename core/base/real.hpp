// The working precision of a translation unit: float, which the program uses, or double where CAPSTAN_DOUBLE is
// defined, for gradient checks and for tests that need its digits.
//
// Every source that depends on `real` is compiled twice. The two results are in different inline namespaces, so one
// program (a test) may link both. Everything that depends on `real` is in `namespace capstan::CAPSTAN_PRECISION`, which
// callers write as `capstan`.
#pragma once

#ifdef CAPSTAN_DOUBLE
#define CAPSTAN_PRECISION f64
#define CAPSTAN_REAL double
#else
#define CAPSTAN_PRECISION f32
#define CAPSTAN_REAL float
#endif

namespace capstan {
inline namespace CAPSTAN_PRECISION {
using real = CAPSTAN_REAL;
}
}  // namespace capstan
