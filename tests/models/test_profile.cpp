// A profile of every system: each op says when it begins, and nothing is computed differently.
#include "core/machine/profile.hpp"

#include <map>

#include "tests/models/systems.hpp"
#include "tests/support/ragged.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

/// Gradients of one batch; the store is finalized.
std::vector<real> gradients(const Task& task, ParamStore& store, const Batch& batch, Profile* profile) {
  store.clear_grads();
  const ProfiledStep step(profile);
  TapeScope scope;
  scope.backward(task.loss(batch, context_of(batch, true)).sum);
  return gradients_of(store);
}

void check_profile(const Task& task, ParamStore& store, const Batch& batch) {
  store.finalize();
  const std::vector<real> plain = gradients(task, store, batch, nullptr);
  Profile profile;
  CHECK(gradients(task, store, batch, &profile) == plain);
  std::map<std::string, int64_t> forward, backward;
  int64_t flops = 0;
  for (const ProfileRow& row : profile.rows()) {
    INFO(row.name);
    CHECK(row.nanoseconds > 0);  // an op that is called without a span of its own takes no time
    flops += row.flops;
    if (row.pass == Pass::forward) forward[row.name] = row.calls;
    if (row.pass == Pass::backward) backward[row.name] = row.calls;
  }
  backward.erase("sum of gradients");
  CHECK(forward == backward);
  CHECK(flops > 0);
}

TEST_CASE("every op of every system is timed, forward and backward, and a profile changes no gradient") {
  for (const System& system : systems()) {
    INFO(system.name);
    const auto model = language_model(model_config<LanguageModelConfig>(system));
    check_profile(*model.model, *model.store, next_token_batch(ragged(16), 6));
    const auto classes = classifier(model_config<TextClassifierConfig>(system));
    Batch labelled = next_token_batch(segments_of_lengths({16, 7, 11}, 16), 7);
    labelled.labels = Ids({3}, std::vector<int32_t>{2, 0, 1});
    check_profile(*classes.model, *classes.store, labelled);
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
