#include "sign_sgd.hpp"

namespace capstan {

void SignSgdConfig::update(const Update& update, std::vector<OptimizerState>& states) const {
  for_pieces(update, states[0], [&](const kernels::UpdateBlocks& blocks, int64_t at, double lr) {
    kernels::lion(blocks, states[0].data() + at, {lr, momentum, momentum, 0});
  });
}

}  // namespace capstan
