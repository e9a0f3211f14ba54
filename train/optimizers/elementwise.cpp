// Calls the kernels of AdamW, Lion and SGD for every piece of the parameters that this rank owns. The order of
// states[i] is that of each config's states(). tests/train/test_optimizer.cpp compares results with the formulas.
#include "train/optimizers/elementwise.hpp"

namespace capstan {
namespace {

constexpr double adamw_epsilon = 1e-8, lion_beta1 = 0.9, lion_beta2 = 0.99;  // as in the papers

}  // namespace

void AdamWConfig::update(const Update& update, std::vector<OptimizerState>& states) const {
  update_adamw(*this, update, states[0], states[1]);
}

void update_adamw(const AdamWConfig& config, const Update& update, OptimizerState& first_moment,
                  OptimizerState& second_moment) {
  for_pieces(update, first_moment, [&](const kernels::UpdateBlocks& blocks, int64_t at, double lr) {
    kernels::adamw(blocks, first_moment.data() + at, second_moment.data() + at,
                   {lr, config.beta1, config.beta2, adamw_epsilon, config.weight_decay, update.step});
  });
}

void LionConfig::update(const Update& update, std::vector<OptimizerState>& states) const {
  for_pieces(update, states[0], [&](const kernels::UpdateBlocks& blocks, int64_t at, double lr) {
    kernels::lion(blocks, states[0].data() + at, {lr, lion_beta1, lion_beta2, weight_decay});
  });
}

void SgdConfig::update(const Update& update, std::vector<OptimizerState>& states) const {
  for_pieces(update, states[0], [&](const kernels::UpdateBlocks& blocks, int64_t at, double lr) {
    kernels::sgd(blocks, states[0].data() + at, {lr, momentum, weight_decay});
  });
}

}  // namespace capstan
