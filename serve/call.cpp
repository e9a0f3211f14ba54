#include "serve/call.hpp"

#include "core/base/stop.hpp"
#include "core/strings/join.hpp"

namespace capstan {

using nlohmann::json;

std::shared_ptr<Engine> engine_called(const std::string& name, const Models& models) {
  for (const auto& model : models)
    if (model->name() == name) return model;
  std::vector<std::string> names;
  for (const auto& model : models) names.push_back(model->name());
  throw ApiError(404, fmt::format("there is no model {}; there are: {}", name, join(names, ", ")), "model");
}

/// The model that a request names; without a name, the only one.
std::shared_ptr<Engine> engine_of(const json& body, const Models& models) {
  const auto name = body.is_object() ? body.find("model") : body.end();
  if (name != body.end() && name->is_string()) return engine_called(name->get<std::string>(), models);
  if (name != body.end() && !name->is_null()) throw ApiError(400, "model: expected a text", "model");
  if (models.size() > 1) throw ApiError(400, "model: there are several: name one", "model");
  return models.front();
}

std::shared_ptr<void> enter(const Call& call, int64_t places) {
  if (const int64_t most = call.context.scheduler.most_of_client(); places > most)
    throw ApiError(400, fmt::format("n: {} texts; this server writes at most {} for a client", places, most), "n");
  std::shared_ptr<void> entered = call.context.scheduler.enter(call.request.client, places);
  if (entered == nullptr)
    throw ApiError(429, fmt::format("no room for {} more of this client's texts: try again later", places));
  return entered;
}

void answer_later(const Call& call, std::function<std::optional<HttpAnswer>()> body) {
  call.context.scheduler.add([reply = call.reply, body = std::move(body), places = enter(call, 1)]() mutable {
    if (reply->gone()) return false;
    HttpAnswer answer;
    try {
      std::optional<HttpAnswer> found = body();
      if (!found) return true;
      answer = std::move(*found);
    } catch (const Stopped&) {
      throw;
    } catch (const ApiError& error) {
      answer = error_answer(error);
    } catch (const Error& error) {
      answer = error_answer(ApiError(400, error.what()));
    } catch (const std::exception& error) {
      answer = error_answer(ApiError(500, error.what()));
    }
    places.reset();  // who reads the answer may ask again
    reply->send(std::move(answer));
    return false;
  });
}

}  // namespace capstan
