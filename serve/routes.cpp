#include "serve/routes.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "core/strings/base64.hpp"
#include "core/strings/join.hpp"
#include "run/predictions/completions.hpp"
#include "run/predictions/continuations.hpp"
#include "run/predictions/predictions.hpp"
#include "run/predictions/text_vectors.hpp"

namespace capstan {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// Texts of one request that are computed together: what is written waits for no more.
constexpr size_t texts_at_a_time = 8;
constexpr size_t most_texts = 2048;
constexpr size_t most_ngrams = 20;  // of an explanation

struct Call {
  const HttpRequest& request;
  const std::shared_ptr<HttpReply>& reply;
  const RouteContext& context;
  std::string model = {}, session = {};  // of the path
};

using Handler = void (*)(const Call& call);

struct Route {
  const char* path;  // * stands for any name
  std::vector<std::pair<const char*, Handler>> methods;
};

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t begin = 1; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool matches(const Route& route, const std::vector<std::string>& path) {
  const std::vector<std::string> own = parts_of(route.path);
  return std::equal(own.begin(), own.end(), path.begin(), path.end(),
                    [](const std::string& a, const std::string& b) { return a == "*" || a == b; });
}

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

json body_of(const Call& call) {
  JsonRule rule;
  rule.file = "body";
  rule.depth = 20;
  return parse_json(call.request.body, rule);
}

std::shared_ptr<void> enter(const Call& call, int64_t places) {
  std::shared_ptr<void> entered = call.context.scheduler.enter(call.request.client, places);
  if (entered == nullptr)
    throw ApiError(429, fmt::format("no {} places are free for this client: try again later", places));
  return entered;
}

void complete(const Call& call) {
  const json body = body_of(call);
  const std::shared_ptr<Engine> engine = engine_of(body, call.context.models);
  engine->run().model->that_predicts(Predicts::next_token);
  CompletionRequest request = completion_request(body, engine->run(), call.context.options.engine.weights,
                                                 call.context.options.completion);
  std::shared_ptr<void> places = enter(call, request.texts());
  const auto answer = std::make_shared<CompletionAnswer>(std::move(request), engine, call.reply, std::move(places));
  for (std::shared_ptr<TextJob>& job : answer->jobs()) call.context.scheduler.add(engine, std::move(job));
}

void tokenize(const Call& call) {
  const json body = body_of(call);
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

void detokenize(const Call& call) {
  const json body = body_of(call);
  const RequestFields fields(body, {"model", "tokens"});
  const SavedRun& run = engine_of(body, call.context.models)->run();
  const json* const given = fields.find("tokens");
  if (given == nullptr) fields.refuse("tokens", "expected a list of token ids");
  std::vector<int32_t> tokens = token_ids(*given, model_vocabulary(run.config, *run.tokenizer), fields, "tokens");
  const auto added = [&](int32_t token) { return token >= run.tokenizer->vocabulary_size(); };
  tokens.erase(std::remove_if(tokens.begin(), tokens.end(), added), tokens.end());  // have no text
  call.reply->send(json_answer({{"prompt", run.tokenizer->decode(tokens)}}));
}

/// The texts of a request, each a text or the list of its columns.
std::vector<InputText> input_texts(const RequestFields& fields, const CompletionLimits& limits, bool columns) {
  const json* const given = fields.find("input");
  if (given == nullptr) fields.refuse("input", "expected a text or a list of texts");
  std::vector<InputText> texts;
  for (const json& item : given->is_array() ? *given : json::array({*given})) {
    if (texts.size() == most_texts) fields.refuse("input", fmt::format("at most {} texts", most_texts));
    InputText text;
    text.place = fmt::format("input[{}]", texts.size());
    if (item.is_string()) {
      text.columns = {item.get<std::string>()};
    } else if (columns && item.is_array() && !item.empty() &&
               std::all_of(item.begin(), item.end(), [](const json& part) { return part.is_string(); })) {
      text.columns = item.get<std::vector<std::string>>();
    } else {
      fields.refuse("input", "expected texts, got " + json_excerpt(item));
    }
    text.text = join(text.columns, " ");
    // A token has a byte at least, so that this bounds what is computed.
    if (static_cast<int64_t>(text.text.size()) > 8 * limits.prompt_tokens)
      fields.refuse("input", fmt::format("{} has {} bytes; this server reads at most {}", text.place, text.text.size(),
                                         8 * limits.prompt_tokens));
    texts.push_back(std::move(text));
  }
  if (texts.empty()) fields.refuse("input", "the list must not be empty");
  return texts;
}

/// Answers when body(texts), which adds to the list, is done for all texts, some at a time.
void for_texts(const Call& call, std::vector<InputText> texts,
               std::function<void(const std::vector<InputText>& some, ordered_json& list)> body,
               std::function<ordered_json(ordered_json list)> answer) {
  struct Work {
    std::vector<InputText> texts;
    size_t next = 0;
    ordered_json list = ordered_json::array();
    std::shared_ptr<void> places;
    std::shared_ptr<HttpReply> reply;
  };
  const auto work = std::make_shared<Work>();
  work->places = enter(call, 1);
  work->texts = std::move(texts);
  work->reply = call.reply;
  call.context.scheduler.add([work, body = std::move(body), answer = std::move(answer)] {
    if (work->reply->gone()) return false;
    try {
      const auto at = [&](size_t i) { return work->texts.begin() + static_cast<std::ptrdiff_t>(i); };
      const size_t end = std::min(work->texts.size(), work->next + texts_at_a_time);
      body({at(work->next), at(end)}, work->list);
      work->next = end;
      if (end < work->texts.size()) return true;
      work->places.reset();
      work->reply->send(json_answer(answer(std::move(work->list))));
    } catch (const Stopped&) {
      throw;
    } catch (const Error& error) {
      work->reply->send(error_answer(ApiError(400, error.what())));
    } catch (const std::exception& error) {
      work->reply->send(error_answer(ApiError(500, error.what())));
    }
    return false;
  });
}

void embed(const Call& call) {
  const json body = body_of(call);
  const RequestFields fields(body, {"model", "input", "encoding_format", "dimensions", "user"});
  const std::shared_ptr<Engine> engine = engine_of(body, call.context.models);
  const int64_t width = engine->run().model->stack().config().width;
  const std::string format = fields.text("encoding_format", "float");
  if (format != "float" && format != "base64") fields.refuse("encoding_format", "expected float or base64");
  if (fields.whole("dimensions", width, 1, 1 << 30) != width)
    fields.refuse("dimensions", fmt::format("the vectors of this model have {} elements", width));
  const auto add = [engine, base64 = format == "base64"](const std::vector<InputText>& texts, ordered_json& list) {
    for (const std::vector<float>& vector : vectors_of(engine->run(), texts)) {
      ordered_json embedding = vector;
      if (base64)
        embedding = to_base64({reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float)});
      list.push_back({{"object", "embedding"}, {"index", list.size()}, {"embedding", std::move(embedding)}});
    }
  };
  for_texts(call, input_texts(fields, call.context.options.completion, false), add, [engine](ordered_json list) {
    return ordered_json{{"object", "list"},
                        {"data", std::move(list)},
                        {"model", engine->name()},
                        {"usage", {{"prompt_tokens", 0}, {"total_tokens", 0}}}};
  });
}

/// The n-grams that say most about a label: [{"ngram", "weight"}].
ordered_json ngrams_json(const TextExplanation& explanation, size_t column) {
  std::vector<std::pair<double, std::string>> ngrams;
  for (const TextExplanation::Ngram& ngram : explanation.ngrams) ngrams.emplace_back(ngram.logits[column], ngram.name);
  const size_t shown = std::min(most_ngrams, ngrams.size());
  std::partial_sort(ngrams.begin(), ngrams.begin() + static_cast<std::ptrdiff_t>(shown), ngrams.end(),
                    [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < shown; ++i) list.push_back({{"ngram", ngrams[i].second}, {"weight", ngrams[i].first}});
  return list;
}

ordered_json label_json(const SavedRun& run, const InputText& text, const Prediction& said, bool explain) {
  ordered_json labels = ordered_json::array(), explanation = ordered_json::object();
  const TextExplanation reasons = explain ? explanation_of(run, text) : TextExplanation();
  for (const Guess& label : said.labels) {
    labels.push_back(label.text);
    const auto column = std::find(run.classes.begin(), run.classes.end(), label.text) - run.classes.begin();
    if (explain) explanation[label.text] = ngrams_json(reasons, static_cast<size_t>(column));
  }
  ordered_json one{{"label", labels.empty() ? ordered_json(nullptr) : labels.front()},
                   {"labels", std::move(labels)},
                   {"probs", said.probabilities},
                   {"num_classes", run.classes.size()}};
  if (explain) one["explanation"] = std::move(explanation);
  return one;
}

void classify(const Call& call) {
  const json body = body_of(call);
  const RequestFields fields(body, {"model", "input", "explain", "user"});
  const std::shared_ptr<Engine> engine = engine_of(body, call.context.models);
  engine->run().model->that_predicts(Predicts::classes);
  const bool explain = fields.flag("explain", false);
  if (explain && !facts_of(engine->run().config.model).reads_texts)
    fields.refuse("explain", "only the decisions of a linear-classifier can be explained by n-grams");
  const auto add = [engine, explain](const std::vector<InputText>& texts, ordered_json& list) {
    const std::vector<Prediction> said = predictions_of(engine->run(), texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      ordered_json one = label_json(engine->run(), texts[i], said[i], explain);
      one["index"] = list.size();
      list.push_back(std::move(one));
    }
  };
  for_texts(call, input_texts(fields, call.context.options.completion, true), add, [engine](ordered_json list) {
    return ordered_json{{"object", "list"},
                        {"model", engine->name()},
                        {"classes", engine->run().classes},
                        {"data", std::move(list)}};
  });
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
void with_sessions(const Call& call, const std::function<HttpAnswer(Engine& engine)>& body) {
  const std::shared_ptr<Engine> engine = engine_called(call.model, call.context.models);
  engine->run().model->that_predicts(Predicts::next_token);
  if (!call.session.empty() && !is_plain_name(call.session))
    throw ApiError(400, "a session's name consists of at most 128 letters, digits, hyphens, points and underscores");
  call.context.scheduler.add([engine, reply = call.reply, body, places = enter(call, 1)] {
    try {
      reply->send(body(*engine));
    } catch (const ApiError& error) {
      reply->send(error_answer(error));
    } catch (const Error& error) {
      reply->send(error_answer(ApiError(400, error.what())));
    } catch (const std::exception& error) {
      reply->send(error_answer(ApiError(500, error.what())));
    }
    return false;
  });
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
      {"/v1/models", {{"GET", list_models}}},
      {"/v1/models/*", {{"GET", show_model}}},
      {"/v1/models/*/sessions", {{"GET", list_sessions}}},
      {"/v1/models/*/sessions/*", {{"GET", save_session}, {"PUT", restore_session}, {"DELETE", remove_session}}}};
  return all;
}

Handler handler_of(const HttpRequest& head) {
  const std::vector<std::string> path = parts_of(head.path);
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
    const std::vector<std::string> path = parts_of(request.path);
    if (path.size() > 2) call.model = path[2];
    if (path.size() > 4) call.session = path[4];
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
