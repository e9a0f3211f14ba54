// What ranks say to each other, and which of them owns and adds what.
#include "train/ranks/communicator.hpp"

#include <doctest/doctest.h>

#include "train/optimizers/optimizer.hpp"
#include "train/rank_steps/rank_gradients.hpp"
#include "train/rank_threads.hpp"
#include "train/ranks/agreement.hpp"
#include "train/steps/lanes.hpp"
#include "train/support.hpp"

using namespace capstan;
using namespace capstan::testing;

TEST_CASE("every rank gathers what all give, and gets what the first one broadcasts") {
  for (const int size : {1, 2, 3, 5, 8, 13}) {
    INFO(size, " ranks");
    std::vector<std::vector<std::string>> gathered(static_cast<size_t>(size));
    std::vector<std::string> heard(static_cast<size_t>(size));
    run_ranks(size, [&](Communicator& ranks) {
      const auto rank = static_cast<size_t>(ranks.rank());
      gathered[rank] = ranks.gather(std::string(3 * rank % 7, static_cast<char>('a' + rank)));
      ranks.barrier();
      heard[rank] = ranks.broadcast(ranks.first() ? "the first says" : "others are not heard");
      const std::vector<int64_t> squares = ranks.gather_values<int64_t>(ranks.rank() * ranks.rank());
      for (size_t i = 0; i < squares.size(); ++i)
        if (squares[i] != static_cast<int64_t>(i * i)) throw std::logic_error("wrong value");
    });
    for (int rank = 0; rank < size; ++rank) {
      const auto at = static_cast<size_t>(rank);
      CHECK(heard[at] == "the first says");
      REQUIRE(gathered[at].size() == static_cast<size_t>(size));
      for (size_t i = 0; i < gathered[at].size(); ++i)
        CHECK(gathered[at][i] == std::string(3 * i % 7, static_cast<char>('a' + i)));
    }
  }
}

TEST_CASE("texts that are longer than a message may be come in pieces") {
  constexpr size_t longest = 50'000'000;
  const auto text_of = [&](int rank) {
    std::string text(rank == 1 ? longest : static_cast<size_t>(3 * rank), static_cast<char>('a' + rank));
    if (rank == 1)
      for (size_t at = 0; at < longest; at += 1'000'003) text[at] = static_cast<char>('0' + at % 10);
    return text;
  };
  run_ranks(3, [&](Communicator& ranks) {
    const std::vector<std::string> all = ranks.gather(text_of(ranks.rank()));
    for (int rank = 0; rank < 3; ++rank)
      if (all[static_cast<size_t>(rank)] != text_of(rank)) throw std::logic_error("another text was gathered");
    const std::string twice = text_of(1) + text_of(1);
    if (ranks.broadcast(ranks.first() ? twice : "") != twice) throw std::logic_error("another text was heard");
  });
}

TEST_CASE("a rank that does not answer is named") {
  const auto body = [](Communicator& ranks) {
    if (ranks.rank() != 2) ranks.barrier();
  };
  const std::string message = message_of([&] { run_ranks(3, body, 1); });
  check_contains(message, {"no message from rank 2", "--rank-timeout"});
}

TEST_CASE("a rank that does not answer is named in time on a busy machine, where each turn of waiting takes long") {
  const auto body = [](Communicator& ranks) {
    if (ranks.rank() != 1) ranks.barrier();
  };
  const auto start = std::chrono::steady_clock::now();
  const std::string message = message_of([&] { run_ranks(2, body, 1, std::chrono::milliseconds(20)); });
  CHECK(contains(message, "from rank 1"));
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(3));
}

TEST_CASE("a rank that hears no other says that it may be cut off itself") {
  const auto body = [](Communicator& ranks) {
    if (ranks.rank() == 0) ranks.barrier();
  };
  const std::string message = message_of([&] { run_ranks(3, body, 1); });
  check_contains(message, {"no message reaches rank 0", "which may be cut off itself, from rank 1"});
}

TEST_CASE("the rank for which all wait is named, not the one that waits for it") {
  const auto body = [](Communicator& ranks) {
    if (ranks.rank() == 3) return;  // without a word
    char byte = 0;
    std::vector<Pending> next{ranks.receive(ranks.rank() + 1, &byte, 1)};
    ranks.wait(next);
  };
  const std::string message = message_of([&] { run_ranks(4, body, 2); });
  INFO(message);
  CHECK(contains(message, "no message from rank 3"));
  CHECK_FALSE(contains(message, "rank 1"));
}

TEST_CASE("facts that differ are named with both ranks") {
  std::vector<std::string> lines;
  run_ranks(3, [&](Communicator& ranks) {
    Settings facts{{"train.lr", ranks.rank() == 1 ? "0.2" : "0.1"}, {"seed", "1"}};
    if (ranks.rank() == 2) facts.erase("seed");
    const std::vector<std::string> found = disagreements(ranks, facts);
    if (ranks.rank() == 1) lines = found;
  });
  REQUIRE(lines.size() == 2);
  check_contains(lines[0], {"rank 1", "has train.lr 0.2, rank 0", "has train.lr 0.1"});
  CHECK(contains(lines[1], "has no seed"));
}

