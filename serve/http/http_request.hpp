// A request, and how large and slow it may be.
#pragma once

#include <cstddef>
#include <string>

namespace capstan {

struct HttpRequest {
  std::string method, path, body;
  std::string authorization, content_type, origin, host;  // headers; empty without
  std::string client;                                     // its address
  bool has_body = false;                                  // says the head; the body may be empty all the same
};

struct HttpLimits {
  size_t header_bytes = 16 << 10, body_bytes = 4 << 20, connections = 2048;
  double idle_seconds = 30;  // for a request to come in whole, and for a client to take what it is sent
  double client_share =
      1;  // of connections, and of memory for requests that are not whole yet, that one address may have
};

}  // namespace capstan
