#include "nn/mixer/prefixes.hpp"

#include "core/base/error.hpp"

namespace capstan::CAPSTAN_PRECISION {

Array outside_prefixes(const Context& context, int64_t rank) {
  const Ids &all = context.segments.ids(), &prefixes = context.prefixes.ids();
  check(prefixes.shape() == all.shape(), "mixer: prefixes {} and segments {} differ in shape", prefixes.shape(),
        all.shape());
  Array outside(rank == 4 ? Shape{all.dim(0), 1, all.dim(1), 1} : Shape{all.dim(0), all.dim(1), 1});
  for (int64_t i = 0; i < all.size(); ++i) {
    check(prefixes[i] == 0 || prefixes[i] == all[i], "mixer: the prefix at {} is part of another document", i);
    outside.mutable_data()[i] = prefixes[i] == 0 ? 1 : 0;
  }
  return outside;
}

}  // namespace capstan::CAPSTAN_PRECISION
