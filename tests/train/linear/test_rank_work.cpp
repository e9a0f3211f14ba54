// Linear classifiers that several ranks solve for together.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>

#include "core/base/stop.hpp"
#include "core/io/file.hpp"
#include "core/machine/parallel.hpp"
#include "tests/train/linear/linear_samples.hpp"
#include "tests/train/rank_threads.hpp"
#include "tests/train/support.hpp"
#include "train/linear/rank_work.hpp"

namespace capstan::testing {
namespace {

constexpr RowBudget solved_for{};

/// Texts of several labels.
ExampleSet labelled_topics(int32_t labels, int count) {
  ExampleSet examples = ExampleSet::multi_label(labels);
  const ByteTokenizer tokenizer;
  RandomStream random(random_key(8, "several labels"));
  for (int i = 0; i < count; ++i) {
    std::string text = "today";
    LabelSet of_text;
    for (int32_t c = 0; c < labels; ++c)
      if (random.uniform() < 0.3) {
        of_text.push_back(c);
        text += fmt::format(" topic{}", c);
      }
    examples.add(tokenizer.encode(text), of_text);
  }
  return examples;
}

struct RankCase {
  const char* name;
  int32_t classes;
  RowBudget budget = solved_for;
  bool has_base = false, weighs_classes = false, multi_label = false;
};

const RankCase rank_cases[] = {
    {"two classes", 2},
    {"three classes", 3},
    {"a base classifier", 3, solved_for, true},
    {"weights of classes", 3, solved_for, false, true},
    {"any number of labels", 4, solved_for, false, false, true},
    {"AdaGrad over kept rows, two classes", 2, kept_for_adagrad},
    {"AdaGrad over rows that are made again, two classes", 2, made_again},
    {"AdaGrad, three classes, with weights", 3, made_again, false, true},
    {"AdaGrad, more labels than a vector instruction has room for", 40, made_again, false, false, true},
};

/// The texts of a case, and what is solved for them.
class RankJob {
 public:
  RankJob(const RankCase& of, int count)
      : case_(of),
        samples_(sample_texts(count, of.multi_label ? 2 : of.classes)),
        several_(labelled_topics(of.classes, count)),
        config_(linear_config()) {
    if (of.weighs_classes) config_.class_weights = BalancedClasses();
    if (of.has_base) base_ = Solution(rows_of(sample_texts(50, 3), 3, linear_config()), 1).as_base();
  }
  NgramRows rows(const WorkPlace& place = {}) const {
    const ExampleSet& examples = case_.multi_label ? several_ : samples_.examples;
    return {LabelledTexts(examples, samples_.tokenizer), config_, case_.classes, base_, case_.budget, place};
  }

