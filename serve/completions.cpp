// An answer is written as text of JSON while tokens come, since values of JSON would take ten times the memory, and is
// bounded while it grows. tests/serve/test_endpoints.cpp.
#include "serve/completions.hpp"

#include <ctime>
#include <random>

#include "core/io/json.hpp"
#include "data/batches/text_example.hpp"
#include "run/predictions/completions.hpp"

namespace capstan {

using nlohmann::json;
using nlohmann::ordered_json;

int64_t drawn_number() {
  static thread_local std::random_device device;
  return static_cast<int64_t>(device()) << 20 ^ device();
}

namespace {

/// The most bytes of prompts that a stream repeats at once. It is below the 4 MB unread for which a client is dropped
/// (serve/http/connection.cpp).
constexpr int64_t max_echo_bytes = 3 << 20;

/// Turns the prompt's text into tokens, as `capstan generate` does, or its tokens into a text. `continues`: it follows
/// the text of a session.
void complete_prompt(const SavedRun& run, CompletionRequest::Prompt& prompt, bool continues) {
  const std::optional<int32_t> start = start_token(run);
  std::vector<int32_t>& tokens = prompt.tokens;
  if (!tokens.empty()) {
    if (!continues && start && tokens.front() != *start) {  // ids that another program made may lack the start
      tokens.insert(tokens.begin(), *start);
      prompt.hidden = 1;
    }
    prompt.text = text_of_tokens(run, tokens, prompt.hidden);
  } else if (continues) {
    tokens = encode_text({prompt.text}, *run.tokenizer, facts_of(run.config.data).text, "prompt");
  } else {
    tokens = prompt_of(run, prompt.text, "prompt");
    if (tokens.empty()) tokens.push_back(run.tokenizer->start_token());  // a model predicts only after a token
    prompt.hidden = start || prompt.text.empty() ? 1 : 0;
  }
}

}  // namespace

CompletionRequest completion_request(const json& body, const SavedRun& run, DecodeWeights weights,
                                     const CompletionLimits& limits) {
  CompletionRequest request = completion_fields(body, run.model->model().vocabulary(), limits);
  static_cast<GenerateOptions&>(request.job) = generation_of(run, request.job);
  request.job.weights = weights;
  request.job.on_slide = {};
  const bool continues = !request.job.from.empty();
  if ((continues || !request.job.keep.empty()) && facts_of(run.config.data).has_pairs)
    throw ApiError(400, "session: a model of pairs writes one target and no more", "session");
  for (CompletionRequest::Prompt& prompt : request.prompts) {
    complete_prompt(run, prompt, continues);
    if (static_cast<int64_t>(prompt.tokens.size()) > limits.prompt_tokens)
      throw ApiError(400,
                     fmt::format("prompt: it has {} tokens; this server reads at most {}", prompt.tokens.size(),
                                 limits.prompt_tokens),
                     "prompt");
    // Offsets of tokens are those in this text: of an unknown word, it has what the tokenizer calls it.
    if (request.job.score_prompt) prompt.text = text_of_tokens(run, prompt.tokens, prompt.hidden);
  }
  return request;
}

CompletionAnswer::CompletionAnswer(CompletionRequest request, std::shared_ptr<Engine> engine,
                                   std::shared_ptr<HttpReply> reply, std::shared_ptr<Room::Part> part)
    : request_(std::move(request)),
      engine_(std::move(engine)),
      reply_(std::move(reply)),
      part_(std::move(part)),
      id_(fmt::format("cmpl-{:x}{:x}", drawn_number(), drawn_number())),
      created_(std::time(nullptr)),
      choices_(static_cast<size_t>(request_.texts())),
      prompts_(request_.prompts.size()),
      open_(choices_.size()) {}

std::vector<std::shared_ptr<TextJob>> CompletionAnswer::jobs() {
  std::vector<std::shared_ptr<TextJob>> jobs;
  for (size_t i = 0; i < request_.prompts.size(); ++i) {
    auto job = std::make_shared<TextJob>(request_.job);
    job->tokens = request_.prompts[i].tokens;
    job->on_news = [me = shared_from_this(), i](TextNews news) { me->take(i, std::move(news)); };
    job->gone = [me = shared_from_this()] { return me->failed_ || me->reply_->gone(); };
    jobs.push_back(std::move(job));
  }
  return jobs;
}

void CompletionAnswer::list_next(size_t prompt, const ScoredToken* scored) {
  const CompletionRequest::Prompt& given = request_.prompts[prompt];
  Scored& known = prompts_[prompt];
  const size_t place = known.next++;
  if (place < given.hidden) return;
  const int64_t bytes = known.lists.bytes();
  known.lists.add(engine_->run(), given.tokens[place], scored);
  grow((known.lists.bytes() - bytes) * request_.job.samples);
}

void CompletionAnswer::begin(Choice& choice, size_t prompt) {
  const CompletionRequest::Prompt& given = request_.prompts[prompt];
  choice.begun = true;
  choice.repeats = request_.echo;
  if (request_.echo) grow(static_cast<int64_t>(given.text.size()));
  if (request_.job.likeliest < 0) return;
  if (request_.echo) {
    while (prompts_[prompt].next < given.tokens.size()) list_next(prompt, nullptr);
    choice.lists.go_on_after(prompts_[prompt].lists);
  }
  if (!given.tokens.empty()) choice.lists.set_previous(engine_->run(), given.tokens.back());
}

void CompletionAnswer::take(size_t prompt, TextNews news) {
  if (failed_) return;
  if (news.end == TextNews::End::error) return fail(ApiError(news.status, news.error));
  if (request_.job.score_prompt && prompts_[prompt].next == 0)
    list_next(prompt, nullptr);  // nothing predicts the first
  for (const ScoredToken& token : news.prompt) list_next(prompt, &token);
  if (!news.prompt.empty()) return;
  const size_t index = prompt * static_cast<size_t>(request_.job.samples) + static_cast<size_t>(news.sample);
  Choice& choice = choices_[index];
  if (!choice.begun) begin(choice, prompt);
  const int64_t bytes = choice.lists.bytes();
  choice.text += news.text;
  for (const ScoredToken& token : news.scored) choice.lists.add(engine_->run(), token.token, &token);
  if (!request_.stream) grow(static_cast<int64_t>(news.text.size()) + choice.lists.bytes() - bytes);
  if (failed_) return;
  written_ += news.tokens;
  if (news.end != TextNews::End::none) {
    choice.end = news.end == TextNews::End::stop ? "stop" : "length";
    --open_;
  }
  const bool has_said = choice.repeats || !choice.text.empty() || !choice.lists.empty() || choice.end != nullptr;
  if (request_.stream && has_said) send_event(index);
  if (open_ == 0) finish();
}

void CompletionAnswer::grow(int64_t bytes) {
  if (failed_) return;
  try {
    part_->grow(bytes, request_.stream ? max_echo_bytes : max_answer_bytes, request_.stream ? "echo" : "max_tokens",
                "n, max_tokens, logprobs or the prompt, or leave out echo or logprobs");
  } catch (const ApiError& error) {
    fail(error);
  }
}

void CompletionAnswer::fail(const ApiError& error) {
  failed_ = true;
  if (streamed_) {
    reply_->stream("data: " + json_line(error_json(error)) + "\n\n");
    reply_->end_stream();
  } else {
    reply_->send(error_answer(error));
  }
  part_.reset();
}

void CompletionAnswer::say(size_t index, std::string& json) {
  const size_t prompt = index / static_cast<size_t>(request_.job.samples);
  Choice& choice = choices_[index];
  static const TokenLists none;
  const std::string front = choice.repeats ? request_.prompts[prompt].text : "";
  json += fmt::format("{{\"index\":{},\"text\":", index) + json_line(front + choice.text) + ",\"logprobs\":";
  if (request_.job.likeliest >= 0)
    choice.lists.append_to(json, choice.repeats ? prompts_[prompt].lists : none);
  else
    json += "null";
  json += ",\"finish_reason\":" + (choice.end != nullptr ? fmt::format("\"{}\"}}", choice.end) : "null}");
  std::string().swap(choice.text);
  choice.lists.clear();
  choice.repeats = false;
}

void CompletionAnswer::send_event(size_t index) {
  streamed_ = true;
  std::string json = json_line(envelope());
  json.back() = ',';
  json += "\"choices\":[";
  say(index, json);
  reply_->stream("data: " + json + "]}\n\n");
}

ordered_json CompletionAnswer::envelope() const {
  return {{"id", id_},
          {"object", "text_completion"},
          {"created", created_},
          {"model", engine_->name()},
          {"seed", request_.job.sampling.seed}};
}

ordered_json CompletionAnswer::usage() const {
  int64_t read = 0;
  for (const CompletionRequest::Prompt& prompt : request_.prompts) read += static_cast<int64_t>(prompt.tokens.size());
  return {{"prompt_tokens", read}, {"completion_tokens", written_}, {"total_tokens", read + written_}};
}

void CompletionAnswer::finish() {
  const int64_t bytes = part_->bytes();
  part_.reset();  // first, since a client that has read the answer may ask again at once
  if (request_.stream) {
    if (request_.stream_usage) {
      ordered_json last = envelope();
      last["choices"] = ordered_json::array();
      last["usage"] = usage();
      reply_->stream("data: " + json_line(last) + "\n\n");
    }
    reply_->stream("data: [DONE]\n\n");
    return reply_->end_stream();
  }
  std::string json = json_line(envelope());
  json.reserve(static_cast<size_t>(bytes) + 1024 * choices_.size());
  json.back() = ',';
  json += "\"choices\":[";
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (i > 0) json += ',';
    say(i, json);
  }
  json += "],\"usage\":" + json_line(usage()) + "}";
  reply_->send({200, std::move(json)});
}

}  // namespace capstan
