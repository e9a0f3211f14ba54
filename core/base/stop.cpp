// Keeps, per thread, the poll that stop_point() asks. tests/train/test_signals.cpp and
// tests/cli/training/test_interruption.cpp.
#include "core/base/stop.hpp"

namespace capstan {
namespace {

thread_local const StopPoll* current_poll = nullptr;

}  // namespace

StopScope::StopScope(const StopPoll* poll) noexcept : outer_(current_poll) { current_poll = poll; }
StopScope::~StopScope() { current_poll = outer_; }
const StopPoll* StopScope::current() noexcept { return current_poll; }

void stop_point() {
  if (current_poll != nullptr && (*current_poll)()) throw Stopped();
}

}  // namespace capstan
