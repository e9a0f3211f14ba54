// One request on its way to an answer: what handlers of routes (routes.cpp, text_routes.cpp) are given and call.
// Handlers run on a reading thread (Worker); what computes goes to the scheduler by answer_later().
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "run/inputs/input_text.hpp"
#include "serve/api.hpp"
#include "serve/options.hpp"
#include "serve/scheduler.hpp"

namespace capstan {

using Models = std::vector<std::shared_ptr<Engine>>;

/// What a request can reach of the server. The models are those that were open when the request came: a reload, which
/// opens others, does not change them.
struct RouteContext {
  Models models;
  Scheduler& scheduler;
  const ServeOptions& options;
};

/// Lasts as long as the handler: work that answers later keeps copies of `reply` and of the engine.
struct Call {
  const HttpRequest& request;
  const std::shared_ptr<HttpReply>& reply;
  const RouteContext& context;
  std::string model = {}, session = {};  // names in the path, /v1/models/MODEL/sessions/SESSION; empty without
};

using Handler = void (*)(const Call& call);

// All functions throw ApiError, and Error for what is wrong with the request.

/// The JSON of a request's body.
nlohmann::json body_of(const HttpRequest& request);
/// The model of this name.
std::shared_ptr<Engine> engine_called(const std::string& name, const Models& models);
/// The model that a request names; without a name, the only one.
std::shared_ptr<Engine> engine_of(const nlohmann::json& body, const Models& models);
/// Throws ApiError unless the model predicts `what`; the error names the path that suits the model.
void check_predicts(const Engine& engine, Predicts what);
/// Throws ApiError for a text that has more bytes than a prompt may. `place`: the field, with an index in a list.
void check_length(const std::string& place, const std::string& text, const CompletionLimits& limits);
/// The texts of the field `name`, each a text or, with `columns`, the list of its columns.
std::vector<InputText> input_texts(const RequestFields& fields, const CompletionLimits& limits, bool columns,
                                   const char* name = "input");
/// Takes what an answer needs (Scheduler::enter). Throws ApiError 429 where it is not free now, and 400 where it is
/// more than a client ever gets; that error names the field `param` and says to lower `lower`.
std::shared_ptr<void> enter(const Call& call, const Need& need, const char* param, const std::string& lower);
/// Answers with what `body` returns or throws, on the computing thread. Where `body` returns none, it is called again
/// after work of others. `places`: from enter(); they are free once the answer is there.
void answer_later(const Call& call, std::shared_ptr<void> places, std::function<std::optional<HttpAnswer>()> body);

// POST /v1/embeddings, /v1/classify and /v1/fill-mask (text_routes.cpp).
void embed(const Call& call);
void classify(const Call& call);
void fill_mask(const Call& call);

}  // namespace capstan
