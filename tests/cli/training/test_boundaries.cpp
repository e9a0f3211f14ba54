// A sample of the cases of tests/cli/training/long_boundaries.cpp, and the values that once hung or overflowed.
#include <doctest/doctest.h>

#include "tests/cli/support/boundaries.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {

TEST_CASE("numbers at and beyond the limits of their keys: an error or a run (sample)") {
  const Workplace place;
  const std::vector<Boundary> all = boundaries(place);
  CHECK(all.size() > 1000);
  BoundaryCounts counts;
  for (size_t i = 7; i < all.size(); i += 97) check_boundary(place, all[i], counts);
  MESSAGE(counts.cases, " of ", all.size(), " cases: ", counts.refused, " refused, ", counts.failed, " errors, ",
          counts.trained, " trained");
}

TEST_CASE_FIXTURE(Samples, "the largest values that keys allow: an error or a run") {
  BoundaryCounts counts;
  for (const char* const setting :
       {"model.layers.0.mixer.window=16777216", "model.layers.0.mixer.rank=65536", "train.batch_size=1000000000",
        "train.accumulate=1000000000", "model.layers.0.repeat=1000", "model.ngram_embedding.buckets=2147483647"})
    check_boundary(place, {"lm.yaml", {"name=boundary", "train.steps=1", setting}}, counts);
  check_boundary(place,
                 {"classifier.yaml",
                  {"name=boundary", "train.steps=1", "model.layers.0.mixer.type=aft-local",
                   "model.layers.0.mixer.window=16777216"}},
                 counts);
  // Without an end, until SIGTERM.
  check_boundary(place, {"lm.yaml", {"name=boundary", "train.steps=0", "train.epochs=1000000000000"}}, counts);
  CHECK(counts.interrupted >= 1);
}

TEST_CASE("a run that needs more memory than there is is refused before the data are read, with keys and bytes") {
  const SamplePlace place;
  const Outcome outcome =
      check_refused(place, "memory", "train -c lm.yaml -s model.width=65536 model.layers.0.feed_forward.expansion=1000",
                    "model ... TB for parameters ... lower the sizes of the model ... --force", 2);
  CHECK_FALSE(contains(outcome.err, "read "));
}

#ifndef __SANITIZE_ADDRESS__  // it needs terabytes of addresses itself
TEST_CASE_FIXTURE(Samples, "an address space that is too small ends with a message, at the start and before training") {
  // The last ones: a variable that OpenBLAS ignores where OpenMP starts its threads, and a process that may use one of
  // the processors, for all of which OpenBLAS takes memory.
  for (const std::string limit :
       {"ulimit -v 150000", "ulimit -v 250000", "ulimit -v 330000", "ulimit -v 400000", "ulimit -v 500000",
        "ulimit -v 320000; export OPENBLAS_NUM_THREADS=1", "ulimit -v 330000; taskset -p 1 $$ >taskset"}) {
    const Outcome outcome = run_shell(place, limit + "; exec timeout -k 1 20 \"$capstan\" train -c lm.yaml");
    CAPTURE(limit);
    CAPTURE(outcome.err);
    CHECK(outcome.code == 1);
    CHECK((contains(outcome.err, "out of memory (wanted ") || contains(outcome.err, "cannot allocate memory") ||
           contains(outcome.err, "failed to map segment") ||
           contains(outcome.err, "no further thread could be started")));
  }
}
#endif

TEST_CASE_FIXTURE(Samples, "a file above ulimit -f is an error that names the file and the remedy") {
  const Outcome outcome = run_shell(place, "ulimit -f 4; exec \"$capstan\" train -c lm.yaml");
  CHECK(outcome.code == 1);
  check_contains(outcome.err, {"ulimit -f", "runs/lm/"});
  succeed(place, "train -c lm.yaml");
}

TEST_CASE_FIXTURE(Samples, "small stacks are widened, or refused with the remedy where that is not allowed") {
  const Outcome widened =
      run_shell(place, "ulimit -S -s 64; export OMP_STACKSIZE=16k; exec \"$capstan\" train -c lm.yaml --set threads=2");
  CHECK_MESSAGE(widened.code == 0, widened.err);
  for (const char* const command : {"train -c lm.yaml --set name=small", "eval runs/lm", "generate runs/lm"}) {
    CAPTURE(command);
    const Outcome refused = run_shell(place, std::string("ulimit -s 64; exec \"$capstan\" ") + command);
    CHECK(refused.code == 1);
    CHECK_MESSAGE(contains(refused.err, "stacks are limited to 64 kB, but at least 512 are needed: raise ulimit -s"),
                  refused.err);
  }
}

}  // namespace capstan::testing
