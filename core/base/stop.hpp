// How long work ends early: it asks again and again, between pieces of a bounded size, whether it should.
#pragma once

#include <exception>
#include <functional>

#include "core/base/no_copy.hpp"

namespace capstan {

/// Leaves work that was asked to stop. What that work was to change is then undefined, unless it says otherwise.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

/// Called from any thread that works.
using StopPoll = std::function<bool()>;

/// While it lives, stop_point() throws Stopped once the poll returns true: in the calling thread and in the parallel
/// loops that this begins. The innermost scope counts; null: nothing stops there.
class StopScope : NoCopy {
 public:
  explicit StopScope(const StopPoll* poll) noexcept;
  ~StopScope();

  /// Of the calling thread; null where there is none.
  static const StopPoll* current() noexcept;

 private:
  const StopPoll* outer_;
};

/// Operations, units of parallel loops, and what is added to a Progress are stop points; longer work has its own.
void stop_point();

}  // namespace capstan
