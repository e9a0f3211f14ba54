// Which rank owns which parameters: it finishes their gradients, keeps what the optimizer remembers of them, and
// updates them (Rajbhandari et al. 2020, arXiv 1910.02054: stage 1 of ZeRO). One process owns all. The pieces are also
// what gradient_norm() sums over, so they must depend on the model alone: tests/train/test_communicator.cpp and
// test_ranks.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/params/param_store.hpp"

namespace capstan {

/// Elements [begin, end) of a store's flat blocks.
struct Elements {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end > begin ? end - begin : 0; }
};
/// The elements that two ranges have in common; a range of size 0 if there are none.
inline Elements common(const Elements& a, const Elements& b) {
  return {a.begin > b.begin ? a.begin : b.begin, a.end < b.end ? a.end : b.end};
}

/// The parameters in the order of their places in the flat blocks.
std::vector<const Param*> by_place(const ParamStore& params);

/// The parameters of a store, cut into pieces that depend on the model alone, and shared out among the ranks. Each of
/// the store's regions (its dense parameters, and every table that is updated by rows) is shared out by itself, so that
/// all ranks have a part of each; a part is contiguous and begins and ends between two pieces.
class Shares {
 public:
  /// The store must be finalized. `whole_matrices`: no part cuts a matrix (is_matrix).
  explicit Shares(const ParamStore& params, bool whole_matrices = false, int ranks = 1);

  int ranks() const { return ranks_; }
  /// 1 + the number of tables that are updated by rows.
  size_t regions() const { return regions_.size(); }
  /// What a rank owns of a region: elements of the flat blocks.
  Elements part(size_t region, int rank) const;
  /// Parts of all regions, ascending and not empty.
  std::vector<Elements> parts(int rank) const;
  /// The pieces of a region, ascending; those of a rank are contiguous.
  const std::vector<Elements>& pieces(size_t region) const { return regions_[region].pieces; }
  struct Span {
    size_t begin, end;  // the pieces [begin, end) of a region
  };
  Span pieces_of(size_t region, int rank) const;

 private:
  struct Region {
    std::vector<Elements> pieces;
    std::vector<size_t> starts;  // (ranks + 1): the first piece of each rank, and the number of pieces
  };

  int ranks_;
  std::vector<Region> regions_;
};

}  // namespace capstan