 private:
  RankCase case_;
  Samples samples_;
  ExampleSet several_;  // of several labels
  LinearClassifierConfig config_;
  std::shared_ptr<const BaseClassifier> base_;
};

TEST_CASE("linear classifiers: any number of ranks and threads finds the bits of one process") {
  const int before = threads();
  for (const RankCase& c : rank_cases) {
    INFO(c.name);
    const RankJob job(c, 900);
    set_threads(1);
    const NgramRows rows = job.rows();
    const Solution one(rows, 1);
    struct {
      int ranks, threads;
    } const sizes[] = {{2, 1}, {2, 3}, {3, 2}, {7, 1}};
    for (const auto& size : sizes) {
      INFO(size.ranks, " ranks of ", size.threads, " threads");
      set_threads(size.threads);
      std::vector<char> same(static_cast<size_t>(size.ranks), 0);
      run_ranks(size.ranks, [&](Communicator& ranks) {
        const Solution found(rows, 1, &ranks);
        same[static_cast<size_t>(ranks.rank())] =
            found.values() == one.values() && found.fit.report == one.fit.report &&
            found.fit.held_out.loss_sum == one.fit.held_out.loss_sum &&
            found.fit.held_out.correct == one.fit.held_out.correct &&
            (!one.fit.labels || found.fit.labels->thresholds == one.fit.labels->thresholds);
      });
      CHECK(same == std::vector<char>(same.size(), 1));
    }
  }
  set_threads(before);
}

TEST_CASE("AdaGrad: ranks of which some keep rows in memory and others make them again find the same bits") {
  const Samples samples(sample_texts(900, 3));
  const NgramRows kept(samples.texts(), linear_config(), 3, nullptr, kept_for_adagrad),
      again(samples.texts(), linear_config(), 3, nullptr, made_again);
  REQUIRE(kept.kept());
  REQUIRE_FALSE(again.kept());
  const std::vector<real> one = Solution(kept, 1).values();
  std::atomic<int> same{0};
  run_ranks(3, [&](Communicator& ranks) {
    same += Solution(ranks.rank() == 1 ? again : kept, 1, &ranks).values() == one ? 1 : 0;
  });
  CHECK(same == 3);
}

TEST_CASE("linear classifiers: all ranks stop with one, and any number of ranks goes on to the same bits") {
  REQUIRE(setenv("CAPSTAN_WORK_SECONDS", "0", 1) == 0);
  const int before = threads();
  set_threads(1);
  for (const RankCase& c : rank_cases) {
    if (c.weighs_classes) continue;
    INFO(c.name);
    const RankJob job(c, 900);
    const TemporaryFolder folder;
    const std::string path = (folder / "run").string();
    int64_t allowed = 1'000'000'000;
    std::atomic<int64_t> asked{0};
    const StopPoll counting = [&] { return ++asked > allowed; };
    std::vector<real> whole;
    {
      const StopScope scope(&counting);
      whole = Solution(job.rows(), 1).values();
    }
    const int64_t all = asked;
    int stops = 0;
    for (int turn = 1; turn < 7; ++turn) {
      const int size = turn % 3 + 1, last = turn % size;
      allowed = all * turn / 14 / size;
      asked = 0;
      std::atomic<int> stopped_ranks{0};
      run_ranks(size, [&](Communicator& ranks) {
        const NgramRows rows = job.rows({path, "some data", ranks.first()});
        const StopScope scope(ranks.rank() == last ? &counting : nullptr);
        try {
          const bool same = Solution(rows, 1, &ranks).values() == whole;
          CHECK(same);
        } catch (const Stopped&) {
          ++stopped_ranks;
        }
      });
      CHECK((stopped_ranks == 0 || stopped_ranks == size));
      stops += stopped_ranks > 0 ? 1 : 0;
    }
    CHECK(stops > 2);
    allowed = 1'000'000'000;
    asked = 0;
    const NgramRows rows = job.rows({path, "some data"});
    {
      const StopScope scope(&counting);
      const bool same = Solution(rows, 1).values() == whole;
      CHECK(same);
    }
    CHECK(asked < all);
    WorkFile::remove_all(path);
    CHECK(names_in_folder(path).empty());
  }
  set_threads(before);
  unsetenv("CAPSTAN_WORK_SECONDS");
}

TEST_CASE("linear classifiers: what another rank had finished is taken up") {
  REQUIRE(setenv("CAPSTAN_WORK_SECONDS", "0", 1) == 0);
  const RankJob job(rank_cases[1], 600);
  const TemporaryFolder folder;
  const std::string path = (folder / "run").string();
  run_ranks(3, [&](Communicator& ranks) { Solution(job.rows({path, "some data", ranks.first()}), 1, &ranks); });
  const std::vector<std::string> left{"folds.rank1.work", "folds.rank2.work", "folds.work",         "mixes.rank1.work",
                                      "mixes.rank2.work", "mixes.work",       "solving.rank1.work", "solving.work"};
  std::vector<std::string> found;
  for (const std::string& name : names_in_folder(path))
    if (name.find('-') == std::string::npos && name != "solving.rank2.work") found.push_back(name);
  CHECK(found == left);
  std::atomic<int64_t> asked{0};
  const StopPoll counting = [&] { return ++asked < 0; };
  const NgramRows rows = job.rows({path, "some data"}), others = job.rows({path, "other data"});
  const auto asked_by = [&](const NgramRows& some) {
    asked = 0;
    const StopScope scope(&counting);
    const Solution solution(some, 1);
    return asked.load();
  };
  const int64_t again = asked_by(rows), anew = asked_by(others);
  MESSAGE("stop points: ", again, " of ", anew);
  CHECK(again < anew / 4);
  unsetenv("CAPSTAN_WORK_SECONDS");
}

TEST_CASE("ranks that work: one that is asked to stop ends the work of all at once") {
  const auto start = std::chrono::steady_clock::now();
  std::atomic<int> stopped{0}, quick{0};
  run_ranks(3, [&](Communicator& ranks) {
    std::atomic<bool> stop{false};
    const StopPoll poll = [&] { return stop.load(); };
    const StopScope scope(&poll);
    RankWork work(&ranks);
    work.run([&] { ++quick; });
    const std::vector<std::string> texts = work.gather([&] { return std::to_string(ranks.rank()); });
    CHECK(texts == std::vector<std::string>{"0", "1", "2"});
    CHECK(work.broadcast(std::to_string(ranks.rank()), 2) == "2");
    std::vector<int> numbers(3, ranks.rank() + 4);
    work.broadcast_numbers(numbers);
    CHECK(numbers == std::vector<int>(3, 4));
    try {
      work.run([&] {
        if (ranks.rank() == 2) return;  // it waits for the others
        if (ranks.rank() == 1) stop = true;
        for (;;) stop_point();
      });
    } catch (const Stopped&) {
      ++stopped;
    }
  });
  CHECK(quick == 3);
  CHECK(stopped == 3);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
}

}  // namespace
}  // namespace capstan::testing
