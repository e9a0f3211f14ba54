// Signals to a server. tests/cli/test_serve.sh sends them.
#pragma once

#include <atomic>
#include <csignal>
#include <thread>

#include "serve/server.hpp"

namespace capstan {

/// Watches for SIGTERM, SIGINT and SIGHUP on a thread of its own, and blocks them in all others: the frame of a handler
/// that interrupts a product of oneDNN could overwrite its data (train/loop/signals.hpp).
class ServeSignals : NoCopy {
 public:
  /// Blocks the signals in the calling thread and those of the pool; threads that are started later inherit it.
  ServeSignals();
  ~ServeSignals() { end(); }

  /// Runs the server, on which signals act until run() has ended, so that none finds it half destroyed. Before and
  /// after, a signal ends the process.
  void run(Server& server);

 private:
  void end();
  void watch();
  void act(int signal);

  sigset_t watched_;
  bool drains_ = false;  // a SIGTERM has come
  std::atomic<bool> done_ = false;
  std::atomic<Server*> server_ = nullptr;
  std::thread thread_;
};

}  // namespace capstan
