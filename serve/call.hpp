// One request on its way to an answer: what handlers of routes (routes.cpp, text_routes.cpp) are given and call.
// Handlers run on the computing thread, by turns; what computes for long goes on as work of the scheduler.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run/inputs/input_text.hpp"
#include "serve/api.hpp"
#include "serve/options.hpp"
#include "serve/room.hpp"
#include "serve/scheduler.hpp"

namespace capstan {

using Models = std::vector<std::shared_ptr<Engine>>;

/// A request with what it can reach of the server. Work that answers later keeps copies of `reply` and of the engine.
struct Call {
  const HttpRequest& request;
  const std::shared_ptr<HttpReply>& reply;
  const Models& models;
  Scheduler& scheduler;
  Room& room;  // for answers
  const ServeOptions& options;
};

/// Throws ApiError, and Error for what is wrong with the request, as all functions below do.
using Handler = void (*)(const Call& call);

/// The JSON of a request's body.
nlohmann::json body_of(const HttpRequest& request);
/// The model of this name.
std::shared_ptr<Engine> engine_called(const std::string& name, const Models& models);
/// The model that a request names; without a name, the only one.
std::shared_ptr<Engine> engine_of(const nlohmann::json& body, const Models& models);
/// Throws ApiError unless the model predicts `what`.
void check_predicts(const Engine& engine, Predicts what);
/// Throws ApiError for a text that has more bytes than a prompt may. `place`: the field, with an index in a list.
void check_length(const std::string& place, const std::string& text, const CompletionLimits& limits);
/// The texts of the field `input`, each a text or, with `columns`, the list of its columns.
std::vector<InputText> input_texts(const RequestFields& fields, const CompletionLimits& limits, bool columns);
/// So many places until the part ends. Throws ApiError 429 where they are not free now, and 400 where they are more
/// than a client ever gets.
std::shared_ptr<Room::Part> enter(const Call& call, int64_t places);

/// POST /v1/embeddings and /v1/classify (text_routes.cpp).
void embed(const Call& call);
void classify(const Call& call);

}  // namespace capstan
