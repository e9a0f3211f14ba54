// A server of trained models: `capstan serve` (apps/commands/serve_command.cpp). It owns two threads: that of the
// network, and one that computes. tests/serve and tests/cli/test_serve.sh run it.
#pragma once

#include <memory>

#include "core/base/no_copy.hpp"
#include "serve/routes.hpp"

namespace capstan {

class Server : NoCopy {
 public:
  /// Opens the runs and listens. Throws Error.
  explicit Server(const ServeOptions& options);
  ~Server();

  int port() const { return http_.port(); }
  const Models& models() const { return models_; }
  /// Texts and other work that is running or waits.
  int64_t taken() const { return room_.places_taken(); }
  /// Answers requests until drain() has ended or stop() is called.
  void run();
  /// Takes no further requests; run() returns when those under way are answered, or after drain_seconds. From any
  /// thread.
  void drain() { http_.drain(); }
  /// What is under way is not answered; run() returns at once. From any thread.
  void stop();
  /// From here on SIGTERM drains the server, and a second one or SIGINT stops it.
  void end_at_signals() { http_.end_at_signals(); }

 private:
  /// The answer to a request that is refused by its head; none: it is let pass.
  std::optional<HttpAnswer> refuse(const HttpRequest& head) const;
  void check(const HttpRequest& head) const;
  void answer(HttpRequest request, const std::shared_ptr<HttpReply>& reply);

  const ServeOptions options_;
  const Models models_;
  Room room_, unread_;  // of answers; of requests that wait to be read
  HttpServer http_;     // is destroyed after the scheduler, which may still answer
  Scheduler scheduler_;
};

}  // namespace capstan
