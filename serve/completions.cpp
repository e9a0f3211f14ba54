#include "serve/completions.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>

#include "core/io/json.hpp"
#include "core/strings/utf8.hpp"
#include "data/batches/text_example.hpp"
#include "run/predictions/completions.hpp"
#include "run/predictions/continuations.hpp"

namespace capstan {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

int64_t random_number() {
  static thread_local std::random_device device;
  return static_cast<int64_t>(device()) << 20 ^ device();
}

/// The prompt of a text, read as `capstan generate` reads it; in a session, as what follows.
CompletionRequest::Prompt prompt_from(const SavedRun& run, const std::string& text, bool continues) {
  CompletionRequest::Prompt prompt;
  prompt.text = text;
  if (continues) {
    prompt.tokens = encode_text({text}, *run.tokenizer, facts_of(run.config.data).text, "prompt");
    return prompt;
  }
  prompt.tokens = prompt_of(run, text, "prompt");
  if (prompt.tokens.empty()) prompt.tokens.push_back(run.tokenizer->start_token());  // something must be read
  prompt.hidden = start_token(run) || text.empty() ? 1 : 0;
  return prompt;
}

CompletionRequest::Prompt prompt_from(const SavedRun& run, std::vector<int32_t> tokens, bool continues) {
  CompletionRequest::Prompt prompt;
  const std::optional<int32_t> start = start_token(run);
  if (!continues && start && tokens.front() != *start) {  // a text begins with it, whoever made the ids
    tokens.insert(tokens.begin(), *start);
    prompt.hidden = 1;
  }
  std::vector<int32_t> known;
  for (size_t i = prompt.hidden; i < tokens.size(); ++i)
    if (tokens[i] < run.tokenizer->vocabulary_size()) known.push_back(tokens[i]);
  prompt.text = run.tokenizer->decode(known);
  prompt.tokens = std::move(tokens);
  return prompt;
}

}  // namespace

CompletionRequest completion_request(const json& body, const SavedRun& run, DecodeWeights weights,
                                     const CompletionLimits& limits) {
  ContinuationOptions continuation;
  CompletionRequest request = completion_fields(body, run.model->model().vocabulary(), limits, continuation);
  continuation.weights = weights;
  request.generation = generation_of(run, continuation);
  request.generation.on_slide = {};
  const bool continues = !request.from.empty();
  if ((continues || !request.keep.empty()) && facts_of(run.config.data).has_pairs)
    throw ApiError(400, "session: a model of pairs writes one target and no more", "session");
  for (CompletionRequest::Prompt& prompt : request.prompts) {
    prompt = prompt.tokens.empty() ? prompt_from(run, prompt.text, continues)
                                   : prompt_from(run, std::move(prompt.tokens), continues);
    if (static_cast<int64_t>(prompt.tokens.size()) > limits.prompt_tokens)
      throw ApiError(400,
                     fmt::format("prompt: it has {} tokens; this server reads at most {}", prompt.tokens.size(),
                                 limits.prompt_tokens),
                     "prompt");
  }
  return request;
}

std::string token_text(const SavedRun& run, int32_t token, int32_t previous) {
  if (token >= run.tokenizer->vocabulary_size())
    return end_of_document(run) == token ? "<|endoftext|>" : "<|separator|>";
  std::string piece = run.tokenizer->piece(token, previous);
  if (is_utf8(piece)) return piece;
  std::string shown = "bytes:";
  for (const unsigned char c : piece) shown += fmt::format("\\x{:02x}", c);
  return shown;
}

CompletionAnswer::CompletionAnswer(CompletionRequest request, std::shared_ptr<Engine> engine,
                                   std::shared_ptr<HttpReply> reply, std::shared_ptr<void> places)
    : request_(std::move(request)),
      engine_(std::move(engine)),
      reply_(std::move(reply)),
      places_(std::move(places)),
      id_(fmt::format("cmpl-{:x}{:x}", random_number(), random_number())),
      created_(std::time(nullptr)),
      choices_(static_cast<size_t>(request_.texts())),
      prompts_(request_.prompts.size()),
      open_(choices_.size()) {}

std::vector<std::shared_ptr<TextJob>> CompletionAnswer::jobs() {
  std::vector<std::shared_ptr<TextJob>> jobs;
  for (size_t i = 0; i < request_.prompts.size(); ++i) {
    auto job = std::make_shared<TextJob>();
    job->tokens = request_.prompts[i].tokens;
    job->samples = request_.samples;
    job->generation = request_.generation;
    job->stop = request_.stop;
    job->likeliest = request_.likeliest;
    job->score_prompt = request_.echo && request_.likeliest >= 0;
    job->from = request_.from;
    job->keep = request_.keep;
    job->on_news = [me = shared_from_this(), i](TextNews news) { me->take(i, std::move(news)); };
    job->on_prompt = [me = shared_from_this(), i](std::vector<ScoredToken> scored) { me->take_prompt(i, scored); };
    job->gone = [me = shared_from_this()] { return me->failed_ || me->reply_->gone(); };
    jobs.push_back(std::move(job));
  }
  return jobs;
}

