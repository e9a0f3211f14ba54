// What the server answers, by path.
#pragma once

#include <memory>

#include "serve/call.hpp"

namespace capstan {

/// Throws ApiError for a path that there is not, 404, or that has not this method, 405, whose param are those it has.
void check_route(const HttpRequest& head);
/// Whether requests need no token.
bool is_open_route(const HttpRequest& head);
/// Answers a request that check_route() lets pass. Throws nothing.
void answer_route(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply, const RouteContext& context);

}  // namespace capstan
