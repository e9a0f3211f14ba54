// embedding_bag(): rows are summed in the order of their bag, and a row's gradient in the order of the bags that have
// it, so neither depends on the number of threads. A packed table, of a model that is read to be used, has no gradient.

#include "core/fused/bag.hpp"
#include <algorithm>
#include <memory>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/fused/kernels/bag.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// Every place of every id, those of one row side by side and in the order of their bags: a row's gradient is then one
/// sum in one order, whatever thread computes it.
struct PlacesByRow {
  std::vector<kernels::BagPlace> places;
  std::vector<int64_t> runs;  // where each row's places begin, and the end

  explicit PlacesByRow(const Bags& bags) {
    places.reserve(bags.ids.size());
    for (int64_t bag = 0; bag < bags.count(); ++bag)
      for (int64_t i = bags.offsets[static_cast<size_t>(bag)]; i < bags.offsets[static_cast<size_t>(bag) + 1]; ++i)
        places.push_back({bags.ids[static_cast<size_t>(i)], static_cast<int32_t>(bag)});
    std::sort(places.begin(), places.end(), [](const kernels::BagPlace& a, const kernels::BagPlace& b) {
      return a.row != b.row ? a.row < b.row : a.bag < b.bag;
    });
    for (size_t i = 0; i < places.size(); ++i)
      if (i == 0 || places[i].row != places[i - 1].row) runs.push_back(static_cast<int64_t>(i));
    runs.push_back(static_cast<int64_t>(places.size()));
  }

  int64_t rows() const { return static_cast<int64_t>(runs.size()) - 1; }
  int64_t row(int64_t run) const { return places[static_cast<size_t>(runs[static_cast<size_t>(run)])].row; }
};

/// The gradient of the table, from that of the sums g (B, D).
RowGrads scattered(const Bags& bags, const Array& g) {
  const PlacesByRow sorted(bags);
  if (sorted.rows() == 0) return {};
  std::vector<int64_t> rows;
  rows.reserve(static_cast<size_t>(sorted.rows()));
  for (int64_t run = 0; run < sorted.rows(); ++run) rows.push_back(sorted.row(run));
  Array values(Shape{sorted.rows(), g.dim(1)});
  kernels::bag_scatter(values.mutable_data(), g.data(), sorted.places.data(), sorted.runs.data(), sorted.rows(),
                       bags.factors.data(), g.dim(1));
  return {std::move(rows), std::move(values)};
}

/// The same bags with the places of rows in a packed table as ids; rows that it does not have are zeros and left out.
Bags by_place(const Bags& bags, const RowIndex& index) {
  Bags by_places;
  for (int64_t bag = 0; bag < bags.count(); ++bag) {
    for (int64_t i = bags.offsets[static_cast<size_t>(bag)]; i < bags.offsets[static_cast<size_t>(bag) + 1]; ++i)
      if (const int64_t place = index.place_of(bags.ids[static_cast<size_t>(i)]); place >= 0)
        by_places.ids.push_back(static_cast<int32_t>(place));
    by_places.close(bags.factors[static_cast<size_t>(bag)]);
  }
  return by_places;
}

}  // namespace

Var embedding_bag(const Var& table, Bags bags) {
  const ProfileSpan span;
  check(table.rank() == 2, "embedding_bag: the table must be (V, D), got {}", table.shape());
  check(bags.offsets.size() == bags.factors.size() + 1 && bags.offsets.back() == static_cast<int64_t>(bags.ids.size()),
        "embedding_bag: {} offsets do not fit {} bags of {} ids", bags.offsets.size(), bags.count(), bags.ids.size());
  for (size_t i = 0; i < bags.ids.size(); ++i)
    check(bags.ids[i] >= 0 && bags.ids[i] < table.dim(0), "embedding_bag: id {} at {} is outside [0, {})", bags.ids[i],
          i, table.dim(0));
  if (const auto packed = table.packed()) return embedding_bag(Var(packed->rows), by_place(bags, packed->index));
  Array y(Shape{bags.count(), table.dim(1)});
  kernels::bag_sums(y.mutable_data(), table.value().data(), bags.ids.data(), bags.offsets.data(), bags.factors.data(),
                    bags.count(), table.dim(1));
  declare_traffic((static_cast<int64_t>(bags.ids.size()) * table.dim(1) + y.size()) *
                  static_cast<int64_t>(sizeof(real)));
  const auto saved = std::make_shared<const Bags>(std::move(bags));
  return make_var("embedding_bag", std::move(y), {table}, [saved](const Array& g, const Needs&) -> Grads {
    RowGrads rows = scattered(*saved, g);
    declare_traffic((g.size() + rows.values().size()) * static_cast<int64_t>(sizeof(real)));
    return {std::move(rows)};
  });
}

}  // namespace capstan::CAPSTAN_PRECISION
