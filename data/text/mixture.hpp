// Whose turn it is, where several sources share an epoch by weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace capstan {

/// Deals the places of an epoch to sources. Source i has exactly count(i) of them in every epoch, places w_i / sum(w)
/// rounded by the largest remainders, so that the counts add up. Its places are spread evenly: of the first source's,
/// floor(p count(0) / places) precede place p, and the places it leaves are dealt to the others in the same way.
/// A look-up takes O(sources) and no memory.
class Mixture {
 public:
  struct Turn {
    size_t source;
    int64_t number;  // of the source's places in this epoch, from 0
  };

  /// Throws std::invalid_argument unless there are weights, all of them greater than 0 and finite, and places >= 0.
  Mixture(const std::vector<double>& weights, int64_t places);

  int64_t places() const { return places_; }
  /// The number of a source's places in an epoch; may be 0 for a small weight.
  int64_t count(size_t source) const { return counts_.at(source); }
  /// place: in [0, places).
  Turn at(int64_t place) const;

 private:
  int64_t places_;
  std::vector<int64_t> counts_;
};

}  // namespace capstan
