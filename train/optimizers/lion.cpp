#include "train/optimizers/lion.hpp"

namespace capstan {

void LionConfig::update(const Update& update, std::vector<OptimizerState>& states) const {
  for_pieces(update, states[0], [&](const kernels::UpdateBlocks& blocks, int64_t at, double lr) {
    kernels::lion(blocks, states[0].data() + at, {lr, beta1, beta2, weight_decay});
  });
}

}  // namespace capstan
