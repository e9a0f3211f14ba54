// The table of routes of routes.hpp, with the handlers of those that need a few lines only; the others are in files of
// their own. tests/serve/test_endpoints.cpp asks every path.
#include "serve/routes.hpp"

#include "core/io/json.hpp"
#include "core/strings/strings.hpp"

namespace capstan {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

struct Route {
  std::string_view method;
  std::string_view path;  // model_path: with any name behind it
  Handler handler;
};

constexpr std::string_view model_path = "/v1/models/";  // with a model's name

bool matches(const Route& route, const std::string& path) {
  return path == route.path || (route.path == model_path && starts_with(path, model_path));
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
  const std::string name = percent_decoded(call.request.path.substr(model_path.size()));
  call.reply->send(json_answer(model_json(*engine_called(name, call.models))));
}

/// All routes. Those without a handler are answered by server.cpp.
constexpr Route routes[] = {{"GET", "/", nullptr},
                            {"GET", "/health", nullptr},
                            {"POST", "/v1/completions", complete},
                            {"POST", "/v1/embeddings", embed},
                            {"POST", "/v1/classify", classify},
                            {"POST", "/tokenize", tokenize},
                            {"POST", "/detokenize", detokenize},
                            {"GET", "/tokenizer_info", show_tokenizer},
                            {"GET", "/v1/models", list_models},
                            {"GET", model_path, show_model}};

/// The handler of a request's path and method; null for what the server answers itself. Throws ApiError as
/// check_route().
Handler handler_of(const HttpRequest& head) {
  for (const Route& route : routes) {
    if (!matches(route, head.path)) continue;
    // HEAD asks for what GET answers, without the body.
    if (head.method != route.method && !(head.method == "HEAD" && route.method == "GET"))
      throw ApiError(405, fmt::format("{} is for {}, not for {}", head.path, route.method, head.method));
    return route.handler;
  }
  throw ApiError(404, fmt::format("there is nothing at {}: ask POST /v1/completions, which continues a prompt, POST "
                                  "/v1/classify, POST /v1/embeddings or GET /v1/models",
                                  json_excerpt(head.path)));
}

}  // namespace

void check_route(const HttpRequest& head) { handler_of(head); }

void answer_route(const Call& call) {
  try {
    const Handler handler = handler_of(call.request);
    read_from_client([&] { handler(call); });  // what computes is work of the scheduler
  } catch (const std::exception& error) {
    call.reply->send(error_answer(error));
  }
}

}  // namespace capstan
