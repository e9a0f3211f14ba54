// Work on many texts by all threads, with results in the order of the texts: data/ tokenises and checks rows with it.
// tests/core/machine/test_in_order.cpp checks the order, the first error and the bound on memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <utility>
#include <vector>

#include "core/base/no_copy.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {

/// Computes a result for every item, on all threads, and takes the results on the calling thread in the order of the
/// items. What is taken, and which error is met first, is the same for any number of threads. Only as many items and
/// results as keep the threads busy are in memory: a few megabytes of text for each. `work` is called on several
/// threads at once. Call finish() at the end: items that are left when this is destroyed are dropped.
template <class Item, class Result>
class InOrder : NoCopy {
 public:
  class Outcome {
   public:
    /// The result; throws what the work on this item threw.
    Result& get() {
      if (error_) std::rethrow_exception(error_);
      return result_;
    }

   private:
    friend InOrder;
    Result result_;
    std::exception_ptr error_;
  };
  using Work = std::function<Result(const Item&)>;
  using Take = std::function<void(Item&, Outcome&)>;

  InOrder(Work work, Take take) : work_(std::move(work)), take_(std::move(take)) {}

  /// Adds an item of `bytes` of text; units of work have about equal bytes. Works on all items so far when they are
  /// many.
  void add(Item item, size_t bytes) {
    if (unit_bytes_ == 0) begins_.push_back(items_.size());
    items_.push_back(std::move(item));
    unit_bytes_ += std::max(bytes, min_bytes);
    if (unit_bytes_ < bytes_of_unit) return;
    unit_bytes_ = 0;
    if (begins_.size() >= units_per_thread * static_cast<size_t>(threads())) finish();
  }

  /// Works on what was added and takes all that is left. May be called again.
  void finish() {
    std::vector<Item> items = std::exchange(items_, {});
    std::vector<size_t> begins = std::exchange(begins_, {});
    unit_bytes_ = 0;
    begins.push_back(items.size());
    std::vector<Outcome> outcomes(items.size());
    parallel_units(static_cast<int64_t>(begins.size()) - 1, [&](int64_t unit) {
      const auto u = static_cast<size_t>(unit);
      for (size_t i = begins[u]; i < begins[u + 1]; ++i) work_on(items[i], outcomes[i]);
    });
    for (size_t i = 0; i < items.size(); ++i) take_(items[i], outcomes[i]);
  }

 private:
  // Units of 256 KB: long enough to hand out, and eight per thread even out their different costs.
  static constexpr size_t bytes_of_unit = size_t{1} << 18, units_per_thread = 8;
  /// Bytes that the shortest item counts for: it takes memory and may hold a mapping, of which Linux allows 65,530.
  static constexpr size_t min_bytes = 4096;

  void work_on(const Item& item, Outcome& outcome) const {
    try {
      outcome.result_ = work_(item);
    } catch (const Stopped&) {
      throw;
    } catch (...) {
      outcome.error_ = std::current_exception();
    }
  }

  Work work_;
  Take take_;
  std::vector<Item> items_;
  std::vector<size_t> begins_;  // first item of each unit: a thread takes all items of a unit together
  size_t unit_bytes_ = 0;       // bytes of the last unit so far; 0: the next item begins a unit
};

}  // namespace capstan
