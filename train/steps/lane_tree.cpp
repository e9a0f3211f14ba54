#include "train/steps/lane_tree.hpp"

namespace capstan {

std::vector<LaneRange> LaneTree::nodes_of(const LaneRange& range) const {
  std::vector<LaneRange> nodes;
  for (int64_t first = range.begin; first < range.end; first = nodes.back().end) {
    int64_t width = 1;
    while (2 * width < lanes_ && first % (2 * width) == 0 && range.holds(node(first, 2 * width))) width *= 2;
    nodes.push_back(node(first, width));
  }
  return nodes;
}

}  // namespace capstan
