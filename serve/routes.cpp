#include "serve/routes.hpp"

#include <algorithm>

#include "core/strings/join.hpp"
#include "run/predictions/completions.hpp"

namespace capstan {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

struct Route {
  const char* path;  // * stands for any name
  std::vector<std::pair<const char*, Handler>> methods;
};

bool matches(const Route& route, const std::vector<std::string>& path) {
  const std::vector<std::string> own = path_parts(route.path);
  return std::equal(own.begin(), own.end(), path.begin(), path.end(),
                    [](const std::string& a, const std::string& b) { return a == "*" || a == b; });
}

void complete(const Call& call) {
  const json body = body_of(call.request);
  const std::shared_ptr<Engine> engine = engine_of(body, call.context.models);
  engine->run().model->that_predicts(Predicts::next_token);
  CompletionRequest request =
      completion_request(body, engine->run(), call.context.options.engine.weights, call.context.options.completion);
  std::shared_ptr<void> places = enter(call, request.texts());
  const auto answer = std::make_shared<CompletionAnswer>(std::move(request), engine, call.reply, std::move(places));
  for (std::shared_ptr<TextJob>& job : answer->jobs()) call.context.scheduler.add(engine, std::move(job));
}

void tokenize(const Call& call) {
  const json body = body_of(call.request);
  const RequestFields fields(body, {"model", "prompt", "add_special_tokens", "return_token_strs"});
  const SavedRun& run = engine_of(body, call.context.models)->run();
  const std::string text = fields.text("prompt", "");
  const std::vector<int32_t> tokens =
      fields.flag("add_special_tokens", true) ? prompt_of(run, text, "prompt") : run.tokenizer->encode(text, "prompt");
  ordered_json answer{{"tokens", tokens}, {"count", tokens.size()}};
  if (const auto limit = run.model->position_limit()) answer["max_model_len"] = *limit;
  if (fields.flag("return_token_strs", false)) {
    ordered_json names = ordered_json::array();
    for (size_t i = 0; i < tokens.size(); ++i) {
      const int32_t previous = i > 0 && tokens[i - 1] < run.tokenizer->vocabulary_size() ? tokens[i - 1] : -1;
      names.push_back(token_text(run, tokens[i], previous));
    }
    answer["token_strs"] = std::move(names);
  }
  call.reply->send(json_answer(answer));
}

/// What lm-eval asks of a tokenizer on a server: the text of the token that a text begins with, where it has one.
void show_tokenizer(const Call& call) {
  const SavedRun& run = engine_of(json(), call.context.models)->run();
  const std::optional<int32_t> start = start_token(run);
  ordered_json begins;
  if (start && *start < run.tokenizer->vocabulary_size()) begins = run.tokenizer->piece(*start, -1);
  call.reply->send(json_answer({{"tokenizer_class", run.tokenizer->kind()},
                                {"vocab_size", run.tokenizer->vocabulary_size()},
                                {"bos_token", begins},
                                {"eos_token", begins},
                                {"chat_template", nullptr}}));
}

void detokenize(const Call& call) {
  const json body = body_of(call.request);
  const RequestFields fields(body, {"model", "tokens"});
  const SavedRun& run = engine_of(body, call.context.models)->run();
  const json* const given = fields.find("tokens");
  if (given == nullptr) fields.refuse("tokens", "expected a list of token ids");
  std::vector<int32_t> tokens = token_ids(*given, model_vocabulary(run.config, *run.tokenizer), fields, "tokens");
  const auto added = [&](int32_t token) { return token >= run.tokenizer->vocabulary_size(); };
  tokens.erase(std::remove_if(tokens.begin(), tokens.end(), added), tokens.end());  // have no text
  call.reply->send(json_answer({{"prompt", run.tokenizer->decode(tokens)}}));
}

ordered_json model_json(const Engine& engine) {
  const SavedRun& run = engine.run();
  ordered_json model{{"id", engine.name()},
                     {"object", "model"},
                     {"created", 0},
                     {"owned_by", "capstan"},
                     {"type", type_of(run.config.model)},
                     {"parameters", run.model->params().count()}};
  if (const auto limit = run.model->position_limit()) model["max_model_len"] = *limit;
  if (!run.classes.empty()) model["classes"] = run.classes;
  if (facts_of(run.config.model).reads_texts) model["explains"] = true;
  if (!engine.writes()) return model;
  ordered_json mixers = ordered_json::array();
  for (const LayerConfig& layer : expanded_layers(run.model->stack().config()))
    mixers.push_back(std::visit([](const auto& mixer) { return std::string(mixer.type_name); }, layer.mixer));
  model["mixers"] = std::move(mixers);
  for (const int64_t tokens : {256, 8192}) model["state_bytes"][std::to_string(tokens)] = engine.state_bytes_at(tokens);
  return model;
}

void list_models(const Call& call) {
  ordered_json list = ordered_json::array();
  for (const auto& model : call.context.models) list.push_back(model_json(*model));
  call.reply->send(json_answer({{"object", "list"}, {"data", std::move(list)}}));
}

void show_model(const Call& call) {
  call.reply->send(json_answer(model_json(*engine_called(call.model, call.context.models))));
}

/// Answers with what `body` returns, on the computing thread, to which the sessions belong.
void with_sessions(const Call& call, std::function<HttpAnswer(Engine& engine)> body) {
  const std::shared_ptr<Engine> engine = engine_called(call.model, call.context.models);
  engine->run().model->that_predicts(Predicts::next_token);
  if (!call.session.empty() && !is_plain_name(call.session))
    throw ApiError(400, "a session's name consists of at most 128 letters, digits, hyphens, points and underscores");
  answer_later(call, [engine, body = std::move(body)]() -> std::optional<HttpAnswer> { return body(*engine); });
}

HttpAnswer no_session(const std::string& name) {
  return error_answer(ApiError(404, fmt::format("there is no session {}", name)));
}

void list_sessions(const Call& call) {
  with_sessions(call, [](Engine& engine) {
    ordered_json list = ordered_json::array();
    engine.cache().for_each_session([&](const std::string& name, const Snapshot& snapshot) {
      list.push_back({{"id", name}, {"object", "session"}, {"tokens", snapshot.tokens()}, {"bytes", snapshot.bytes}});
    });
    return json_answer({{"object", "list"}, {"data", std::move(list)}});
  });
}

void save_session(const Call& call) {
  with_sessions(call, [name = call.session](Engine& engine) {
    std::string bytes = engine.saved_session(name);
    return bytes.empty() ? no_session(name) : HttpAnswer{200, std::move(bytes), "application/octet-stream"};
  });
}

void restore_session(const Call& call) {
  with_sessions(call, [name = call.session, bytes = call.request.body](Engine& engine) {
    engine.restore_session(name, bytes);
    return json_answer({{"id", name}, {"object", "session"}, {"tokens", engine.cache().session(name)->tokens()}});
  });
}

void remove_session(const Call& call) {
  with_sessions(call, [name = call.session](Engine& engine) {
    if (!engine.cache().remove_session(name)) return no_session(name);
    return json_answer({{"id", name}, {"object", "session"}, {"deleted", true}});
  });
}

/// Without a handler: what the server answers itself.
const std::vector<Route>& routes() {
  static const std::vector<Route> all{
      {"/", {{"GET", nullptr}}},
      {"/health", {{"GET", nullptr}}},
      {"/metrics", {{"GET", nullptr}}},
      {"/v1/completions", {{"POST", complete}}},
      {"/v1/embeddings", {{"POST", embed}}},
      {"/v1/classify", {{"POST", classify}}},
      {"/tokenize", {{"POST", tokenize}}},
      {"/detokenize", {{"POST", detokenize}}},
      {"/tokenizer_info", {{"GET", show_tokenizer}}},
      {"/v1/models", {{"GET", list_models}}},
      {"/v1/models/*", {{"GET", show_model}}},
      {"/v1/models/*/sessions", {{"GET", list_sessions}}},
      {"/v1/models/*/sessions/*", {{"GET", save_session}, {"PUT", restore_session}, {"DELETE", remove_session}}}};
  return all;
}

Handler handler_of(const HttpRequest& head) {
  const std::vector<std::string> path = path_parts(head.path);
  for (const Route& route : routes()) {
    if (!matches(route, path)) continue;
    std::vector<std::string> methods;
    for (const auto& [method, handler] : route.methods) {
      if (head.method == method) return handler;
      methods.emplace_back(method);
    }
    throw ApiError(405, fmt::format("{} has no method {}", head.path, head.method), join(methods, ", "));
  }
  throw ApiError(404, fmt::format("there is nothing at {}", head.path));
}

}  // namespace

void check_route(const HttpRequest& head) { handler_of(head); }

bool is_open_route(const HttpRequest& head) { return head.path == "/" || head.path == "/health"; }

void answer_route(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply, const RouteContext& context) {
  try {
    Call call{request, reply, context};
    const std::vector<std::string> path = path_parts(request.path);
    if (path.size() > 2) call.model = percent_decoded(path[2]);
    if (path.size() > 4) call.session = percent_decoded(path[4]);
    handler_of(request)(call);
  } catch (const ApiError& error) {
    reply->send(error_answer(error));
  } catch (const Error& error) {  // of what the request asks for
    reply->send(error_answer(ApiError(400, error.what())));
  } catch (const std::exception& error) {
    reply->send(error_answer(ApiError(500, error.what())));
  }
}

}  // namespace capstan
