// An HTTP/1.1 server on one thread, by Boost, which only the sources of this folder include. serve/server.cpp runs it.
// tests/serve/test_clients.cpp holds limits and slow clients, tests/fuzz/fuzz_request.cpp what bytes are refused.
#pragma once

#include <memory>
#include <string>

#include "core/base/no_copy.hpp"
#include "serve/http/http_message.hpp"

namespace capstan {

struct HttpState;

/// Whether it is an address of IPv4 or IPv6 in digits.
bool is_ip_address(const std::string& text);

/// run() belongs to one thread; all else may be called from any.
class HttpServer : NoCopy {
 public:
  /// Listens from here on; port 0: any that is free. Throws Error, naming the address.
  HttpServer(const std::string& host, int port, const HttpLimits& limits, HttpHandler handler);
  ~HttpServer();

  int port() const;
  /// Answers requests until stop(), or until drain() has nothing left to answer.
  void run();
  /// From any thread: closes everything.
  void stop();
  /// From any thread: takes no further connections, and closes those whose request has not come whole; others end with
  /// their answer. run() returns when the last one has ended, or after drain_seconds.
  void drain();
  /// From here on SIGTERM drains the server, and a second one or SIGINT stops it.
  void end_at_signals();

 private:
  std::shared_ptr<HttpState> state_;
};

}  // namespace capstan