TEST_CASE("the nodes of all ranks are all lanes, and finish the same tree whatever the number of ranks") {
  for (int64_t lanes = 1; lanes <= 40; ++lanes) {
    const LaneTree tree(lanes);
    std::string expected;
    for (int64_t ranks = 1; ranks <= 13; ++ranks) {
      INFO(lanes, " lanes, ", ranks, " ranks");
      // Sums as texts, so that their order shows. A node within a rank is added as the tree says.
      const std::function<std::string(int64_t, int64_t)> sum = [&](int64_t first, int64_t width) -> std::string {
        if (width == 1) return std::to_string(first);
        const std::string left = sum(first, width / 2);
        return first + width / 2 >= lanes ? left : "(" + left + "+" + sum(first + width / 2, width / 2) + ")";
      };
      std::vector<LaneRange> nodes;
      int64_t next = 0;
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const LaneRange range = tree.lanes_of(rank, ranks);
        CHECK(range.begin == next);
        next = range.end;
        size_t count = 0;
        for (const LaneRange& node : tree.nodes_of(range)) {
          CHECK(range.holds(node));
          nodes.push_back(node);
          ++count;
        }
        CHECK(count <= 2 * 6);
      }
      CHECK(next == lanes);
      std::vector<std::string> texts;
      for (const LaneRange& node : nodes) {
        int64_t width = 1;
        while (width < node.size()) width *= 2;
        texts.push_back(sum(node.begin, width));
      }
      tree.finish(nodes,
                  [&](size_t left, size_t right) { texts[left] = "(" + texts[left] + "+" + texts[right] + ")"; });
      if (ranks == 1) expected = texts.front();
      CHECK(texts.front() == expected);
    }
  }
}

TEST_CASE("shares cover every parameter once, and cut no matrix where an optimizer needs it whole") {
  ParamStore params;
  params.add("a", Array(Shape{40, 50}, real{1}), {});
  params.add("bias", Array(Shape{50}, real{1}), {false});
  params.add("b", Array(Shape{30, 20}, real{1}), {});
  params.add("c", Array(Shape{64, 64}, real{1}), {});
  params.add("table", Array(Shape{101, 6}, real{1}), {true, /*by_rows=*/true});
  params.finalize();
  for (const bool whole : {false, true})
    for (int ranks = 1; ranks <= 9; ++ranks) {
      INFO(ranks, " ranks", whole ? ", whole matrices" : "");
      const Shares shares(params, whole, ranks);
      REQUIRE(shares.regions() == 2);
      std::vector<int> owners(static_cast<size_t>(params.flat_size()), 0);
      for (int rank = 0; rank < ranks; ++rank)
        for (const Elements& part : shares.parts(rank))
          for (int64_t i = part.begin; i < part.end; ++i) ++owners[static_cast<size_t>(i)];
      for (const Param& param : params.params())
        for (int64_t i = 0; i < param.var.size(); ++i) REQUIRE(owners[static_cast<size_t>(param.offset + i)] == 1);
      int64_t largest = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        largest = std::max(largest, shares.part(0, rank).size());
        for (const Param& param : params.params()) {
          const Elements here =
              common({param.offset, param.offset + param.var.size()}, shares.part(param.table >= 0 ? 1 : 0, rank));
          if (whole && is_matrix(param)) CHECK((here.size() == 0 || here.size() == param.var.size()));
          if (param.table >= 0) CHECK(here.size() % 6 == 0);
        }
      }
      if (!whole) CHECK(largest <= params.dense_size() / ranks + 2 * 64);
    }
}

TEST_CASE("shares: a part may be a single element") {
  ParamStore params;
  params.add("table", Array(Shape{1, 1}, real{1}), {true, /*by_rows=*/true});
  params.finalize();
  const std::vector<Elements> parts = Shares(params).parts(0);
  REQUIRE(parts.size() == 1);
  CHECK(parts[0].size() == 1);
}

TEST_CASE("a rank that takes a fifth longer than the median is named") {
  CHECK_FALSE(slow_rank({}).has_value());
  CHECK_FALSE(slow_rank({1, 1.1, 1, 0.9}).has_value());
  CHECK_FALSE(slow_rank({1, 0, 0}).has_value());
  REQUIRE(slow_rank({1, 1.3}).has_value());
  CHECK(slow_rank({1, 1.3})->rank == 1);
  REQUIRE(slow_rank({1, 1, 2.5, 1.5, 1}).has_value());
  CHECK(slow_rank({1, 1, 2.5, 1.5, 1})->rank == 2);
  CHECK(slow_rank({1, 1, 2.5, 1.5, 1})->factor == 2.5);
}
