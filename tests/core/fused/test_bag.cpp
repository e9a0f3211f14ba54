#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

#include "core/fused/bag.hpp"
#include "core/ops/ops.hpp"
#include "tests/support/agreement.hpp"

using namespace capstan;

namespace {

/// Bags of 0, 1, 2, ... ids below `rows`, many of them twice.
Bags some_bags(int64_t count, int64_t rows) {
  Bags bags;
  for (int64_t bag = 0; bag < count; ++bag) {
    for (int64_t i = 0; i < bag; ++i) bags.ids.push_back(static_cast<int32_t>((bag * 5 + i * i * 3) % rows));
    bags.close(static_cast<real>(0.5 + static_cast<double>(bag)));
  }
  return bags;
}

/// The rows one by one, then a product with the matrix that says who is in which bag.
Var composed(const Var& table, const Bags& bags) {
  const auto count = static_cast<int64_t>(bags.ids.size());
  Array member = Array::zeros({bags.count(), count});
  for (int64_t bag = 0; bag < bags.count(); ++bag)
    for (int64_t i = bags.offsets[static_cast<size_t>(bag)]; i < bags.offsets[static_cast<size_t>(bag) + 1]; ++i)
      member.mutable_data()[bag * count + i] = bags.factors[static_cast<size_t>(bag)];
  return matmul(Var(member), embedding(table, Ids(Shape{count}, bags.ids)));
}

}  // namespace

TEST_CASE("embedding_bag equals rows taken one by one and summed") {
  for (const Shape& table : {Shape{7, 3}, Shape{1, 5}, Shape{90, 64}, Shape{5, 19}}) {
    const Bags bags = some_bags(30, table[0]);
    testing::check_agreement(
        to_string(table), [&](const auto& v) { return embedding_bag(v[0], bags); },
        [&](const auto& v) { return composed(v[0], bags); }, {table});
  }
}

TEST_CASE("embedding_bag of a table without columns") {
  const Bags bags = some_bags(3, 2);
  CHECK(embedding_bag(Var(Array(Shape{2, 0})), bags).shape() == Shape{3, 0});
}

TEST_CASE("the gradient of embedding_bag is that of the rows it reads: no memory depends on the size of the table") {
  const int64_t rows = 1000, width = 6;
  const real unread = std::numeric_limits<real>::quiet_NaN();
  Bags bags;
  bags.ids = {3, 999, 3, 70};
  bags.close(1);
  bags.close(1);  // empty
  Array values(Shape{rows, width}, unread);
  for (const int32_t row : bags.ids) std::fill_n(values.mutable_data() + row * width, width, real{2});
  const Var table = Var::leaf(values.clone());
  GradBlock block(0, 1);
  table.bind(values, block, 0, 0);
  const RowGrads& grads = block.tables().front();
  for (int pass = 1; pass <= 2; ++pass) {
    TapeScope scope;
    const Var y = embedding_bag(table, bags);
    for (int64_t c = 0; c < width; ++c) {
      CHECK(y.value()[c] == 8);
      CHECK(y.value()[width + c] == 0);
    }
    scope.backward(sum(y));
    CHECK(grads.rows() == std::vector<int64_t>{3, 70, 999});
    CHECK(grads.values().shape() == Shape{3, width});
    CHECK(grads.values()[0] == 2 * pass);
    CHECK(grads.values()[width + 5] == pass);
  }
  CHECK(table.grad().shape() == Shape{rows, width});
  CHECK(table.grad()[999 * width] == 2);
  CHECK(table.grad()[998 * width] == 0);
  table.clear_grad();
  CHECK(grads.empty());
}

TEST_CASE("a table that is updated by rows takes the gradients of rows only") {
  const Var table = Var::leaf(testing::random_normal({4, 2}, 1));
  GradBlock block(0, 1);
  table.bind(table.value(), block, 0, 0);
  TapeScope scope;
  CHECK_THROWS_AS(scope.backward(sum(table)), std::logic_error);
}

TEST_CASE("embedding_bag gives the same bits on any number of threads") {
  const Bags bags = some_bags(200, 501);
  const Array values = testing::random_normal({501, 64}, 1), g = testing::random_normal({200, 64}, 2);
  std::vector<real> expected;
  for (const int count : {1, 2, 3}) {
    const Threads threads_used(count);
    const Var table = Var::leaf(values);
    TapeScope scope;
    const Var y = embedding_bag(table, bags);
    std::vector<real> found = y.value().to_vector();
    scope.tape().backward(std::vector<Var>{y}, {g});
    for (const real number : table.grad().to_vector()) found.push_back(number);
    if (count == 1) expected = found;
    CHECK(found == expected);
  }
}

TEST_CASE("embedding_bag names what does not fit") {
  const Var table(testing::random_normal({4, 2}, 1));
  Bags outside;
  outside.ids = {0, 4};
  outside.close(1);
  CHECK_THROWS_WITH_AS(embedding_bag(table, outside), "embedding_bag: id 4 at 1 is outside [0, 4)",
                       std::invalid_argument);
  Bags open;
  open.ids = {0};
  CHECK_THROWS_AS(embedding_bag(table, open), std::invalid_argument);
  CHECK_THROWS_AS(embedding_bag(Var(testing::random_normal({4}, 1)), Bags()), std::invalid_argument);
}
