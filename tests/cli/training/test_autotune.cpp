// `capstan autotune`: a search by short runs, gone on with after an interruption.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include "tests/cli/support/interruption.hpp"

namespace capstan::testing {
namespace {

Words search(const std::string& minutes, const Words& more = {}) {
  return Words("autotune --config lm.yaml --minutes " + minutes) + "--set name=search sweep.train.lr=[1e-5,3e-3,1e-2]" +
         more;
}

/// The best run that a search has named.
std::string best_in(const std::string& out) {
  const size_t at = out.find("best: ") + 6;
  return out.substr(at, out.find('\n', at) - at);
}

TEST_CASE_FIXTURE(Samples, "a search trains the configuration as it is and others, and names the best") {
  const Outcome first = succeed(place, search("5"));
  INFO(first.err);
  CHECK(contains(first.err, "run 4 of 4: runs/search/lr=1e-2"));
  check_contains(first.out, {"runs/search/default", "runs/search/lr=1e-5"});
  CHECK_FALSE(contains(first.out, "best: runs/search/lr=1e-5\n"));
  succeed(place, {"eval", best_in(first.out)});
  // The configuration as it is gives the bits of train.
  check_refused(place, "the search is no run", "eval runs/search", "a folder of runs: give one of them");
  check_refused(place, "the name of a search", "train --config lm.yaml --set name=search",
                "runs/search is the folder of a search ... choose another name", 2);
  succeed(place, "train --config lm.yaml --set name=single");
  CHECK(same_model(place, "single", "search/default"));
  const auto before = place.content("runs/search");
  const Outcome second = succeed(place, search("5"));
  CHECK(second.out == first.out);
  CHECK_FALSE(contains(second.err, "are left"));
  CHECK(contains(second.err, "the search is complete"));
  CHECK((place.content("runs/search") == before));
}

TEST_CASE("without time only the configuration as it is is trained; without values the usual ones are tried") {
  const SamplePlace place;
  const Outcome short_of_time = succeed(place, search("1e-5"));
  CHECK(contains(short_of_time.out, "best: runs/search/default\n"));
  CHECK(fs::exists(place / "runs/search/default"));
  CHECK_FALSE(fs::exists(place / "runs/search/lr=1e-2"));
  const Outcome usual = succeed(place, "autotune --config lm.yaml --minutes 1e-5");
  CHECK(contains(usual.err, "and 14 more"));
}

TEST_CASE("by accuracy, the configuration as it is stays the best unless another is better by a standard error") {
  const Workplace place;
  place.write("linear.yaml",
              "{name: search, threads: 2, data: {type: labelled, train: [train.tsv], valid_fraction: 0, max_length: 0, "
              "tokenizer: {type: byte}}, model: {type: linear-classifier, words: [1]}, "
              "train: {epochs: 1, monitor: accuracy}, sweep: {model.words: [[1, 2]]}}\n");
  // 40 texts that a word tells, 40 that nothing does, and some that only a pair of words tells.
  const auto best_with = [&](int pairs) {
    std::string rows;
    for (int i = 0; i < 40; ++i) rows += fmt::format("{0}\t{0}ish thing{1}\n", i % 2 == 0 ? "no" : "yes", i);
    for (int i = 0; i < 40; ++i) rows += fmt::format("{}\todd{} word{}\n", i * 7 % 5 < 2 ? "yes" : "no", i, i);
    for (int i = 0; i < pairs; ++i)
      rows += fmt::format("{} n{}\n", i % 2 == 0 ? "no\tright left" : "yes\tleft right", i);
    place.write("train.tsv", rows);
    fs::remove_all(place / "runs");
    return succeed(place, "autotune --config linear.yaml --minutes 5");
  };
  const Outcome noise = best_with(4), gain = best_with(12);
  CHECK(contains(noise.err, "words=1-2 is better than default by less than a standard error"));
  CHECK(contains(noise.out, "best: runs/search/default\n"));
  CHECK(contains(gain.out, "best: runs/search/words=1-2\n"));
}

TEST_CASE("less time does not make the result of earlier searches worse; comparisons count the best run once") {
  const SamplePlace place;
  succeed(place, search("5", {"sweep.train.lr=[1e-2, 2e-2]", "train.lr=1e-6"}));
  const Outcome again = succeed(place, search("1e-5", {"sweep.train.lr=[1e-2, 2e-2]", "train.lr=1e-6"}));
  CHECK(contains(again.err, "the search is complete"));  // with any time
  CHECK_FALSE(contains(again.err, "of the training"));
  CHECK(best_in(again.out) != "runs/search/default");
  const Outcome more = succeed(place, search("1e-5", {"sweep.train.lr=[1e-2, 2e-2, 4e-2]", "train.lr=1e-6"}));
  CHECK(contains(more.err, "with more --minutes the search continues"));
  CHECK(best_in(more.out) != "runs/search/default");
  place.write("runs/search/short-3/lr=1/config.yaml", "");
  const Outcome compared = run_shell(place, "$capstan compare runs/search/*");
  CHECK(lines_of(compared.out).size() == 6);  // of what, what is the same, header and three runs
  CHECK(lines_of(compared.err).size() == 1);
  CHECK(contains(compared.err, "runs/search/short-3: short runs of a search, left out"));
}

TEST_CASE_FIXTURE(Samples, "where the time is not enough for all, short runs come first, and the best whole runs") {
  const Outcome outcome = succeed(place, "autotune --config lm.yaml --minutes 0.05 --set train.steps=300");
  CHECK(contains(outcome.err, "of 14 were tried with 1/"));
  CHECK(contains(outcome.out, "best: runs/lm/"));
}

TEST_CASE_FIXTURE(Samples, "a candidate that fails does not end the search") {
  const Outcome outcome =
      check_refused(place, "a rate", search("5", {"sweep.train.lr=[1e9, 1e-2]", "train.grad_clip=0"}),
                    "failed: runs/search/lr=1e9: exit code 1");
  CHECK(contains(outcome.out, "best: runs/search/"));
}

TEST_CASE_FIXTURE(Samples, "a damaged run of which nothing more is needed does not end a search that goes on") {
  const std::string best = fs::path(best_in(succeed(place, search("5")).out)).filename();
  flip_bit(place, model_of(best == "lr=1e-2" ? "search/lr=3e-3" : "search/lr=1e-2"));
  const Outcome again = succeed(place, search("5"));
  CHECK(contains(again.out, "best: runs/search/"));
}

TEST_CASE_FIXTURE(Samples, "an interrupted search goes on where it was") {
  const Words longer = search("5", "train.steps=100 train.save_every=1");
  Process process(place, longer);
  REQUIRE(wait_for_step(process, place, "search/default", 3));
  process.send(SIGTERM);
  const Outcome stopped = process.wait();
  INFO(stopped.err);
  CHECK(stopped.code == 75);
  CHECK(contains(stopped.err, "the same command resumes the search"));
  CHECK_FALSE(contains(stopped.out, "best: "));
  const Outcome done = succeed(place, longer);
  CHECK(contains(done.err, "resumed from"));
  CHECK(contains(done.out, "best: runs/search/"));
}

TEST_CASE_FIXTURE(Samples, "a search is refused where runs cannot be shortened or compared") {
  const Words base = "autotune --config lm.yaml --set name=search";
  const auto refused = [&](const Words& more) {
    const Outcome outcome = run(place, base + more);
    CHECK(outcome.code == 2);
    CHECK_FALSE(fs::exists(place / "runs"));
    return outcome.err;
  };
  CHECK(contains(refused("train.steps=0 train.epochs=1"), "train.steps=0: autotune tries short runs first"));
  CHECK(contains(refused({"sweep.name=[a, b]"}), "sweep.name"));
  CHECK(contains(refused({"sweep.seed=[1, 2]"}), "sweep.seed: runs that differ in it cannot be compared"));
  CHECK(contains(refused({"--minutes", "0"}), "--minutes"));
  CHECK(contains(refused({"train.lr=-1"}), "train.lr"));
}

}  // namespace
}  // namespace capstan::testing
