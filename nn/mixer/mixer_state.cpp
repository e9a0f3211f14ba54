#include "nn/mixer/mixer_state.hpp"

#include <algorithm>

#include "core/array/selected_rows.hpp"
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

}  // namespace capstan::CAPSTAN_PRECISION
