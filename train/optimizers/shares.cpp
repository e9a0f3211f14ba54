// Cuts the parameters into pieces that depend on the model alone, and gives each rank neighbouring whole pieces, so
// that shares are as even as pieces allow. tests/train/test_communicator.cpp ("shares ...").
#include "train/optimizers/shares.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/sizes.hpp"

namespace capstan {
namespace {

/// Elements of a piece: about a 256th of all, but whole SIMD registers and no more than a second-level cache has room
/// for. Another size gives other bits of the gradient norm.
int64_t piece_size(int64_t elements) {
  constexpr int64_t unit = 64, pieces = 256, longest = 65536;
  return std::clamp(round_up(elements / pieces, unit), unit, longest);
}

/// Appends [begin, end) in pieces of at most `size`.
void cut(std::vector<Elements>& pieces, int64_t begin, int64_t end, int64_t size) {
  for (; begin < end; begin += size) pieces.push_back({begin, std::min(begin + size, end)});
}

}  // namespace

std::vector<const Param*> by_place(const ParamStore& params) {
  std::vector<const Param*> ordered;
  for (const Param& param : params.params()) ordered.push_back(&param);
  std::sort(ordered.begin(), ordered.end(), [](const Param* a, const Param* b) { return a->offset < b->offset; });
  return ordered;
}

Shares::Shares(const ParamStore& params, bool whole_matrices, int ranks) : ranks_(ranks) {
  check(params.finalized(), "shares: the parameter store is not finalized");
  check(ranks >= 1, "shares: {} ranks", ranks);
  const std::vector<const Param*> ordered = by_place(params);
  std::vector<bool> boundary;  // of the dense pieces: may a part begin there?
  regions_.emplace_back();
  for (size_t i = 0; i < ordered.size(); ++i) {
    const Param& param = *ordered[i];
    const int64_t end = i + 1 < ordered.size() ? ordered[i + 1]->offset : params.flat_size();
    if (param.table >= 0) {
      regions_.emplace_back();
      const int64_t width = param.var.dim(1), rows = std::max<int64_t>(1, piece_size(param.var.size()) / width);
      cut(regions_.back().pieces, param.offset, param.offset + param.var.size(), rows * width);
      continue;
    }
    std::vector<Elements>& dense = regions_.front().pieces;
    const size_t first = dense.size();
    cut(dense, param.offset, std::min(end, params.dense_size()), piece_size(params.dense_size()));
    boundary.resize(dense.size(), !(whole_matrices && is_matrix(param)));
    if (first < dense.size()) boundary[first] = true;
  }
  for (Region& region : regions_) {
    const auto count = region.pieces.size();
    const bool dense = &region == &regions_.front();
    const int64_t begin = count > 0 ? region.pieces.front().begin : 0;
    const int64_t size = count > 0 ? region.pieces.back().end - begin : 0;
    size_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      // The boundary that is nearest to this rank's even share of the elements.
      const int64_t target = begin + size / ranks * rank + size % ranks * rank / ranks;
      size_t before = next;
      for (; next < count && region.pieces[next].begin < target; ++next)
        if (!dense || boundary[next]) before = next;
      while (dense && next < count && !boundary[next]) ++next;
      const int64_t after = next < count ? region.pieces[next].begin : begin + size;
      if (before < next && target - region.pieces[before].begin < after - target) next = before;
      region.starts.push_back(next);
    }
    region.starts.push_back(count);
  }
}

Shares::Span Shares::pieces_of(size_t region, int rank) const {
  const auto at = static_cast<size_t>(rank);
  return {regions_[region].starts[at], regions_[region].starts[at + 1]};
}

Elements Shares::part(size_t region, int rank) const {
  const auto [begin, end] = pieces_of(region, rank);
  if (begin >= end) return {};
  return {regions_[region].pieces[begin].begin, regions_[region].pieces[end - 1].end};
}

std::vector<Elements> Shares::parts(int rank) const {
  std::vector<Elements> owned;
  for (size_t region = 0; region < regions(); ++region)
    if (const Elements part = this->part(region, rank); part.size() > 0) owned.push_back(part);
  return owned;
}

}  // namespace capstan
