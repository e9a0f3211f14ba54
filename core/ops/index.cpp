// gather() and embedding(): one op, the second for the first axis. Ids are checked in one pass before anything is read.
// The gradient is added in the order of the index, whatever the number of threads, for a parameter in its block at
// once.
#include "core/ops/index.hpp"

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/kernels/layout.hpp"
#include "core/machine/profile.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// "(2, 5)": the place of element `index` in `shape`.
std::string place(const Shape& shape, int64_t index) {
  std::vector<int64_t> at(static_cast<size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    at[static_cast<size_t>(axis)] = index % shape[axis];
    index /= shape[axis];
  }
  return to_string(Shape(at));
}

/// Throws std::invalid_argument, with the place of the first, where an id is outside [0, extent).
void check_range(const char* op, const Ids& ids, int64_t extent) {
  const int32_t* const id = ids.data();
  int64_t bad = 0;
  for (int64_t i = 0; i < ids.size(); ++i) bad += id[i] < 0 || id[i] >= extent;
  if (bad == 0) return;
  int64_t i = 0;
  while (id[i] >= 0 && id[i] < extent) ++i;
  check(false, "{}: id {} at {} is outside [0, {})", op, id[i], place(ids.shape(), i), extent);
}

/// x as (outer, extent, inner) around an axis.
struct Around {
  int axis;
  int64_t outer, extent, inner;
};

Around around(const char* op, const Shape& shape, int axis) {
  const int a = shape.normalize_axis(axis, op);
  return {a, shape.product(0, a), shape[a], shape.product(a + 1, shape.rank())};
}

/// `shape` with the extents of `index` in place of one axis.
Shape with_index(const Shape& shape, int axis, const Shape& index) {
  std::vector<int64_t> extents(shape.begin(), shape.begin() + axis);
  extents.insert(extents.end(), index.begin(), index.end());
  extents.insert(extents.end(), shape.begin() + axis + 1, shape.end());
  return Shape(extents);
}

/// Counts the traffic of `times` passes over these rows.
void declare_rows(const Array& rows, int64_t times) {
  declare_traffic(times * rows.size() * static_cast<int64_t>(sizeof(real)));
}

Array gathered(const Array& x, const Ids& index, const Around& s) {
  Array y(with_index(x.shape(), s.axis, index.shape()));
  kernels::gather(y.mutable_data(), x.data(), index.data(), s.outer, s.extent, index.size(), s.inner);
  return y;
}

/// The sum of `in` over the places of `index`, in the parameter's block where there is one.
Grad scattered(const Array& in, const Ids& index, const Around& s, const Shape& shape, real* block) {
  if (block != nullptr) {
    kernels::scatter_add(block, in.data(), index.data(), s.outer, s.extent, index.size(), s.inner);
    return Grad::accumulated();
  }
  Array out(shape);
  kernels::fill(out.mutable_data(), out.size(), 0);
  kernels::scatter_add(out.mutable_data(), in.data(), index.data(), s.outer, s.extent, index.size(), s.inner);
  return out;
}

/// gather() and embedding().
Var rows_of(const char* op, const Var& x, const Ids& index, const Around& s) {
  const ProfileSpan span;
  check_range(op, index, s.extent);
  Array y = gathered(x.value(), index, s);
  declare_rows(y, 2);
  return make_var(op, std::move(y), {x}, [index, s, shape = x.shape()](const Array& g, const Needs& needs) -> Grads {
    if (needs.block(0) != nullptr) declare_rows(g, 3);
    return {scattered(g, index, s, shape, needs.block(0))};
  });
}

}  // namespace

Var gather(const Var& x, const Ids& index, int axis) {
  return rows_of("gather", x, index, around("gather", x.shape(), axis));
}

Var embedding(const Var& table, const Ids& ids) {
  check(table.rank() == 2, "embedding: the table must be (V, D), got {}", table.shape());
  return rows_of("embedding", table, ids, around("embedding", table.shape(), 0));
}

}  // namespace capstan::CAPSTAN_PRECISION
