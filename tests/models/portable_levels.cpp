// Portable builds only: what the kernels of one level of x86-64 compute, those of the others do.
#include "core/machine/kernel_levels.hpp"
#include "tests/models/systems.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

/// Puts back the level that was in use.
class Level {
 public:
  explicit Level(const std::string& level) : before_(kernel_level()) { set_kernel_level(level); }
  ~Level() { set_kernel_level(before_); }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  std::string before_;
};

/// Loss, logits and all gradients of one batch, decoded logits of its first row.
std::vector<Array> everything(const LanguageModelConfig& config, const std::string& level) {
  const Level chosen(level);
  const auto built = language_model(config);
  redraw(*built.store, 0.2);
  built.store->finalize();
  const Batch batch = next_token_batch(ragged(longest), 6);
  TapeScope scope;
  const TaskLoss loss = built.model->loss(batch, context_of(batch, true));
  scope.backward(loss.sum);
  std::vector<Array> results{loss.sum.value()};
  for (const Param& param : built.store->params()) results.push_back(param.var.grad().clone());
  const TapePause pause;
  const Ids row = batch.tokens.rows(0, 1);
  results.push_back(built.model->logits(row, Context::evaluation(1, longest)).value());
  DecodeState state = built.model->make_state(1);
  for (int64_t t = 0; t < longest; ++t)
    results.push_back(built.model->step(row.reshape({longest}).rows(t, t + 1), state));
  return results;
}

TEST_CASE("every system gives the same at every level") {
  for (const System& system : systems()) {
    auto config = model_config<LanguageModelConfig>(system);
    config.layers[0].repeat = 1;  // the tolerance is that of one op, not of a deep network's rounding
    const std::vector<Array> baseline = everything(config, "x86-64-v2");
    for (const std::string level : {"x86-64-v3", "x86-64-v4"}) {
      if (!cpu_has_level(level)) {
        MESSAGE("skipped: this CPU has no " << level);
        continue;
      }
      const std::vector<Array> results = everything(config, level);
      REQUIRE(results.size() == baseline.size());
      for (size_t i = 0; i < results.size(); ++i) {
        INFO(system.name << " " << level << ": result " << i);
        CHECK(relative_error(results[i], baseline[i], 1e-3) <= fused_tolerance);
      }
    }
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
