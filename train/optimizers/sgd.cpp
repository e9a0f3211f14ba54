#include "train/optimizers/sgd.hpp"

namespace capstan {

void SgdConfig::update(const Update& update, std::vector<OptimizerState>& states) const {
  for_pieces(update, states[0], [&](const kernels::UpdateBlocks& blocks, int64_t at, double lr) {
    kernels::sgd(blocks, states[0].data() + at, {lr, momentum, weight_decay, nesterov});
  });
}

}  // namespace capstan
