#include "train/optimizers/adamw.hpp"

namespace capstan {

void AdamWConfig::update(const Update& update, std::vector<OptimizerState>& states) const {
  update_adamw(*this, update, states[0], states[1]);
}

void update_adamw(const AdamWConfig& config, const Update& update, OptimizerState& first_moment,
                  OptimizerState& second_moment) {
  for_pieces(update, first_moment, [&](const kernels::UpdateBlocks& blocks, int64_t at, double lr) {
    kernels::adamw(blocks, first_moment.data() + at, second_moment.data() + at,
                   {lr, config.beta1, config.beta2, config.epsilon, config.weight_decay, update.step});
  });
}

}  // namespace capstan
