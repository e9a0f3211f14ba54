// Adds one block of gradients to another, and keeps, per thread, the lane that takes a store's gradients. Lanes must be
// added in the order that train/steps/lanes.cpp sets: tests/train/test_lanes.cpp.
#include "core/autograd/grad_block.hpp"

#include "core/base/error.hpp"
#include "core/kernels/elementwise.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

thread_local LaneGrads* active_lane = nullptr;

}  // namespace

void GradBlock::add(GradBlock& other) {
  check(other.dense_.size() == dense_.size() && other.tables_.size() == tables_.size(),
        "gradients: blocks of {} numbers and {} tables, and of {} and {}, cannot be added", dense_.size(),
        tables_.size(), other.dense_.size(), other.tables_.size());
  kernels::take_into(data(), other.data(), dense_.size());
  for (size_t i = 0; i < tables_.size(); ++i) {
    tables_[i].add(std::move(other.tables_[i]));
    other.tables_[i].clear();
  }
}

void GradBlock::clear() {
  kernels::fill(data(), dense_.size(), real{0});
  for (RowGrads& table : tables_) table.clear();
}

LaneGrads::LaneGrads(const GradBlock& store, GradBlock& lane) : store_(&store), lane_(&lane), previous_(active_lane) {
  active_lane = this;
}

LaneGrads::~LaneGrads() { active_lane = previous_; }

GradBlock& LaneGrads::of(GradBlock& store) {
  return active_lane != nullptr && active_lane->store_ == &store ? *active_lane->lane_ : store;
}

}  // namespace capstan::CAPSTAN_PRECISION
