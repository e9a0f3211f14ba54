// Memory of a training step does not grow with the length of the texts but with the number of tokens: no system keeps
// anything of size T x T, and aft-full, which works on one table of positions, is the exception that is named.
#include "core/machine/pool.hpp"
#include "tests/models/systems.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

/// Highest number of bytes in use during a training step over `total` tokens in texts
/// of `length`, beyond the model's own.
double step_bytes(const System& system, int64_t length, int64_t total) {
  auto config = model_config<LanguageModelConfig>(system);
  config.width = 64;
  config.max_length = length;
  config.positions = Positions::none;
  const auto built = finalized(language_model(config));
  const Batch batch = next_token_batch(Segments::full(total / length, length), 1);
  descend(*built.model, *built.store, batch, 0.01);
  const size_t before = pool::stats().bytes_in_use;
  pool::reset_peak();
  descend(*built.model, *built.store, batch, 0.01);
  return static_cast<double>(pool::stats().peak_in_use - before);
}

TEST_CASE("activation memory per token is the same at T = 1024 and at T = 16384") {
  const int64_t total = 16384;
  for (System system : systems()) {
    set_option(system.layer.mixer, "chunk", "256");
    if (system.name == "aft-full") continue;  // T x T weights, shared by the batch
    if (!language_model(model_config<LanguageModelConfig>(system)).model->stack().forward_only_mixers().empty())
      continue;
    const double ratio = step_bytes(system, 16384, total) / step_bytes(system, 1024, total);
    MESSAGE(system.name, ": ", ratio);
    CHECK_MESSAGE(ratio <= 1.1, system.name);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
