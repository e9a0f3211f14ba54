// depthwise_causal_conv(). The kernels get the number of tokens that each token may look back at, which keeps documents
// apart and padding at 0: they know neither.
#include "core/ops/conv.hpp"

#include "core/array/layout.hpp"
#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/kernels/conv.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {

Var depthwise_causal_conv(const Var& x, const Var& kernel, const Segments& segments) {
  const ProfileSpan span;
  check(x.rank() == 3 && kernel.rank() == 2 && kernel.dim(0) == x.dim(2) && kernel.dim(1) >= 1,
        "depthwise_causal_conv: need x (B, T, D) and kernel (D, K), got {} and {}", x.shape(), kernel.shape());
  check(segments.batch() == x.dim(0) && segments.length() == x.dim(1),
        "depthwise_causal_conv: segments {} do not fit x {}", segments.ids().shape(), x.shape());
  Ids reach(segments.ids().shape());
  int32_t* const out = reach.mutable_data();
  for (int64_t token = 0; token < reach.size(); ++token)
    out[token] = segments.ids()[token] == 0 ? 0 : segments.positions()[token] + 1;
  const kernels::ConvSize size{x.dim(0), x.dim(1), x.dim(2), kernel.dim(1)};
  const Array taps = permuted_axes(kernel.value(), {1, 0});  // (K, D): a tap's elements are neighbours
  Array y(x.shape());
  kernels::causal_conv(y.mutable_data(), x.value().data(), taps.data(), reach.data(), size);
  return make_var("depthwise_causal_conv", std::move(y), {x, kernel},
                  [size, reach, taps, shape = x.shape(), x = kernel.needs_grad() ? x.value() : Array()](
                      const Array& g, const Needs& needs) -> Grads {
                    Grads grads(2);
                    if (needs[0]) {
                      Array dx(shape);
                      kernels::causal_conv_grad_x(dx.mutable_data(), g.data(), taps.data(), reach.data(), size);
                      grads[0] = std::move(dx);
                    }
                    if (needs[1]) {
                      Array dtaps(taps.shape());
                      kernels::causal_conv_grad_taps(dtaps.mutable_data(), g.data(), x.data(), reach.data(), size);
                      grads[1] = permuted_axes(dtaps, {1, 0});
                    }
                    return grads;
                  });
}

}  // namespace capstan::CAPSTAN_PRECISION
