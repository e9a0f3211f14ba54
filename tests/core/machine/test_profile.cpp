// What a profile counts, and that it counts nothing twice.
#include "core/fused/bag.hpp"
#include "core/fused/linear.hpp"
#include "core/machine/profile.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

#include "core/machine/parallel.hpp"
#include "core/ops/ops.hpp"
#include "core/products/gemm.hpp"
#include "support/arrays.hpp"
#include "tests/support/threads.hpp"

using namespace capstan;

namespace {

constexpr int64_t number = sizeof(real);

/// The row of that name, or one without calls.
ProfileRow row_of(const Profile& profile, const std::string& name, Pass pass) {
  for (const ProfileRow& row : profile.rows())
    if (name == row.name && pass == row.pass) return row;
  return {"", pass};
}

/// y = e^x by the op of that name, which has a span of its own, inside an op of its own.
Var wrapped_exp(const Var& x) {
  const ProfileSpan span;
  const Array value = exp(Var(x.value())).value();
  return make_var("wrapped", value, {x},
                  [value](const Array& dy, const Needs&) -> Grads { return {(Var(dy) * Var(value)).value()}; });
}

}  // namespace

TEST_CASE("a linear layer is 6 m n k operations, on one thread and on two") {
  constexpr int64_t m = 96, k = 48, n = 80;
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    const Var x = Var::leaf(random_array({2, m / 2, k})), w = Var::leaf(random_array({n, k}, 2));
    Profile profile;
    {
      const ProfiledStep step(&profile);
      TapeScope scope;
      scope.backward(sum(linear(x, w, Var())));
    }
    const ProfileRow forward = row_of(profile, "linear", Pass::forward),
                     backward = row_of(profile, "linear", Pass::backward);
    CHECK(forward.calls == 1);
    CHECK(backward.calls == 1);
    CHECK(forward.flops == 2 * m * n * k);
    CHECK(backward.flops == 4 * m * n * k);
    CHECK(forward.bytes == (m * k + n * k + m * n) * number);
    CHECK(backward.bytes == (m * n + 2 * (m * k + n * k)) * number);
    CHECK(forward.products > 0);
    CHECK(forward.products <= forward.nanoseconds);
    CHECK(row_of(profile, "sum", Pass::forward).flops == 0);
  }
}

TEST_CASE("products inside parallel regions and batches count once") {
  const Array a = random_array({6, 8, 8});
  Array c({6, 8, 8});
  real* const out = c.mutable_data();
  Profile profile;
  {
    const ProfiledStep step(&profile);
    gemm_batched(6, 8, 8, 8, {a.data(), 8}, 64, {a.data(), 8}, 64, out, 8, 64);
    parallel_for(6, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) gemm(8, 8, 8, {a.data(), 8}, {a.data(), 8}, out + 64 * i, 8);
    });
  }
  REQUIRE(profile.rows().size() == 1);
  CHECK(profile.rows()[0].flops == 12 * 2 * 8 * 8 * 8);
  CHECK(profile.rows()[0].products <= profile.rows()[0].nanoseconds);
}

TEST_CASE("nested ops count once: the rows add up to the step") {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count();
  };
  const Var x = Var::leaf(random_array({64, 1024}));
  Profile profile;
  int64_t inside = 0;
  const auto before = Clock::now();
  {
    const ProfiledStep step(&profile);
    const auto start = Clock::now();
    TapeScope scope;
    scope.backward(sum(wrapped_exp(wrapped_exp(x))));
    inside = since(start);
  }
  const int64_t outside = since(before);
  CHECK(profile.steps() == 1);
  CHECK(profile.nanoseconds() >= inside);
  CHECK(profile.nanoseconds() <= outside);
  int64_t sum_of_rows = 0;
  for (const ProfileRow& row : profile.rows()) sum_of_rows += row.nanoseconds;
  CHECK(sum_of_rows == profile.nanoseconds());
  for (const char* const name : {"wrapped", "exp"}) CHECK(row_of(profile, name, Pass::forward).calls == 2);
  CHECK(row_of(profile, "wrapped", Pass::backward).calls == 2);
  CHECK(row_of(profile, "mul", Pass::forward).calls == 2);  // inside the pullback
  CHECK(row_of(profile, "exp", Pass::backward).calls == 0);
}

