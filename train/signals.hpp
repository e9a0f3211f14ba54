// SIGINT, SIGTERM and SIGUSR1 as a request to save and stop.
#pragma once

#include <csignal>

namespace capstan {

/// While it lives, these signals only set a flag; a second SIGINT ends the process at once. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that arrived; 0 for none.
  static int received();

 private:
  struct sigaction previous_[3];
};

}  // namespace capstan