void CompletionAnswer::take_prompt(size_t prompt, const std::vector<ScoredToken>& scored) {
  prompts_[prompt].insert(prompts_[prompt].end(), scored.begin(), scored.end());
}

void CompletionAnswer::add_token(Choice& choice, int32_t token, const ScoredToken* scored) {
  const std::string name = token_text(engine_->run(), token, choice.previous);
  choice.tokens.push_back(name);
  choice.offsets.push_back(choice.offset);
  choice.values.push_back(scored != nullptr ? ordered_json(scored->log_probability) : ordered_json(nullptr));
  ordered_json likeliest;
  if (scored != nullptr) {
    likeliest = ordered_json::object();
    for (const auto& [other, value] : scored->likeliest)
      likeliest[token_text(engine_->run(), other, choice.previous)] = value;
    likeliest[name] = scored->log_probability;
  }
  choice.likeliest.push_back(std::move(likeliest));
  const bool known = token < engine_->run().tokenizer->vocabulary_size();
  if (known)
    for (const unsigned char c : engine_->run().tokenizer->piece(token, choice.previous))
      choice.offset += (c & 0xC0) != 0x80 ? 1 : 0;
  choice.previous = known ? token : -1;
}

/// With echo, a text begins with its prompt.
void CompletionAnswer::begin(Choice& choice, size_t prompt) {
  choice.begun = true;
  const CompletionRequest::Prompt& given = request_.prompts[prompt];
  if (!request_.echo) {
    const int32_t last = given.tokens.empty() ? -1 : given.tokens.back();
    choice.previous = last < engine_->run().tokenizer->vocabulary_size() ? last : -1;
    return;
  }
  choice.text = given.text;
  if (request_.likeliest < 0) return;
  for (size_t at = given.hidden; at < given.tokens.size(); ++at)
    add_token(choice, given.tokens[at], at > 0 && at <= prompts_[prompt].size() ? &prompts_[prompt][at - 1] : nullptr);
}

void CompletionAnswer::take(size_t prompt, TextNews news) {
  if (failed_) return;
  if (news.end == TextNews::End::error) {
    failed_ = true;
    const ApiError error(news.status, news.error);
    if (streamed_) {
      reply_->stream("data: " + text_of(error_json(error)) + "\n\n");
      reply_->end_stream();
    } else {
      reply_->send(error_answer(error));
    }
    places_.reset();
    return;
  }
  const size_t index = prompt * static_cast<size_t>(request_.samples) + static_cast<size_t>(news.sample);
  Choice& choice = choices_[index];
  if (!choice.begun) begin(choice, prompt);
  choice.text += news.text;
  for (const ScoredToken& token : news.scored) add_token(choice, token.token, &token);
  written_ += news.tokens;
  if (news.end != TextNews::End::none) {
    choice.end = news.end == TextNews::End::stop ? "stop" : "length";
    --open_;
  }
  if (request_.stream && (!choice.text.empty() || !choice.tokens.empty() || choice.end != nullptr)) {
    streamed_ = true;
    reply_->stream("data: " + text_of(envelope(ordered_json::array({json_of(index, choice)}))) + "\n\n");
    choice.text.clear();
    choice.tokens = choice.values = choice.likeliest = choice.offsets = ordered_json::array();
  }
  if (open_ == 0) finish();
}

ordered_json CompletionAnswer::json_of(size_t index, Choice& choice) const {
  ordered_json logprobs;
  if (request_.likeliest >= 0)
    logprobs = {{"tokens", std::move(choice.tokens)},
                {"token_logprobs", std::move(choice.values)},
                {"top_logprobs", std::move(choice.likeliest)},
                {"text_offset", std::move(choice.offsets)}};
  return {{"index", index},
          {"text", choice.text},
          {"logprobs", std::move(logprobs)},
          {"finish_reason", choice.end != nullptr ? ordered_json(choice.end) : ordered_json(nullptr)}};
}

ordered_json CompletionAnswer::envelope(ordered_json choices) const {
  return {{"id", id_},
          {"object", "text_completion"},
          {"created", created_},
          {"model", engine_->name()},
          {"seed", request_.seed},
          {"choices", std::move(choices)}};
}

ordered_json CompletionAnswer::usage() const {
  int64_t read = 0;
  for (const CompletionRequest::Prompt& prompt : request_.prompts) read += static_cast<int64_t>(prompt.tokens.size());
  return {{"prompt_tokens", read}, {"completion_tokens", written_}, {"total_tokens", read + written_}};
}

void CompletionAnswer::finish() {
  places_.reset();  // whoever reads the answer may ask again
  if (request_.stream) {
    if (request_.stream_usage) {
      ordered_json last = envelope(ordered_json::array());
      last["usage"] = usage();
      reply_->stream("data: " + text_of(last) + "\n\n");
    }
    reply_->stream("data: [DONE]\n\n");
    return reply_->end_stream();
  }
  ordered_json choices = ordered_json::array();
  for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(json_of(i, choices_[i]));
  ordered_json answer = envelope(std::move(choices));
  answer["usage"] = usage();
  reply_->send(json_answer(answer));
}

}  // namespace capstan
