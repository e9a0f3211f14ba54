// The activations and their derivatives on SIMD registers, for core/kernels/activation and the kernels of
// nn/systems/quadratic and gated. tests/core/fused/test_linear.cpp holds limits, NaN and the tails of gelu;
// tests/core/products/float_in_order.cpp the bits.
#pragma once

#include "core/kernels/activation_kind.hpp"
#include "core/kernels/simd.hpp"

namespace capstan::CAPSTAN_PRECISION::kernels {

/// The value of an activation and its slope there.
struct ValueAndSlope {
  simd::Batch value, slope;
};

/// Each activation has value(x), and both(x): the value and the derivative at x.
struct NoActivation {
  static simd::Batch value(const simd::Batch& x) { return x; }
  static ValueAndSlope both(const simd::Batch& x) { return {x, simd::Batch(real{1})}; }
};

struct Relu {
  // x < 0 ? 0 : x rather than max(x, 0): a NaN must stay one.
  static simd::Batch value(const simd::Batch& x) {
    return xsimd::select(x < simd::Batch(real{0}), simd::Batch(real{0}), x);
  }
  static ValueAndSlope both(const simd::Batch& x) {
    return {value(x), xsimd::select(x > simd::Batch(real{0}), simd::Batch(real{1}), simd::Batch(real{0}))};
  }
};

struct SquaredRelu {
  static simd::Batch value(const simd::Batch& x) {
    const simd::Batch positive = Relu::value(x);
    return positive * positive;
  }
  static ValueAndSlope both(const simd::Batch& x) {
    const simd::Batch positive = Relu::value(x);
    return {positive * positive, positive + positive};
  }
};

struct Gelu {
  struct Normal {
    simd::Batch probability;  // Phi(x), the distribution function
    simd::Batch bell;         // e^(-x^2 / 2)
  };
#ifdef CAPSTAN_DOUBLE
  static Normal normal(const simd::Batch& x) {
    const simd::Batch half(0.5), sqrt_half(0.707106781186547524400844362104849039);
    return {half + half * xsimd::erf(x * sqrt_half), simd::exp(-half * x * x)};
  }
#else
  /// Phi(-a) = e^(-a^2 / 2) t P(t) with t = 1 / (1 + 0.35 a) for a >= 0, the form of Abramowitz and Stegun
  /// 1964, 26.2.17: P is a minimax fit of degree 8 with relative error 3.2e-8 up to a = 14, beyond which the
  /// exponential is 0. Value and slope share the one exponential, and small probabilities keep their digits, which 1 +
  /// erf would lose.
  static Normal normal(const simd::Batch& x) {
    const simd::Batch one(1.0f), bell = simd::exp(simd::Batch(-0.5f) * x * x);
    const simd::Batch t = one / simd::fma(simd::Batch(0.35f), xsimd::abs(x), one);
    constexpr float coefficients[] = {0.143971499f, -0.255713929f, 0.159173888f, -0.0231097157f,
                                      0.105507981f, 0.119832867f,  0.139861871f, 0.139621404f};
    simd::Batch p(-0.0291458811f);
    for (const float coefficient : coefficients) p = simd::fma(p, t, simd::Batch(coefficient));
    const simd::Batch tail = bell * t * p;
    return {xsimd::select(x < simd::Batch(0.0f), tail, one - tail), bell};
  }
#endif
  static simd::Batch value(const simd::Batch& x) { return x * normal(x).probability; }
  static ValueAndSlope both(const simd::Batch& x) {
    const Normal n = normal(x);
    const simd::Batch inverse_sqrt_two_pi(real(0.398942280401432677939946059934381868));
    return {x * n.probability, n.probability + x * inverse_sqrt_two_pi * n.bell};
  }
};

struct Sigmoid {
  static simd::Batch value(const simd::Batch& x) { return simd::sigmoid(x); }
  static ValueAndSlope both(const simd::Batch& x) {
    const simd::Batch y = value(x);
    return {y, y * (simd::Batch(real{1}) - y)};
  }
};

struct Silu {
  static simd::Batch value(const simd::Batch& x) { return x * Sigmoid::value(x); }
  static ValueAndSlope both(const simd::Batch& x) {
    const simd::Batch sigmoid = Sigmoid::value(x), y = x * sigmoid;
    return {y, sigmoid + y * (simd::Batch(real{1}) - sigmoid)};
  }
};

struct Tanh {
  static simd::Batch value(const simd::Batch& x) { return simd::tanh(x); }
  static ValueAndSlope both(const simd::Batch& x) {
    const simd::Batch y = value(x);
    return {y, simd::Batch(real{1}) - y * y};
  }
};

/// body(F{}) for the functions F of `activation`: chosen once per pass, inlined in its loop.
template <class Body>
void with_activation(Activation activation, const Body& body) {
  switch (activation) {
    case Activation::none:
      return body(NoActivation{});
    case Activation::relu:
      return body(Relu{});
    case Activation::squared_relu:
      return body(SquaredRelu{});
    case Activation::gelu:
      return body(Gelu{});
    case Activation::silu:
      return body(Silu{});
    case Activation::sigmoid:
      return body(Sigmoid{});
    case Activation::tanh:
      return body(Tanh{});
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::kernels
