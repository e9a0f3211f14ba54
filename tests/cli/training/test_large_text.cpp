// Text whose tokens lie on the disk, as a user meets it. That it needs little memory is shown by long_large_text.sh.
#include <doctest/doctest.h>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

/// The shape of the schedule is one that does not depend on the number of steps.
Words trained(const std::string& name, const Words& more) {
  return train_words("lm.yaml", {"name=" + name, "train.schedule.shape=constant"}) + more;
}

TEST_CASE("tokens on the disk: the weights, losses and places of text in memory; made once for all runs") {
  const SamplePlace place;
  const std::string on_disk = "data.cache=runs/.cache", weights = "/checkpoints/step-6/model.safetensors";
  CHECK_FALSE(contains(succeed(place, trained("memory", {})).err, "data: "));
  CHECK_FALSE(fs::exists(place / "runs/.cache"));
  const std::string first = succeed(place, trained("disk", {on_disk})).err;
  CHECK(contains(first, "data: tokenising the text, once, into runs/.cache/"));
  CHECK((place.read("runs/disk" + weights) == place.read("runs/memory" + weights)));

  const std::string second = succeed(place, trained("again", {on_disk, "seed=2"})).err;
  CHECK(contains(second, "data: tokens from runs/.cache/"));
  CHECK_FALSE(contains(second, "tokenising"));
  const Outcome disk = succeed(place, "eval runs/disk"), memory = succeed(place, "eval runs/memory");
  CHECK(contains(disk.err, "data: tokens from runs/.cache/"));
  for (const char* const figure : {"targets", "loss", "bits_per_byte"})
    CHECK(number_of(disk.out, figure) == number_of(memory.out, figure));

  // A run goes on when its text has grown large, or small.
  const std::string in_memory = "data.cache=\"\"";
  for (const bool large_first : {true, false}) {
    const std::string name = large_first ? "from-disk" : "to-disk";
    succeed(place, trained(name, {large_first ? on_disk : in_memory, "train.steps=3"}));
    CHECK(contains(succeed(place, trained(name, {large_first ? in_memory : on_disk})).err, "resumed from"));
    CHECK((place.read("runs/" + name + weights) == place.read("runs/memory" + weights)));
  }
  CHECK_FALSE(contains(succeed(place, trained("silent", {on_disk, "train.progress=none"})).err, "data: "));
  CHECK(run_shell(place, "\"$capstan\" compare runs/*").code == 0);
}

}  // namespace
}  // namespace capstan::testing
