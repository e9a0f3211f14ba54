// Does the pullback of softplus agree with finite differences?
#include <cstdio>

#include "core/autograd/gradcheck.hpp"
#include "core/ops/ops.hpp"
#include "softplus.hpp"

namespace {

using namespace capstan;

/// The same value with a gradient that is wrong. A check that cannot fail says nothing, so this one must be refused.
Var wrong_softplus(const Var& x) {
  return make_var("wrong_softplus", softplus(Var(x.value())).value(), {x},
                  [](const Array& g, const Needs&) -> Grads { return {g}; });
}

}  // namespace

int main() {
  // The inputs are drawn by the check; each entry is moved up and down a little, and the change of a fixed random
  // projection of the output is compared with what the tape says.
  const GradcheckReport right = gradcheck([](const std::vector<Var>& v) { return softplus(v[0]); }, {Shape{3, 35}});
  std::printf("softplus:       largest difference %.1e of the gradient, %s\n", right.error,
              right.ok ? "right" : "WRONG");

  // Operations compose: the gradient of the whole follows from those of its parts.
  const GradcheckReport composed = gradcheck(
      [](const std::vector<Var>& v) { return softplus(v[0] * v[1]) - 0.5 * v[1]; }, {Shape{3, 35}, Shape{35}});
  std::printf("in expressions: largest difference %.1e of the gradient, %s\n", composed.error,
              composed.ok ? "right" : "WRONG");

  const GradcheckReport wrong = gradcheck([](const std::vector<Var>& v) { return wrong_softplus(v[0]); }, {Shape{4}});
  std::printf("wrong_softplus: %s (%s)\n", wrong.ok ? "NOT NOTICED" : "noticed", wrong.worst.c_str());
  return right.ok && composed.ok && !wrong.ok ? 0 : 1;
}
