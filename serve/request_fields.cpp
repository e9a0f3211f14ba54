// Reads the fields of requests and checks their limits, before a model is asked anything: the functions of call.hpp and
// completions.hpp that read bodies. tests/serve/test_endpoints.cpp, tests/fuzz/fuzz_request.cpp.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "core/io/json.hpp"
#include "core/strings/strings.hpp"
#include "serve/call.hpp"
#include "serve/completions.hpp"

namespace capstan {

using nlohmann::json;

namespace {

constexpr size_t max_texts = 2048;  // of one request, to embed or classify

void read_prompts(CompletionRequest& request, const RequestFields& fields, int64_t vocabulary,
                  const CompletionLimits& limits) {
  const json* const given = fields.find("prompt");
  const bool several = given != nullptr && given->is_array() && !given->empty() && !given->front().is_number();
  if (several && static_cast<int64_t>(given->size()) > limits.texts)
    fields.refuse("prompt", fmt::format("at most {} prompts in a request", limits.texts));
  const auto add = [&](const json& item) {
    CompletionRequest::Prompt& prompt = request.prompts.emplace_back();
    if (item.is_string()) {
      prompt.text = item.get<std::string>();
      return;
    }
    if (item.is_array() && static_cast<int64_t>(item.size()) > limits.prompt_tokens)
      fields.refuse("prompt",
                    fmt::format("it has {} tokens; this server reads at most {}", item.size(), limits.prompt_tokens));
    prompt.tokens = token_ids(item, vocabulary, fields, "prompt");
    if (prompt.tokens.empty()) fields.refuse("prompt", "a list of token ids must not be empty");
  };
  if (several)
    for (const json& item : *given) add(item);
  else
    add(given != nullptr ? *given : json(""));
}

/// {"17": -100, ...}: what is added to the logits of tokens.
std::map<int32_t, double> read_logit_bias(const RequestFields& fields, int64_t vocabulary) {
  constexpr const char* name = "logit_bias";
  std::map<int32_t, double> biases;
  const json* const given = fields.find(name);
  if (given == nullptr) return biases;
  if (!given->is_object()) fields.refuse(name, "expected an object of token ids and numbers");
  for (const auto& [key, bias] : given->items()) {
    const auto token = parse_integer(key);
    if (!token || *token < 0 || *token >= vocabulary)
      fields.refuse(name, fmt::format("expected token ids from 0 to {}, got {}", vocabulary - 1, json_excerpt(key)));
    if (!bias.is_number() || !(std::abs(bias.get<double>()) <= 100))
      fields.refuse(name, "expected numbers from -100 to 100, got " + json_excerpt(bias));
    biases[static_cast<int32_t>(*token)] = bias.get<double>();
  }
  return biases;
}

void read_session(CompletionRequest& request, const RequestFields& fields) {
  const json* const given = fields.find("session");
  if (given == nullptr) return;
  const RequestFields session(*given, "from keep", "session");
  request.job.from = session.text("from", "");
  request.job.keep = session.text("keep", "");
  for (const auto& [field, name] : {std::pair{"from", request.job.from}, std::pair{"keep", request.job.keep}})
    if (session.find(field) != nullptr && !is_plain_name(name))
      session.refuse(field, "expected a name of at most 128 letters, digits, hyphens, points and underscores");
}

/// Refuses fields that do not go together.
void check_together(const CompletionRequest& request, const RequestFields& fields, const CompletionLimits& limits) {
  if (request.texts() > limits.texts)
    fields.refuse("n",
                  fmt::format("{} texts; this server writes at most {} for a request", request.texts(), limits.texts));
  if (!request.job.keep.empty() && request.texts() > 1) fields.refuse("session", "keep needs one prompt and n = 1");
  if (!request.job.from.empty() && request.prompts.size() > 1) fields.refuse("session", "from needs one prompt");
  if (!request.job.from.empty() && request.job.score_prompt)
    fields.refuse("echo", "the text of a session has no probabilities any more: leave out echo or logprobs");
  for (const std::string& stop : request.job.stop)
    if (stop.empty()) fields.refuse("stop", "the text must not be empty");
}

}  // namespace

json body_of(const HttpRequest& request) {
  if (starts_with(request.body, "\x1f\x8b"))
    throw ApiError(400, "body: it is packed by gzip, which this server does not unpack: send the JSON as it is");
  JsonRule rule;
  rule.file = "body";
  rule.depth = 20;
  return parse_json(request.body, rule);
}

void check_length(const std::string& place, const std::string& text, const CompletionLimits& limits) {
  // A token has at least one byte, so that a bound on bytes bounds what is computed. Few tokens have more than eight.
  const auto most = 8 * limits.prompt_tokens;
  if (static_cast<int64_t>(text.size()) > most)
    throw ApiError(400, fmt::format("{}: it has {} bytes; this server reads at most {}", place, text.size(), most),
                   place.substr(0, place.find('[')));
}

std::vector<InputText> input_texts(const RequestFields& fields, const CompletionLimits& limits, bool columns) {
  constexpr const char* name = "input";
  const json* const given = fields.find(name);
  if (given == nullptr) fields.refuse(name, "expected a text or a list of texts");
  std::vector<InputText> texts;
  const json single = given->is_array() ? json() : json::array({*given});
  for (const json& item : given->is_array() ? *given : single) {
    if (texts.size() == max_texts) fields.refuse(name, fmt::format("at most {} texts", max_texts));
    InputText text;
    text.place = fmt::format("{}[{}]", name, texts.size());
    const json row = columns && item.is_array() ? item : json::array({item});
    if (row.empty() || !std::all_of(row.begin(), row.end(), [](const json& part) { return part.is_string(); }))
      fields.refuse(name, "expected texts, got " + json_excerpt(item));
    text.columns = row.get<std::vector<std::string>>();
    text.text = join(text.columns, " ");
    check_length(text.place, text.text, limits);
    texts.push_back(std::move(text));
  }
  if (texts.empty()) fields.refuse(name, "the list must not be empty");
  return texts;
}

CompletionRequest completion_fields(const json& body, int64_t vocabulary, const CompletionLimits& limits) {
  const RequestFields fields(body,
                             "model prompt max_tokens n temperature top_p top_k min_p repetition_penalty seed stop "
                             "stream stream_options logprobs echo session user suffix presence_penalty "
                             "frequency_penalty logit_bias");
  // Clients send it with its default.
  fields.neutral("suffix");
  CompletionRequest request;
  request.job.samples = fields.whole("n", 1, 1, limits.texts);
  request.job.likeliest = fields.whole("logprobs", -1, 0, 20);
  request.echo = fields.flag("echo", false);
  request.stream = fields.flag("stream", false);
  request.job.score_prompt = request.echo && request.job.likeliest >= 0;
  if (const json* const options = fields.find("stream_options"))
    request.stream_usage =
        RequestFields(*options, "include_usage include_obfuscation", "stream_options").flag("include_usage", false);
  request.job.stop = fields.texts("stop", 16);
  request.job.max_tokens = fields.whole("max_tokens", 16, 0, limits.new_tokens);
  SamplingConfig& sampling = request.job.sampling;
  sampling.temperature = fields.number("temperature", 1, 0, 100);
  sampling.top_p = fields.number("top_p", 1, 0, 1);
  sampling.min_p = fields.number("min_p", 0, 0, 1);
  sampling.top_k = std::max<int64_t>(0, fields.whole("top_k", 0, -1, 1 << 30));
  sampling.repetition_penalty = fields.number("repetition_penalty", 1, 1e-3, 1e3);
  sampling.frequency_penalty = fields.number("frequency_penalty", 0, -2, 2);
  sampling.presence_penalty = fields.number("presence_penalty", 0, -2, 2);
  sampling.logit_bias = read_logit_bias(fields, vocabulary);
  sampling.seed = fields.whole("seed", drawn_number(), 0, std::numeric_limits<int64_t>::max());
  read_session(request, fields);
  read_prompts(request, fields, vocabulary, limits);
  check_together(request, fields, limits);
  return request;
}

}  // namespace capstan
