// The activations and their derivatives on SIMD registers.
#pragma once

#include "core/activation.hpp"
#include "core/kernels/simd.hpp"

CAPSTAN_BEGIN
namespace kernels {

/// The value of an activation and its slope there.
struct ValueAndSlope {
  simd::Batch value, slope;
};

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
  /// Phi(x), the normal distribution function.
  static simd::Batch probability(const simd::Batch& x) {
    const simd::Batch half(real(0.5)), sqrt_half(real(0.707106781186547524400844362104849039));
    return half + half * xsimd::erf(x * sqrt_half);
  }
  static simd::Batch value(const simd::Batch& x) { return x * probability(x); }
  static ValueAndSlope both(const simd::Batch& x) {
    const simd::Batch phi = probability(x), inverse_sqrt_two_pi(real(0.398942280401432677939946059934381868));
    const simd::Batch density = inverse_sqrt_two_pi * xsimd::exp(simd::Batch(real(-0.5)) * x * x);
    return {x * phi, phi + x * density};
  }
};

struct Sigmoid {
  // e^-x may be infinite: 1 / inf is the right 0.
  static simd::Batch value(const simd::Batch& x) {
    return simd::Batch(real{1}) / (simd::Batch(real{1}) + xsimd::exp(-x));
  }
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
  static simd::Batch value(const simd::Batch& x) { return xsimd::tanh(x); }
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

}  // namespace kernels
CAPSTAN_END
