// Requests, answers and limits, without Boost: what serve/http and the rest of serve have in common.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace capstan {

struct HttpRequest {
  std::string method, path, body;                             // path: without what follows a ?
  std::string authorization, content_encoding, origin, host;  // headers; empty without
  std::string client;                                         // the client's address
  bool has_body = false;                                      // as the head says; the body may be empty all the same
};

/// How large and slow requests may be.
struct HttpLimits {
  size_t header_bytes = 16 << 10, body_bytes = 1 << 20, connections = 2048;  // of one request, at most; of all clients
  double idle_seconds = 30;  // for a request to come in whole, and for a client to take what it is sent
};

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// How one request is answered: by one answer, or by a stream of text. From any thread; a reply that is dropped without
/// an answer is one with status 500.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  virtual void send(HttpAnswer answer) = 0;
  /// Adds to a stream of server-sent events, which the first call begins.
  virtual void stream(std::string text) = 0;
  virtual void end_stream() = 0;
  /// The client has left, or does not read what it is sent: nothing more is needed.
  virtual bool gone() const = 0;
};

/// What a server does with requests. All must return at once. They are called on the server's thread, but `error` on
/// any: a reply that is dropped asks for it.
struct HttpHandler {
  /// The answer to a request that is refused by its head, before the body is read; none: it is let pass.
  std::function<std::optional<HttpAnswer>(const HttpRequest&)> refuse;
  std::function<void(HttpRequest, std::shared_ptr<HttpReply>)> answer;
  /// The answer to what is no request or breaks a limit: 400, 413, 431, or 503 to a client that must make room.
  std::function<HttpAnswer(int status, const std::string& why)> error;
  /// What was answered, for the log: "GET /v1/models", or nothing for what was no request.
  std::function<void(const std::string& client, const std::string& request, int status, double seconds)> answered = {};
};

}  // namespace capstan
