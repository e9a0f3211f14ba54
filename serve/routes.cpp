// The table of routes of routes.hpp, with the handlers of those that need a few lines only; the others are in files of
// their own. tests/serve/test_endpoints.cpp asks every path.
#include "serve/routes.hpp"

#include <algorithm>
#include <cstring>

#include "core/io/json.hpp"
#include "core/strings/nearest.hpp"
#include "core/strings/strings.hpp"
#include "run/predictions/pair_completions.hpp"
#include "run/predictions/predictions.hpp"

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

/// What the answer needs. Throws ApiError where a stream would begin with more bytes than a client may leave unread.
Need need_of(const CompletionRequest& request, const Engine& engine) {
  const int64_t echo = request.echo_bytes(engine.name_bytes());
  if (request.stream && echo > max_echo_bytes)
    throw ApiError(
        400,
        fmt::format("echo: a stream would begin with {} MB at once, which is more than {} MB: leave out stream "
                    "or echo, or lower n, logprobs or the prompt",
                    (echo >> 20) + 1, max_echo_bytes >> 20),
        "echo");
  return {request.texts(), request.answer_bytes(engine.name_bytes())};
}

void complete(const Call& call) {
  const json body = body_of(call.request);
  const std::shared_ptr<Engine> engine = engine_of(body, call.context.models);
  check_predicts(*engine, Predicts::next_token);
  CompletionRequest request =
      completion_request(body, engine->run(), call.context.options.engine.weights, call.context.options.completion);
  std::shared_ptr<void> places = enter(call, need_of(request, *engine), request.texts() > 1 ? "n" : "max_tokens",
                                       "n, max_tokens, logprobs or the prompt, or leave out echo or logprobs");
  const auto answer = std::make_shared<CompletionAnswer>(std::move(request), call.request.client, engine, call.reply,
                                                         std::move(places));
  for (std::shared_ptr<TextJob>& job : answer->jobs()) call.context.scheduler.add(engine, std::move(job));
}

