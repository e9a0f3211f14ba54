// What the server answers, by path.
#pragma once

#include <memory>
#include <vector>

#include "serve/api.hpp"
#include "serve/engine.hpp"
#include "serve/scheduler.hpp"
#include "serve/server.hpp"
#include "serve/worker.hpp"

namespace capstan {

using Models = std::vector<std::shared_ptr<Engine>>;

struct RouteContext {
  Models models;
  Scheduler& scheduler;
  const ServeOptions& options;
};

/// Throws ApiError for a path that there is not, 404, or that has not this method, 405, whose param are those it has.
void check_route(const HttpRequest& head);
/// Whether requests need no token.
bool is_open_route(const HttpRequest& head);
/// Answers a request that check_route() lets pass. Throws nothing.
void answer_route(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply, const RouteContext& context);

}  // namespace capstan
