// The table of routes of routes.hpp, with the handlers of those that need a few lines only; the others are in files of
// their own. tests/serve/test_endpoints.cpp asks every path.
#include "serve/routes.hpp"

#include <algorithm>

#include "core/io/json.hpp"
#include "run/predictions/pair_completions.hpp"

namespace capstan {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

struct Route {
  std::string_view method;
  const char* path;  // * stands for any name
  Handler handler;
};

bool matches(const Route& route, const std::vector<std::string>& path) {
  const std::vector<std::string> own = path_parts(route.path);
  return std::equal(own.begin(), own.end(), path.begin(), path.end(),
                    [](const std::string& a, const std::string& b) { return a == "*" || a == b; });
}

void complete(const Call& call) {
  const json body = body_of(call.request);
  const std::shared_ptr<Engine> engine = engine_of(body, call.models);
  check_predicts(*engine, Predicts::next_token);
  CompletionRequest request =
      completion_request(body, engine->run(), call.options.engine.weights, call.options.completion);
  request.job.client = call.request.client;
  auto part = enter(call, request.texts());
  const auto answer = std::make_shared<CompletionAnswer>(std::move(request), engine, call.reply, std::move(part));
  for (const auto& job : answer->jobs()) call.scheduler.add(engine, job);
}

/// The tokens of a text as a model reads it, or without what it puts around it.
void tokenize(const Call& call) {
  const json body = body_of(call.request);
  const RequestFields fields(body, "model prompt add_special_tokens");
  const SavedRun& run = engine_of(body, call.models)->run();
  const std::string text = fields.text("prompt", "");
  check_length("prompt", text, call.options.completion);
  const std::vector<int32_t> tokens =
      fields.flag("add_special_tokens", true) ? prompt_of(run, text, "prompt") : run.tokenizer->encode(text, "prompt");
  ordered_json answer{{"tokens", tokens}, {"count", tokens.size()}};
  if (const auto limit = run.model->position_limit()) answer["max_model_len"] = *limit;
  call.reply->send(json_answer(answer));
}

/// What lm-eval asks of a tokenizer on a server: the text of the token that a text begins with, where it has one.
void show_tokenizer(const Call& call) {
  const SavedRun& run = engine_of(json(), call.models)->run();
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
  const RequestFields fields(body, "model tokens");
  const SavedRun& run = engine_of(body, call.models)->run();
  const json* const given = fields.find("tokens");
  if (given == nullptr) fields.refuse("tokens", "expected a list of token ids");
  const CompletionLimits& limits = call.options.completion;
  if (given->is_array() && static_cast<int64_t>(given->size()) > limits.prompt_tokens + limits.new_tokens)
    fields.refuse("tokens", fmt::format("{} ids; this server decodes at most {}", given->size(),
                                        limits.prompt_tokens + limits.new_tokens));
  const std::vector<int32_t> tokens = token_ids(*given, model_vocabulary(run.config, *run.tokenizer), fields, "tokens");
  call.reply->send(json_answer({{"prompt", text_of_tokens(run, tokens)}}));
}

/// A model as GET /v1/models shows it. `state_bytes` lets a client compare systems: what a text takes after so many
/// tokens.
ordered_json model_json(const Engine& engine) {
  const SavedRun& run = engine.run();
  ordered_json model{{"id", engine.name()},
                     {"object", "model"},
                     {"created", 0},  // clients of OpenAI's API expect the key
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
  for (const auto& model : call.models) list.push_back(model_json(*model));
  call.reply->send(json_answer({{"object", "list"}, {"data", std::move(list)}}));
}

void show_model(const Call& call) {
  call.reply->send(json_answer(model_json(*engine_called(call.model, call.models))));
}

/// The model of the path, whose session the path names.
Engine& engine_of_session(const Call& call) {
  Engine& engine = *engine_called(call.model, call.models);
  check_predicts(engine, Predicts::next_token);
  if (!is_plain_name(call.session))
    throw ApiError(400, "a session's name consists of at most 128 letters, digits, hyphens, points and underscores");
  return engine;
}

void save_session(const Call& call) {
  std::string bytes = engine_of_session(call).saved_session(call.session);
  if (bytes.empty()) throw ApiError(404, fmt::format("there is no session {}", call.session));
  call.reply->send({200, std::move(bytes), "application/octet-stream"});
}

void restore_session(const Call& call) {
  const int64_t tokens = engine_of_session(call).restore_session(call.session, call.request.body);
  call.reply->send(json_answer({{"id", call.session}, {"object", "session"}, {"tokens", tokens}}));
}

/// All routes. Those without a handler are answered by server.cpp.
constexpr Route routes[] = {{"GET", "/", nullptr},
                            {"GET", "/health", nullptr},
                            {"GET", "/metrics", nullptr},
                            {"POST", "/v1/completions", complete},
                            {"POST", "/v1/embeddings", embed},
                            {"POST", "/v1/classify", classify},
                            {"POST", "/tokenize", tokenize},
                            {"POST", "/detokenize", detokenize},
                            {"GET", "/tokenizer_info", show_tokenizer},
                            {"GET", "/v1/models", list_models},
                            {"GET", "/v1/models/*", show_model},
                            {"GET", "/v1/models/*/sessions/*", save_session},
                            {"PUT", "/v1/models/*/sessions/*", restore_session}};

/// The handler of a request's path and method; null for what the server answers itself. Throws ApiError as
/// check_route().
Handler handler_of(const HttpRequest& head) {
  const std::vector<std::string> path = path_parts(head.path);
  std::string methods;
  for (const Route& route : routes) {
    if (!matches(route, path)) continue;
    // HEAD asks for what GET answers, without the body.
    if (head.method != route.method && !(head.method == "HEAD" && route.method == "GET")) {
      methods += (methods.empty() ? "" : ", ") + std::string(route.method);
      continue;
    }
    if (head.has_body && route.method == "GET")
      throw ApiError(413, fmt::format("{} {} takes no body", head.method, head.path));
    return route.handler;
  }
  if (!methods.empty()) throw ApiError(405, fmt::format("{} has no method {}", head.path, head.method), methods);
  throw ApiError(404, fmt::format("there is nothing at {}: ask POST /v1/completions, which continues a prompt, POST "
                                  "/v1/classify, POST /v1/embeddings or GET /v1/models",
                                  json_excerpt(head.path)));
}

}  // namespace

void check_route(const HttpRequest& head) { handler_of(head); }

bool is_open_route(const HttpRequest& head) { return head.path == "/" || head.path == "/health"; }

void answer_route(Call call) {
  try {
    const std::vector<std::string> path = path_parts(call.request.path);
    if (path.size() > 2) call.model = percent_decoded(path[2]);
    if (path.size() > 4) call.session = percent_decoded(path[4]);
    const Handler handler = handler_of(call.request);
    read_from_client([&] { handler(call); });  // what computes is work of the scheduler
  } catch (const std::exception& error) {
    call.reply->send(error_answer(error));
  }
}

}  // namespace capstan
