// A server of trained models: `capstan serve` (apps/commands/serve_command.cpp). It owns the three kinds of threads:
// one of the network, those that read requests, and one that computes. tests/serve and tests/cli/test_serve.sh run it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/no_copy.hpp"
#include "serve/options.hpp"

namespace capstan {

class Server : NoCopy {
 public:
  /// Opens the runs and listens. Throws Error.
  explicit Server(const ServeOptions& options);
  ~Server();

  int port() const;
  std::vector<std::string> models() const;
  /// Texts and other work that is running or waits.
  int64_t taken() const;
  /// Answers requests until drain() has ended or stop() is called.
  void run();
  // From any thread:
  /// Takes no further requests; run() returns when those under way are answered, or after drain_seconds.
  void drain();
  /// What is under way is not answered; run() returns at once.
  void stop();
  /// Opens the runs anew, in the background. What is being written goes on with the model it began with; where a run
  /// cannot be opened, the log says so and all models stay.
  void reload();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace capstan
