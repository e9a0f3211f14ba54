// Finds the model that a request names, reserves room for its answer, and hands its work to the scheduler. Room is
// given back before the answer is sent. tests/serve/test_endpoints.cpp and test_clients.cpp.
#include "serve/call.hpp"

#include <algorithm>

#include "core/base/stop.hpp"
#include "core/io/json.hpp"
#include "core/strings/strings.hpp"

namespace capstan {

using nlohmann::json;

std::shared_ptr<Engine> engine_called(const std::string& name, const Models& models) {
  for (const auto& model : models)
    if (model->name() == name) return model;
  std::vector<std::string> names;
  for (const auto& model : models) names.push_back(model->name());
  throw ApiError(404, fmt::format("there is no model {}; there are: {}", json_excerpt(name), join(names, ", ")),
                 "model");
}

std::shared_ptr<Engine> engine_of(const json& body, const Models& models) {
  const auto name = body.is_object() ? body.find("model") : body.end();
  if (name != body.end() && name->is_string()) return engine_called(name->get<std::string>(), models);
  if (name != body.end() && !name->is_null()) throw ApiError(400, "model: expected a text", "model");
  if (models.size() > 1) throw ApiError(400, "model: there are several: name one", "model");
  return models.front();
}

void check_predicts(const Engine& engine, Predicts what) {
  const Predicts own = facts_of(engine.run().config.model).predicts;
  if (own == what) return;
  const char* const path = own == Predicts::next_token      ? "/v1/completions"
                           : own == Predicts::hidden_tokens ? "/v1/fill-mask"
                                                            : "/v1/classify";
  throw ApiError(
      400, fmt::format("the model {} is a {}: ask POST {}", engine.name(), type_of(engine.run().config.model), path),
      "model");
}

std::shared_ptr<void> enter(const Call& call, const Need& need, const char* param, const std::string& lower) {
  const Need most = call.context.scheduler.max_of_client();
  if (need.places > most.places)
    throw ApiError(
        400, fmt::format("n: {} texts; this server writes at most {} for a client", need.places, most.places), "n");
  const int64_t max_bytes = std::min(most.answer_bytes, max_answer_bytes);
  if (need.answer_bytes > max_bytes)
    throw ApiError(400,
                   fmt::format("{}: the answer may have {} MB; this server gives at most {} MB: lower {}", param,
                               (need.answer_bytes >> 20) + 1, max_bytes >> 20, lower),
                   param);
  std::shared_ptr<void> entered = call.context.scheduler.enter(call.request.client, need);
  if (entered == nullptr)
    throw ApiError(429, fmt::format("no room for {} more of this client's texts: try again later", need.places));
  return entered;
}

void answer_later(const Call& call, std::shared_ptr<void> places, std::function<std::optional<HttpAnswer>()> body) {
  const auto work = [reply = call.reply, body = std::move(body), places = std::move(places)]() mutable {
    if (reply->gone()) return false;
    HttpAnswer answer;
    try {
      std::optional<HttpAnswer> ready = body();
      if (!ready) return true;
      answer = std::move(*ready);
    } catch (const Stopped&) {
      throw;
    } catch (const std::exception& error) {
      answer = error_answer(error);
    }
    body = {};
    places.reset();  // first, since a client that has read the answer may ask again at once
    reply->send(std::move(answer));
    return false;
  };
  call.context.scheduler.add(call.request.client, work);
}

}  // namespace capstan
