#include <doctest/doctest.h>

#include "core/array/segments.hpp"
#include "tests/support/ragged.hpp"

using namespace capstan;

TEST_CASE("segments of packed rows: spans, positions, counts") {
  const Segments segments(Ids(Shape{3, 5}, {2, 2, 7, 7, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4}));
  REQUIRE(segments.spans().size() == 3);
  const std::vector<std::vector<int64_t>> expected = {{0, 0, 2}, {0, 2, 4}, {2, 1, 5}};
  for (size_t i = 0; i < expected.size(); ++i) {
    const Segments::Span& span = segments.spans()[i];
    CHECK(std::vector<int64_t>{span.row, span.begin, span.end} == expected[i]);
  }
  CHECK(segments.positions().to_vector() == std::vector<int32_t>{0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3});
  CHECK(segments.longest() == 4);
  CHECK(segments.valid() == 8);
  CHECK_FALSE(segments.all_valid());
  CHECK(segments.is_valid(0, 3));
  CHECK_FALSE(segments.is_valid(0, 4));
}

TEST_CASE("segments without packing") {
  const Segments full = Segments::full(2, 3);
  CHECK(full.all_valid());
  CHECK(full.spans().size() == 2);
  CHECK(full.longest() == 3);
  const Segments ragged = segments_of_lengths({3, 0, 1}, 3);
  CHECK(ragged.ids().to_vector() == std::vector<int32_t>{1, 1, 1, 0, 0, 0, 1, 0, 0});
  CHECK(ragged.spans().size() == 2);
  CHECK(ragged.valid() == 4);
  const Segments none = segments_of_lengths({0, 0}, 2);
  CHECK(none.spans().empty());
  CHECK(none.longest() == 0);
  CHECK(Segments::full(0, 3).valid() == 0);
  CHECK(Segments::full(3, 0).spans().empty());
}

TEST_CASE("segments that make no sense are refused by row and token") {
  CHECK_THROWS_WITH_AS(Segments(Ids(Shape{4}, 1)), "segments: ids must be (B, T), got (4)", std::invalid_argument);
  CHECK_THROWS_WITH_AS(Segments(Ids(Shape{1, 3}, {1, -2, 0})), "segments: id -2 at row 0, token 1 is negative",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(Segments(Ids(Shape{2, 4}, {1, 1, 1, 1, 5, 0, 5, 5})),
                       "segments: document 5 of row 1 is not contiguous: it starts again at token 2",
                       std::invalid_argument);
}
