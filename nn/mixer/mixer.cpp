// A state's arrays (parts()) have a row for each sequence: select(), copy(), reset() and visit() work on these rows, so
// a mixer with other members must override them. "decode states" in tests/models/test_beam_search.cpp copies and
// selects those of every mixer.
#include "nn/mixer/mixer.hpp"

#include <algorithm>

#include "core/array/layout.hpp"
#include "core/base/error.hpp"

namespace capstan::CAPSTAN_PRECISION {

void MixerState::advance(int64_t rows, int64_t tokens) {
  for (int64_t row = 0; row < rows; ++row) positions_[static_cast<size_t>(row)] += tokens;
}

void MixerState::reset() {
  std::fill(positions_.begin(), positions_.end(), 0);
  for (Array* const part : parts())
    if (!part->empty()) std::fill_n(part->mutable_data(), part->size(), real{0});
}

void MixerState::select(const std::vector<int64_t>& rows) {
  std::vector<int64_t> selected;
  for (const int64_t row : rows) selected.push_back(positions_.at(static_cast<size_t>(row)));
  positions_ = std::move(selected);
  for (Array* const part : parts()) *part = select_rows(*part, rows);
}

void MixerState::copy(int64_t to, MixerState& from, int64_t row) {
  check(from.maker_ == maker_, "a sequence can only be copied between states of the same mixer");
  positions_.at(static_cast<size_t>(to)) = from.positions_.at(static_cast<size_t>(row));
  const std::vector<Array*> own_parts = parts(), other_parts = from.parts();
  for (size_t i = 0; i < own_parts.size(); ++i) copy_row(*own_parts[i], to, *other_parts[i], row);
}

void MixerState::visit(int64_t row, int64_t position, const Elements& body) {
  positions_.at(static_cast<size_t>(row)) = position;
  for (Array* const part : parts()) {
    if (part->empty()) continue;
    const int64_t size = part->size() / part->dim(0);
    body(part->mutable_data() + row * size, size);
  }
}

}  // namespace capstan::CAPSTAN_PRECISION

namespace capstan {

void check_heads(int64_t heads, const ModelShape& model, Problems& problems) {
  if (heads < 1 || model.width % heads != 0)
    problems.add("heads", fmt::format("{} heads do not divide the width {}", heads, model.width));
}

}  // namespace capstan

namespace capstan::CAPSTAN_PRECISION {

Array outside_prefixes(const Context& context, int64_t rank) {
  const Ids &all = context.segments.ids(), &prefixes = context.prefixes.ids();
  check(prefixes.shape() == all.shape(), "mixer: prefixes {} and segments {} differ in shape", prefixes.shape(),
        all.shape());
  Array outside(rank == 4 ? Shape{all.dim(0), 1, all.dim(1), 1} : Shape{all.dim(0), all.dim(1), 1});
  for (int64_t i = 0; i < all.size(); ++i) {
    check(prefixes[i] == 0 || prefixes[i] == all[i], "mixer: the prefix at {} is part of another document", i);
    outside.mutable_data()[i] = prefixes[i] == 0 ? 1 : 0;
  }
  return outside;
}

}  // namespace capstan::CAPSTAN_PRECISION
