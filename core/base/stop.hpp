// How long work ends early: between pieces of bounded size it asks whether it should stop. train/loop,
// train/linear and serve set the poll (a signal, a client that has gone); core, nn and train ask. Between two questions
// of a thread there must be no more than a moment's work: tests/cli/training/test_interruption.cpp and
// tests/train/test_signals.cpp.
#pragma once

#include <exception>
#include <functional>

#include "core/base/no_copy.hpp"

namespace capstan {

/// Leaves work that was asked to stop. What that work was to change is then undefined, unless its own description says
/// otherwise. Not an Error: code that reports errors must let it pass.
class Stopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

/// Asks whether work should stop (true). Called from any thread that works, so it must be fast and safe to call from
/// several threads at once.
using StopPoll = std::function<bool()>;

/// While it lives, stop_point() throws Stopped once the poll returns true: in the calling thread and in the parallel
/// loops that this begins. The innermost scope counts; null: nothing stops there.
class StopScope : NoCopy {
 public:
  explicit StopScope(const StopPoll* poll) noexcept;
  ~StopScope();

  /// The poll of the calling thread's innermost scope; null where there is none.
  static const StopPoll* current() noexcept;

 private:
  const StopPoll* outer_;
};

/// Throws Stopped if the calling thread's poll says so. Ops, units of parallel loops and Progress::add() call it;
/// longer work between two of these must call it itself.
void stop_point();

}  // namespace capstan
