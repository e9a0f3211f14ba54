// Requests, answers and limits, without Boost: what serve/http and the rest of serve have in common.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/no_copy.hpp"

namespace capstan {

class HttpConnection;

struct HttpRequest {
  std::string method, path, body;           // path: without what follows a ?
  std::string authorization, origin, host;  // headers; empty without
  std::string client;                       // the client's address
};

/// How large and slow requests may be, and the end of a server.
struct HttpLimits {
  size_t header_bytes = 16 << 10, body_bytes = 1 << 20, connections = 2048;  // of one request, at most; of all clients
  double idle_seconds = 30;   // for a request to come in whole, and for a client to take what it is sent
  double drain_seconds = 30;  // for what is under way when the server ends
};

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// How one request is answered: by one answer, or by a stream of text. From any thread; a reply that is dropped without
/// an answer is one with status 500.
class HttpReply : NoCopy {
 public:
  explicit HttpReply(std::shared_ptr<HttpConnection> connection);
  ~HttpReply();

  void send(HttpAnswer answer);
  /// Adds to a stream of server-sent events, which the first call begins.
  void stream(std::string text) { post(std::move(text), false); }
  void end_stream() { post("", true); }
  /// The client has left, or does not read what it is sent: nothing more is needed.
  bool gone() const { return *gone_; }

 private:
  void post(std::string text, bool end);

  std::shared_ptr<HttpConnection> connection_;
  std::shared_ptr<std::atomic<bool>> gone_;
  bool answered_ = false;
};

/// What a server does with requests. All must return at once. They are called on the server's thread, but `error` on
/// any: a reply that is dropped asks for it.
struct HttpHandler {
  /// The answer to a request that is refused by its head, before the body is read; none: it is let pass.
  std::function<std::optional<HttpAnswer>(const HttpRequest&)> refuse;
  std::function<void(HttpRequest, std::shared_ptr<HttpReply>)> answer;
  /// The answer to what is no request or breaks a limit: 400, 413, 431, or 503 to a client that must make room.
  std::function<HttpAnswer(int status, const std::string& why)> error;
};

}  // namespace capstan
