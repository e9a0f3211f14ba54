// Linear classifiers whose training was interrupted.
#include <doctest/doctest.h>

#include <cstdlib>
#include <numeric>

#include "core/io/file.hpp"
#include "core/io/safetensors.hpp"
#include "core/machine/parallel.hpp"
#include "tests/train/linear/linear_samples.hpp"
#include "tests/train/support.hpp"
#include "train/linear/work_file.hpp"

namespace capstan::testing {
namespace {

/// While it lives, unfinished work is saved whenever it can be.
struct AlwaysSaved {
  AlwaysSaved() { REQUIRE(setenv("CAPSTAN_WORK_SECONDS", "0", 1) == 0); }
  ~AlwaysSaved() { unsetenv("CAPSTAN_WORK_SECONDS"); }
};

struct UnfinishedCase {
  const char* name;
  int32_t classes;
  RowBudget budget = {};
  bool has_base = false, weighs_classes = false;
};

TEST_CASE("linear classifiers: what was stopped goes on where it was, with the same bits, on any number of threads") {
  const AlwaysSaved always;
  const int before = threads();
  for (const UnfinishedCase& c : {UnfinishedCase{"two classes", 2},
                                  {"three classes", 3},
                                  {"a base classifier", 3, {}, true},
                                  {"weights of classes", 3, {}, false, true},
                                  {"AdaGrad, two classes", 2, made_again},
                                  {"AdaGrad, three classes", 3, made_again}}) {
    INFO(c.name);
    const bool solved = c.budget.solved > 1;
    const Samples samples(sample_texts(solved ? 600 : 3000, c.classes));
    LinearClassifierConfig config = linear_config();
    if (c.weighs_classes) config.class_weights = BalancedClasses();
    const auto base = c.has_base ? Solution(rows_of(sample_texts(50, 3), 3, linear_config()), 1).as_base() : nullptr;
    const TemporaryFolder folder;
    const WorkPlace place{(folder / "run").string(), "some data"};
    const auto solve = [&](const WorkPlace& where) {
      return Solution(NgramRows(samples.texts(), config, c.classes, base, c.budget, where), 1).values();
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
      const StopScope scope(&some.poll);
      try {
        solve(place);
      } catch (const Stopped&) {
        ++stopped;
      }
      set_threads(tenth % 3 + 1);
    }
    CHECK(stopped > 1);
    const std::string files = (folder / "run" / WorkFile::folder_name).string();
    const std::vector<double> done = solved ? SafetensorsFile(files + "/folds.safetensors").at("finished").to_doubles()
                                            : SafetensorsFile(files + "/adagrad.safetensors").at("done").to_doubles();
    const double most = solved ? static_cast<double>(done.size()) : 3 * 2700;
    CHECK(std::accumulate(done.begin(), done.end(), 0.0) > most / 2);
    CHECK(solve(place) == whole);
    CHECK(names_in_folder(files) == (solved ? std::vector<std::string>{"folds.safetensors", "solving.safetensors"}
                                            : std::vector<std::string>{"adagrad.safetensors", "ngrams.safetensors"}));
    for (const std::string& name : names_in_folder(files)) {
      const std::string path = files + "/" + name;
      std::string flipped = read_text(path);
      flipped[2 * flipped.size() / 3] = static_cast<char>(flipped[2 * flipped.size() / 3] ^ 0x40);
      write_text(path, flipped);
      CHECK(solve(place) == whole);
      truncate_file(path, bytes_below(path) / 2);
      CHECK(solve(place) == whole);
    }
    CHECK(solve({place.folder, "other data"}) == whole);
    WorkFile::remove_all(place.folder);
    CHECK(names_in_folder(place.folder).empty());
  }
  set_threads(before);
}

}  // namespace
}  // namespace capstan::testing
