// Text whose tokens lie on the disk, as a user meets it. That it needs little memory is shown by long_large_text.sh.
#include <doctest/doctest.h>

#include "tests/cli/samples.hpp"

namespace capstan::testing {
namespace {

using Words = std::vector<std::string>;

/// The shape of the schedule is one that does not depend on the number of steps.
Words train(const std::string& name, Words more) {
  more.insert(more.begin(), {"train", "--config", "lm.yaml", "--set", "name=" + name, "train.schedule.shape=constant"});
  return more;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("tokens on the disk: the weights, losses and places of text in memory; made once for all runs") {
  const Workplace place;
  write_samples(place);
  const std::string on_disk = "data.cache_above_mb=0", weights = "/checkpoints/step-6/model.safetensors";
  CHECK_FALSE(says(succeed(place, train("memory", {})).err, "data: "));
  CHECK_FALSE(std::filesystem::exists(place / "runs/.cache"));
  const std::string first = succeed(place, train("disk", {on_disk})).err;
  CHECK(says(first, "data: tokenising the text, once, into runs/.cache/"));
  CHECK((place.read("runs/disk" + weights) == place.read("runs/memory" + weights)));

  const std::string second = succeed(place, train("again", {on_disk, "seed=2"})).err;
  CHECK(says(second, "data: tokens from runs/.cache/"));
  CHECK_FALSE(says(second, "tokenising"));
  const Outcome disk = succeed(place, {"eval", "runs/disk"}), memory = succeed(place, {"eval", "runs/memory"});
  CHECK(says(disk.err, "data: tokens from runs/.cache/"));
  for (const char* const figure : {"targets", "loss", "bits_per_byte"})
    CHECK(number_of(disk.out, figure) == number_of(memory.out, figure));
  CHECK(succeed(place, {"eval", "runs/disk", "--compare-gzip"}).out ==
        succeed(place, {"eval", "runs/memory", "--compare-gzip"}).out);

  // A run goes on when its text has grown large, or small.
  const std::string constant = "train.schedule.shape=constant", in_memory = "data.cache=\"\"";  // whatever train.steps
  succeed(place, train("whole", {constant}));
  for (const bool large_first : {true, false}) {
    const std::string name = large_first ? "from-disk" : "to-disk";
    succeed(place, train(name, {constant, large_first ? on_disk : in_memory, "train.steps=3"}));
    CHECK(says(succeed(place, train(name, {constant, large_first ? in_memory : on_disk})).err, "resumed from"));
    CHECK((place.read("runs/" + name + weights) == place.read("runs/whole" + weights)));
  }
  CHECK_FALSE(says(succeed(place, train("silent", {on_disk, "train.progress=none"})).err, "data: "));
  CHECK(run_shell(place, "\"$capstan\" compare runs/*").code == 0);
}

}  // namespace
}  // namespace capstan::testing
