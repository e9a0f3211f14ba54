// The states of sequences that a stack decodes: copied, exchanged and shared row by row. tests/models/test_decode.cpp.
#include <algorithm>

#include "core/base/error.hpp"
#include "models/stack.hpp"

namespace capstan::CAPSTAN_PRECISION {

void DecodeState::reset() {
  std::fill(positions.begin(), positions.end(), 0);
  for (auto& tokens : recent) tokens.clear();
  for (const auto& layer : layers) layer->reset();
  between_layers = false;
}

void DecodeState::check_whole() const {
  if (between_layers)
    throw Error(
        "model: an earlier call failed when some layers had read its tokens: reset() this state, and read again");
}

namespace {

void check_row(int64_t row, const DecodeState& state) {
  check(row >= 0 && row < state.batch(), "model: there is no sequence {} of {}", row, state.batch());
}

}  // namespace

void DecodeState::select(const std::vector<int64_t>& rows) {
  for (const int64_t row : rows) check_row(row, *this);
  check(!rows.empty(), "model: a decode state needs at least one sequence, not {}", rows.size());
  std::vector<std::vector<int32_t>> tokens;
  std::vector<int64_t> places;
  for (const int64_t row : rows) {
    if (!recent.empty()) tokens.push_back(recent[static_cast<size_t>(row)]);
    places.push_back(positions[static_cast<size_t>(row)]);
  }
  recent = std::move(tokens);
  positions = std::move(places);
  for (const auto& layer : layers) layer->select(rows);
}

void DecodeState::copy(int64_t to, DecodeState& from, int64_t row) {
  check_row(to, *this);
  check_row(row, from);
  check(layers.size() == from.layers.size(), "model: the states have {} and {} layers", layers.size(),
        from.layers.size());
  from.check_whole();
  for (size_t i = 0; i < layers.size(); ++i) layers[i]->copy(to, *from.layers[i], row);
  positions[static_cast<size_t>(to)] = from.positions[static_cast<size_t>(row)];
  if (!recent.empty()) recent[static_cast<size_t>(to)] = from.recent[static_cast<size_t>(row)];
}

void DecodeState::share(const DecodeState& other) {
  decode = other.decode;
  for (const auto& layer : layers) layer->share(decode);
}

}  // namespace capstan::CAPSTAN_PRECISION
