// Element-wise operations. Two operands broadcast as in NumPy; the tape sums gradients over the broadcast axes.
// Each op has its gradient; g is that of the output. Negative axes count from the end; what does not fit throws
// std::invalid_argument. tests/core/ops/test_ops.cpp, gradcheck_ops.cpp.
#pragma once

#include "core/autograd/var.hpp"

namespace capstan::CAPSTAN_PRECISION {

/// a + b.  da = g, db = g.
Var add(const Var& a, const Var& b);
/// a - b.  da = g, db = -g.
Var sub(const Var& a, const Var& b);
/// a * b.  da = g * b, db = g * a.
Var mul(const Var& a, const Var& b);
/// y = a / b.  da = g / b, db = -g * y / b.
Var div(const Var& a, const Var& b);
/// a where mask is not 0, b elsewhere; all three broadcast.  da = g where mask, db = g elsewhere. What is not chosen
/// may be infinite or NaN.
Var where(const Array& mask, const Var& a, const Var& b);

/// x + s.  dx = g.
Var add_scalar(const Var& x, double s);
/// x * s.  dx = g * s.
Var mul_scalar(const Var& x, double s);

/// -x.  dx = -g.
Var neg(const Var& x);
/// y = e^x.  dx = g * y.
Var exp(const Var& x);
/// Natural logarithm.  dx = g / x.
Var log(const Var& x);
/// y = sqrt(x).  dx = g / (2 y).
Var sqrt(const Var& x);
/// x^2.  dx = 2 g x.
Var square(const Var& x);
/// y = tanh(x).  dx = g (1 - y^2).
Var tanh(const Var& x);
/// y = 1 / (1 + e^-x), without overflow.  dx = g y (1 - y).
Var sigmoid(const Var& x);
/// x sigmoid(x).  dx = g s (1 + x (1 - s)) with s = sigmoid(x).  Also called swish.
Var silu(const Var& x);
/// x Phi(x) = x (1 + erf(x / sqrt 2)) / 2: the exact form, not the tanh approximation.  dx = g (Phi(x) + x phi(x)).
/// Hendrycks and Gimpel 2016, arXiv 1606.08415.
Var gelu(const Var& x);
/// max(x, 0).  dx = g where x > 0, else 0.
Var relu(const Var& x);
/// max(x, 0)^2.  dx = 2 g max(x, 0).  So et al. 2021, arXiv 2109.08668.
Var squared_relu(const Var& x);
/// Error function.  dx = g 2 / sqrt(pi) e^(-x^2).
Var erf(const Var& x);

inline Var operator+(const Var& a, const Var& b) { return add(a, b); }
inline Var operator-(const Var& a, const Var& b) { return sub(a, b); }
inline Var operator*(const Var& a, const Var& b) { return mul(a, b); }
inline Var operator/(const Var& a, const Var& b) { return div(a, b); }
inline Var operator-(const Var& x) { return neg(x); }
inline Var operator+(const Var& x, double s) { return add_scalar(x, s); }
inline Var operator+(double s, const Var& x) { return add_scalar(x, s); }
inline Var operator-(const Var& x, double s) { return add_scalar(x, -s); }
inline Var operator-(double s, const Var& x) { return add_scalar(neg(x), s); }
inline Var operator*(const Var& x, double s) { return mul_scalar(x, s); }
inline Var operator*(double s, const Var& x) { return mul_scalar(x, s); }
inline Var operator/(const Var& x, double s) { return mul_scalar(x, 1 / s); }

}  // namespace capstan::CAPSTAN_PRECISION
