// Finds the model that a request names, and takes room for its answer. tests/serve/test_endpoints.cpp and
// test_clients.cpp.
#include "serve/call.hpp"

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
  const TaskConfig& model = engine.run().config.model;
  if (facts_of(model).predicts != what)
    throw ApiError(400, fmt::format("the model {} is a {}: ask another path", engine.name(), type_of(model)), "model");
}

std::shared_ptr<Room::Part> enter(const Call& call, int64_t places) {
  const int64_t most = call.room.max_of_client().places;
  if (places > most)
    throw ApiError(400, fmt::format("n: {} texts; this server writes at most {} for a client", places, most), "n");
  auto part = call.room.enter(call.request.client, {places, 0});
  if (part == nullptr)
    throw ApiError(429, fmt::format("no room for {} more of this client's texts: try again later", places));
  return part;
}

}  // namespace capstan
