// A server of trained models: `capstan serve` (apps/commands/serve_command.cpp). It owns two threads: that of the
// network, and one that computes. tests/serve and tests/cli/test_serve.sh run it.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/no_copy.hpp"
#include "serve/routes.hpp"

namespace capstan {

class Server : NoCopy {
 public:
  /// Opens the runs and listens. Throws Error.
  explicit Server(const ServeOptions& options);
  ~Server();

  int port() const { return http_.port(); }
  /// The models that are open now.
  Models models() const;
  /// Texts and other work that is running or waits.
  int64_t taken() const { return room_.places_taken(); }
  /// Answers requests until drain() has ended or stop() is called.
  void run();
  /// Takes no further requests; run() returns when those under way are answered, or after drain_seconds. From any
  /// thread, as all that follows.
  void drain() { http_.drain(options_.drain_seconds); }
  /// What is under way is not answered; run() returns at once.
  void stop();
  /// Opens the runs anew. What is being written goes on with the model it began with; where a run cannot be opened, the
  /// log says so and all models stay.
  void reload();

 private:
  /// `first`: when the server starts, before models_ is there; the settings of the process are then made, too.
  Models open_models(bool first);
  /// The answer to a request that is refused by its head; none: it is let pass.
  std::optional<HttpAnswer> refuse(const HttpRequest& head) const;
  void check(const HttpRequest& head) const;
  void answer(HttpRequest request, const std::shared_ptr<HttpReply>& reply);
  void answer_in_turn(HttpRequest request, const std::shared_ptr<HttpReply>& reply);

  const ServeOptions options_;
  mutable std::mutex mutex_;  // guards models_
  Models models_;
  Room room_, unread_;  // of answers; of requests that wait to be read
  HttpServer http_;     // is destroyed after the scheduler, which may still answer
  Scheduler scheduler_;
};

}  // namespace capstan