/// The tokens of a text as a model reads it, or without what it puts around it. Answered on the reading thread: it
/// computes little.
void tokenize(const Call& call) {
  const json body = body_of(call.request);
  const RequestFields fields(body, {"model", "prompt", "add_special_tokens", "return_token_strs"});
  const SavedRun& run = engine_of(body, call.context.models)->run();
  const std::string text = fields.text("prompt", "");
  check_length("prompt", text, call.context.options.completion);
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
  constexpr std::string_view key = "model=";
  const Models& models = call.context.models;
  std::string name;
  for (const std::string_view field : split(call.request.query, "&"))
    if (starts_with(field, key)) name = percent_decoded(field.substr(key.size()));
  if (name.empty() && models.size() > 1)
    throw ApiError(400, "model: there are several: ask for /tokenizer_info?model=NAME", "model");
  const SavedRun& run = (name.empty() ? models.front() : engine_called(name, models))->run();
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
  const CompletionLimits& limits = call.context.options.completion;
  if (given->is_array() && static_cast<int64_t>(given->size()) > limits.prompt_tokens + limits.new_tokens)
    fields.refuse("tokens", fmt::format("{} ids; this server decodes at most {}", given->size(),
                                        limits.prompt_tokens + limits.new_tokens));
  std::vector<int32_t> tokens = token_ids(*given, model_vocabulary(run.config, *run.tokenizer), fields, "tokens");
  const auto added = [&](int32_t token) { return token >= run.tokenizer->vocabulary_size(); };
  tokens.erase(std::remove_if(tokens.begin(), tokens.end(), added), tokens.end());  // they have no text
  call.reply->send(json_answer({{"prompt", run.tokenizer->decode(tokens)}}));
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
  if (facts_of(run.config.model).predicts == Predicts::hidden_tokens) model["mask_token"] = PredictOptions().blank;
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
  check_predicts(*engine, Predicts::next_token);
  if (!call.session.empty() && !is_plain_name(call.session))
    throw ApiError(400, "a session's name consists of at most 128 letters, digits, hyphens, points and underscores");
  answer_later(call, enter(call, {}, "", ""),
               [engine, body = std::move(body)]() -> std::optional<HttpAnswer> { return body(*engine); });
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

/// All routes. Those without a handler are answered by server.cpp.
const std::vector<Route>& routes() {
  static const std::vector<Route> table{
      {"/", {{"GET", nullptr}}},
      {"/health", {{"GET", nullptr}}},
      {"/metrics", {{"GET", nullptr}}},
      {"/v1/completions", {{"POST", complete}}},
      {"/v1/embeddings", {{"POST", embed}}},
      {"/v1/classify", {{"POST", classify}}},
      {"/v1/fill-mask", {{"POST", fill_mask}}},
      {"/tokenize", {{"POST", tokenize}}},
      {"/detokenize", {{"POST", detokenize}}},
      {"/tokenizer_info", {{"GET", show_tokenizer}}},
      {"/v1/models", {{"GET", list_models}}},
      {"/v1/models/*", {{"GET", show_model}}},
      {"/v1/models/*/sessions", {{"GET", list_sessions}}},
      {"/v1/models/*/sessions/*", {{"GET", save_session}, {"PUT", restore_session}, {"DELETE", remove_session}}}};
  return table;
}

/// Routes of other servers, and what to ask here instead.
const std::pair<const char*, const char*> other_routes[] = {
    {"/v1/chat/completions", "these models continue texts and know no roles: ask POST /v1/completions with a prompt"},
    {"/v1/responses", "ask POST /v1/completions with a prompt"},
    {"/v1/messages", "ask POST /v1/completions with a prompt"},
    {"/api/chat", "ask POST /v1/completions with a prompt"},
    {"/api/generate", "ask POST /v1/completions"},
    {"/generate", "ask POST /v1/completions"},
    {"/api/tags", "ask GET /v1/models"},
    {"/api/embed", "ask POST /v1/embeddings"},
    {"/embed", "ask POST /v1/embeddings"},
    {"/predict", "ask POST /v1/classify"}};

/// What to ask instead of an unknown path, where that is known; else empty.
std::string hint_for(const std::string& path) {
  for (const auto& [other, own] : other_routes)
    if (path == other) return own;
  std::vector<std::string> known;
  for (const Route& route : routes())
    if (std::strchr(route.path, '*') == nullptr) known.emplace_back(route.path);
  for (const std::string& near : {"/v1" + path, path}) {
    const std::string meant = nearest(near, known);
    if (!meant.empty() && meant != "/") return "did you mean " + meant + "?";
  }
  return "";
}

[[noreturn]] void refuse_path(const std::string& path) {
  const std::string hint = hint_for(path);
  throw ApiError(404, fmt::format("there is nothing at {}{}{}", json_excerpt(path), hint.empty() ? "" : ": ", hint));
}

/// HEAD asks for what GET answers, without the body.
bool answers(const char* method, const HttpRequest& head) {
  return head.method == method || (head.method == "HEAD" && std::strcmp(method, "GET") == 0);
}

/// The handler of a request's path and method; null for what the server answers itself. Throws ApiError as
/// check_route().
Handler handler_of(const HttpRequest& head) {
  const std::vector<std::string> path = path_parts(head.path);
  for (const Route& route : routes()) {
    if (!matches(route, path)) continue;
    std::vector<std::string> methods;
    for (const auto& [method, handler] : route.methods) {
      if (answers(method, head)) {
        const bool takes_body = head.method == "POST" || head.method == "PUT";
        if (head.has_body && !takes_body)
          throw ApiError(413, fmt::format("{} {} takes no body", head.method, head.path));
        return handler;
      }
      methods.emplace_back(method);
    }
    if (methods.front() == "GET") methods.emplace_back("HEAD");
    throw ApiError(405, fmt::format("{} has no method {}", head.path, head.method), join(methods, ", "));
  }
  refuse_path(head.path);
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
    const Handler handler = handler_of(request);
    read_from_client([&] { handler(call); });  // what computes is in answer_later()
  } catch (const std::exception& error) {
    reply->send(error_answer(error));
  }
}

}  // namespace capstan
