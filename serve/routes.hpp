// What the server answers, by path. server.cpp calls it: check_route() on the thread of the network before the body is
// read, answer_route() on the computing thread. tests/serve/test_endpoints.cpp asks every path.
#pragma once

#include "serve/call.hpp"

namespace capstan {

/// Throws ApiError 404 for an unknown path, and 405 for a method that the path does not have.
void check_route(const HttpRequest& head);
/// Answers a request that check_route() lets pass and that has a handler here: server.cpp answers / and /health
/// itself. Throws nothing.
void answer_route(const Call& call);

}  // namespace capstan
