// Linear classifiers whose solving was interrupted.
#include <doctest/doctest.h>

#include <cstdlib>

#include "core/base/stop.hpp"
#include "core/io/file.hpp"
#include "core/io/hash.hpp"
#include "core/machine/parallel.hpp"
#include "tests/train/linear/linear_samples.hpp"
#include "tests/train/support.hpp"
#include "train/linear/cross_validation.hpp"

namespace capstan::testing {
namespace {

/// While it lives, unfinished work is saved whenever it can be.
struct AlwaysSaved {
  AlwaysSaved() { REQUIRE(setenv("CAPSTAN_WORK_SECONDS", "0", 1) == 0); }
  ~AlwaysSaved() { unsetenv("CAPSTAN_WORK_SECONDS"); }
};

/// Stops at the stop point after so many.
struct StopAfter {
  explicit StopAfter(int64_t count) : allowed(count) {}
  int64_t allowed;
  std::atomic<int64_t> asked{0};
  StopPoll poll = [this] { return ++asked > allowed; };
};
constexpr int64_t no_end = 1'000'000'000;

struct UnfinishedCase {
  const char* name;
  int32_t classes;
  bool has_base = false, weighs_classes = false;
};

TEST_CASE("linear classifiers: what was stopped goes on where it was, with the same bits, on any number of threads") {
  const AlwaysSaved always;
  const int before = threads();
  for (const UnfinishedCase& c : {UnfinishedCase{"two classes", 2},
                                  {"three classes", 3},
                                  {"a base classifier", 3, true},
                                  {"weights of classes", 3, false, true}}) {
    INFO(c.name);
    const Samples samples(sample_texts(600, c.classes));
    LinearClassifierConfig config = linear_config();
    if (c.weighs_classes) config.class_weights = BalancedClasses();
    const auto base = c.has_base ? Solution(rows_of(sample_texts(50, 3), 3, linear_config()), 1).as_base() : nullptr;
    const TemporaryFolder folder;
    const WorkPlace place{(folder / "run").string(), "some data"};
    const auto solve = [&](const WorkPlace& where) {
      return Solution(NgramRows(samples.texts(), config, c.classes, base, {}, where), 1).values();
    };
    const auto solve_stopped = [&](StopAfter& stop) {
      const StopScope scope(&stop.poll);
      return solve(place);
    };
    set_threads(1);  // where it stops is counted
    StopAfter counted(no_end);
    std::vector<real> whole;
    {
      const StopScope scope(&counted.poll);
      whole = solve({});
    }
    int stopped = 0;
    for (int tenth = 1; tenth < 10; ++tenth) {  // of what is to be done from the start
      StopAfter some(counted.asked * tenth / 10);
      try {
        solve_stopped(some);
      } catch (const Stopped&) {
        ++stopped;
      }
      set_threads(tenth % 3 + 1);
    }
    CHECK(stopped > 1);
    set_threads(1);
    StopAfter last(no_end);
    CHECK(solve_stopped(last) == whole);
    CHECK(last.asked < counted.asked / 2);  // most of it was done
    const std::vector<std::string> common{"folds.work", "mixes.work", "solving.work"};
    CHECK(names_in_folder(place.folder) == common);
    for (const std::string& name : common) {
      const std::string path = (folder / "run" / name).string();
      std::string flipped = read_text(path);
      flipped[2 * flipped.size() / 3] = static_cast<char>(flipped[2 * flipped.size() / 3] ^ 0x40);
      write_text(path, flipped);
      CHECK(solve(place) == whole);
      truncate_file(path, bytes_below(path) / 2);
      CHECK(solve(place) == whole);
      write_text(path, hash_hex("other work") + "damaged");
      CHECK(solve(place) == whole);
    }
    CHECK(Solution(NgramRows(samples.texts(), config, c.classes, base, {}, {place.folder, "other data"}), 1).values() ==
          whole);
    WorkFile::remove_all(place.folder);
    CHECK(names_in_folder(place.folder).empty());
  }
  set_threads(before);
}

TEST_CASE("dual coordinate descent: a pass that was saved is not repeated, and the result is the same") {
  const AlwaysSaved always;
  const NgramRows rows = rows_of(sample_texts(2000, 3), 3, linear_config());
  const SvmProblem problem{all_rows(rows), 1, 1, true, random_key(1, "order")};
  StopAfter counted(no_end);
  SvmSolution whole;
  {
    const StopScope scope(&counted.poll);
    whole = solve_svm(rows, problem);
  }
  const TemporaryFolder folder;
  const WorkPlace place{(folder / "run").string(), "some data"};
  const auto solve = [&](int64_t allowed) {
    UnitRun run{WorkFile(place, "unit", ""), nullptr, 0};
    StopAfter stop(allowed);
    const StopScope scope(&stop.poll);
    const SvmSolution found = solve_svm(rows, problem, &run);
    CHECK(found.weights == whole.weights);
    CHECK(found.bias == whole.bias);
    return stop.asked.load();
  };
  CHECK_THROWS_AS(solve(counted.asked / 2), Stopped);
  CHECK_THROWS_AS(solve(counted.asked * 3 / 4), Stopped);
  CHECK(solve(no_end) < counted.asked * 3 / 4);
  CHECK(solve(no_end) <= 4000);  // what a solver begins with
  truncate_file((folder / "run/unit.work").string(), 1000);
  CHECK(solve(no_end) >= counted.asked);  // all is done again
}

}  // namespace
}  // namespace capstan::testing