TEST_CASE("traffic is that of operands, results and gradients, or what an op declares") {
  constexpr int64_t n = 300;
  const Var x = Var::leaf(random_array({n})), table = Var::leaf(random_array({50, 4}, 2));
  GradBlock block(200, 0);
  table.bind(table.value().clone(), block, 0, -1);  // as a parameter's
  const Ids ids(Shape{3}, {7, 7, 49});
  Profile profile;
  {
    const ProfiledStep step(&profile);
    TapeScope scope;
    const Var y = exp(x);
    scope.backward(sum(reshape(y + y, {2, n / 2})) + sum(embedding(table, ids)));
  }
  const std::vector<std::tuple<const char*, Pass, int64_t>> rows = {
      {"exp", Pass::forward, 2 * n},     {"exp", Pass::backward, 3 * n},       {"reshape", Pass::forward, 0},
      {"reshape", Pass::backward, 0},    {"embedding", Pass::forward, 2 * 12}, {"embedding", Pass::backward, 3 * 12},
      {"sum", Pass::forward, n + 12 + 2}};
  for (const auto& row : rows) {
    const auto& [name, pass, numbers] = row;
    INFO(std::get<0>(row));
    CHECK(row_of(profile, name, pass).bytes == numbers * number);
  }
  {
    const ProfiledStep step(&profile);  // without a span of its own
    make_var("bare", x.value().clone(), {x}, [](const Array& dy, const Needs&) -> Grads { return {dy}; });
  }
  {
    const ProfiledStep step(&profile);
    Bags bags;
    bags.ids = {1, 2, 2};
    for (int bag = 0; bag < 2; ++bag) bags.close(1);  // the second is empty
    embedding_bag(table, std::move(bags));
  }
  CHECK(row_of(profile, "embedding_bag", Pass::forward).bytes == (3 * 4 + 2 * 4) * number);
  CHECK(row_of(profile, "bare", Pass::forward).calls == 1);
  CHECK(row_of(profile, "bare", Pass::forward).bytes == 2 * n * number);
  // The one result of two adds is a number; y is added to itself, and its two gradients are added up.
  CHECK(row_of(profile, "add", Pass::forward).bytes == (3 * n + 3) * number);
  CHECK(row_of(profile, "add", Pass::backward).bytes == 0);
  CHECK(row_of(profile, "sum of gradients", Pass::backward).bytes == 3 * n * number);
}

TEST_CASE("recomputed ops count as often as they run") {
  constexpr int64_t size = 24;
  const Var x = Var::leaf(random_array({size, size})), w = Var::leaf(random_array({size, size}, 2));
  Profile profile;
  {
    const ProfiledStep step(&profile);
    TapeScope scope;
    scope.backward(sum(recompute([&](const std::vector<Var>& v) { return linear(v[0], w, Var()); }, {x})));
  }
  CHECK(row_of(profile, "linear", Pass::forward).calls == 2);
  CHECK(row_of(profile, "linear", Pass::backward).calls == 1);
  CHECK(row_of(profile, "linear", Pass::forward).flops == 4 * size * size * size);
  CHECK(row_of(profile, "recompute", Pass::forward).flops == 0);
  CHECK(row_of(profile, "recompute", Pass::backward).flops == 0);
  CHECK(row_of(profile, "recompute", Pass::backward).bytes == 0);
}

TEST_CASE("only one step is profiled at a time, and one that throws is closed like any other") {
  Profile profile, other;
  const Var x = Var::leaf(random_array({4}));
  CHECK_THROWS_AS(
      [&] {
        const ProfiledStep step(&profile);
        exp(x) + Var(random_array({5}));
      }(),
      std::invalid_argument);
  CHECK(Profile::active() == nullptr);
  {
    const ProfiledStep step(&profile);
    CHECK(Profile::active() == &profile);
    CHECK_THROWS_WITH_AS(ProfiledStep{&other}, "profile: another step is being profiled", std::invalid_argument);
    CHECK(Profile::active() == &profile);
  }
  { const ProfiledStep none(nullptr); }
  exp(x);
  CHECK(profile.steps() == 2);
  CHECK(other.rows().empty());
  CHECK(row_of(profile, "exp", Pass::forward).calls == 1);
  CHECK(row_of(profile, "add", Pass::forward).calls == 0);
}
