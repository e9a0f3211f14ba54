// The working precision of a translation unit: float, or double where CAPSTAN_DOUBLE is defined.
//
// Every source that depends on `real` is compiled twice. The two results live in different inline namespaces, so that
// one program (a test) may link both; everything that depends on `real` stands between CAPSTAN_BEGIN and CAPSTAN_END.
#pragma once

#ifdef CAPSTAN_DOUBLE
#define CAPSTAN_BEGIN \
  namespace capstan { \
  inline namespace f64 {
#define CAPSTAN_REAL double
#else
#define CAPSTAN_BEGIN \
  namespace capstan { \
  inline namespace f32 {
#define CAPSTAN_REAL float
#endif
#define CAPSTAN_END \
  }                 \
  }

CAPSTAN_BEGIN
using real = CAPSTAN_REAL;
CAPSTAN_END
