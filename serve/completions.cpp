// An answer is written as text of JSON while tokens come, since values of JSON would take ten times the memory. Its
// size is estimated before (answer_bytes()) and bounded while it grows (check_size()). tests/serve/test_endpoints.cpp.
#include "serve/completions.hpp"

#include <ctime>
#include <random>

#include "core/io/json.hpp"
#include "data/batches/text_example.hpp"
#include "run/predictions/completions.hpp"
#include "run/predictions/pair_completions.hpp"

namespace capstan {

using nlohmann::json;
using nlohmann::ordered_json;

int64_t drawn_number() {
  static thread_local std::random_device device;
  return static_cast<int64_t>(device()) << 20 ^ device();
}

namespace {

/// The prompt of a text, read as `capstan generate` reads it. `continues`: it follows the text of a session.
CompletionRequest::Prompt prompt_from(const SavedRun& run, const std::string& text, bool continues) {
  CompletionRequest::Prompt prompt;
  prompt.text = text;
  if (continues) {
    prompt.tokens = encode_text({text}, *run.tokenizer, facts_of(run.config.data).text, "prompt");
    return prompt;
  }
  prompt.tokens = prompt_of(run, text, "prompt");
  if (prompt.tokens.empty())
    prompt.tokens.push_back(run.tokenizer->start_token());  // a model predicts only after a token
  prompt.hidden = start_token(run) || text.empty() ? 1 : 0;
  return prompt;
}

CompletionRequest::Prompt prompt_from(const SavedRun& run, std::vector<int32_t> tokens, bool continues) {
  CompletionRequest::Prompt prompt;
  const std::optional<int32_t> start = start_token(run);
  if (!continues && start && tokens.front() != *start) {  // ids that another program made may lack the start
    tokens.insert(tokens.begin(), *start);
    prompt.hidden = 1;
  }
  StreamingDecoder decoder(run.tokenizer);
  for (size_t i = prompt.hidden; i < tokens.size(); ++i)
    if (tokens[i] < run.tokenizer->vocabulary_size()) prompt.text += decoder.push(tokens[i]);
  prompt.text += decoder.finish();
  prompt.tokens = std::move(tokens);
  return prompt;
}

}  // namespace

CompletionRequest completion_request(const json& body, const SavedRun& run, DecodeWeights weights,
                                     const CompletionLimits& limits) {
  CompletionOptions completion;
  CompletionRequest request = completion_fields(body, run.model->model().vocabulary(), limits, completion);
  completion.weights = weights;
  request.generation = generation_of(run, completion);
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
    if (!request.scores_prompts()) continue;
    const std::vector<int32_t> shown(prompt.tokens.begin() + static_cast<std::ptrdiff_t>(prompt.hidden),
                                     prompt.tokens.end());
    prompt.offsets = token_offsets(*run.tokenizer, prompt.text, shown);
  }
  return request;
}

int64_t CompletionRequest::echo_bytes(int64_t name_bytes) const {
  int64_t bytes = 0;
  if (!echo) return 0;
  for (const Prompt& prompt : prompts) {
    bytes += json_bytes(prompt.text);
    if (likeliest >= 0)
      bytes += static_cast<int64_t>(prompt.tokens.size()) * TokenLists::bytes_of_token(likeliest, name_bytes);
  }
  return bytes * samples;
}

int64_t CompletionRequest::answer_bytes(int64_t name_bytes) const {
  const int64_t of_token = likeliest < 0 ? name_bytes : name_bytes + TokenLists::bytes_of_token(likeliest, name_bytes);
  const int64_t written = stream ? 0 : texts() * (generation.max_tokens * of_token + 1024);
  return echo_bytes(name_bytes) + written;
}

CompletionAnswer::CompletionAnswer(CompletionRequest request, std::string client, std::shared_ptr<Engine> engine,
                                   std::shared_ptr<HttpReply> reply, std::shared_ptr<void> places)
    : request_(std::move(request)),
      client_(std::move(client)),
      engine_(std::move(engine)),
      reply_(std::move(reply)),
      places_(std::move(places)),
      id_(fmt::format("cmpl-{:x}{:x}", drawn_number(), drawn_number())),
      created_(std::time(nullptr)),
      choices_(static_cast<size_t>(request_.texts())),
      prompts_(request_.prompts.size()),
      open_(choices_.size()) {}

std::vector<std::shared_ptr<TextJob>> CompletionAnswer::jobs() {
  std::vector<std::shared_ptr<TextJob>> jobs;
  for (size_t i = 0; i < request_.prompts.size(); ++i) {
    auto job = std::make_shared<TextJob>();
    job->client = client_;
    job->tokens = request_.prompts[i].tokens;
    job->samples = request_.samples;
    job->generation = request_.generation;
    job->stop = request_.stop;
    job->likeliest = request_.likeliest;
    job->score_prompt = request_.scores_prompts();
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
  if (failed_) return;
  if (prompts_[prompt].next == 0) list_next(prompt, nullptr);  // nothing predicts the first token
  for (const ScoredToken& token : scored) list_next(prompt, &token);
  check_size();
}

void CompletionAnswer::list_next(size_t prompt, const ScoredToken* scored) {
  const CompletionRequest::Prompt& given = request_.prompts[prompt];
  Scored& known = prompts_[prompt];
  const size_t place = known.next++;
  if (place < given.hidden) return;
  const int32_t before = place > given.hidden ? given.tokens[place - 1] : -1;
  const int64_t bytes = known.lists.bytes();
  known.lists.add(engine_->run(), given.tokens[place],
                  before < engine_->run().tokenizer->vocabulary_size() ? before : -1,
                  given.offsets[place - given.hidden], scored);
  bytes_ += (known.lists.bytes() - bytes) * request_.samples;
}

void CompletionAnswer::begin(Choice& choice, size_t prompt) {
  const CompletionRequest::Prompt& given = request_.prompts[prompt];
  choice.begun = true;
  choice.repeats = request_.echo;
  const int32_t last = given.tokens.empty() ? -1 : given.tokens.back();
  choice.previous = last < engine_->run().tokenizer->vocabulary_size() ? last : -1;
  if (!request_.echo) return;
  bytes_ += static_cast<int64_t>(given.text.size());
  if (request_.likeliest < 0) return;
  CharacterCount characters;
  characters.add(given.text);
  choice.offset = characters.count();
  while (prompts_[prompt].next < given.tokens.size()) list_next(prompt, nullptr);
}

void CompletionAnswer::add_token(Choice& choice, const ScoredToken& scored) {
  const Tokenizer& tokenizer = *engine_->run().tokenizer;
  const bool known = scored.token < tokenizer.vocabulary_size();
  const int64_t place = choice.characters.add(known ? tokenizer.piece(scored.token, choice.previous) : "");
  choice.lists.add(engine_->run(), scored.token, choice.previous, choice.offset + place, &scored);
  choice.previous = known ? scored.token : -1;
}

void CompletionAnswer::take(size_t prompt, TextNews news) {
  if (failed_) return;
  if (news.end == TextNews::End::error) return fail(ApiError(news.status, news.error));
  const size_t index = prompt * static_cast<size_t>(request_.samples) + static_cast<size_t>(news.sample);
  Choice& choice = choices_[index];
  if (!choice.begun) begin(choice, prompt);
  const int64_t bytes = choice.lists.bytes();
  choice.text += news.text;
  for (const ScoredToken& token : news.scored) add_token(choice, token);
  if (!request_.stream) bytes_ += static_cast<int64_t>(news.text.size()) + choice.lists.bytes() - bytes;
  check_size();
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

void CompletionAnswer::check_size() {
  if (bytes_ <= (request_.stream ? max_echo_bytes : max_answer_bytes)) return;
  fail(ApiError(400, fmt::format("the answer has more than {} MB: lower n, max_tokens or logprobs, or leave out echo",
                                 bytes_ >> 20)));
}

void CompletionAnswer::fail(const ApiError& error) {
  failed_ = true;
  if (streamed_) {
    reply_->stream("data: " + text_of(error_json(error)) + "\n\n");
    reply_->end_stream();
  } else {
    reply_->send(error_answer(error));
  }
  places_.reset();
}

void CompletionAnswer::say(size_t index, std::string& json) {
  const size_t prompt = index / static_cast<size_t>(request_.samples);
  Choice& choice = choices_[index];
  static const TokenLists none;
  const std::string front = choice.repeats ? request_.prompts[prompt].text : "";
  json += fmt::format("{{\"index\":{},\"text\":", index) + text_of(front + choice.text) + ",\"logprobs\":";
  if (request_.likeliest >= 0)
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
  std::string json = text_of(envelope());
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
          {"seed", request_.seed}};
}

ordered_json CompletionAnswer::usage() const {
  int64_t read = 0;
  for (const CompletionRequest::Prompt& prompt : request_.prompts) read += static_cast<int64_t>(prompt.tokens.size());
  return {{"prompt_tokens", read}, {"completion_tokens", written_}, {"total_tokens", read + written_}};
}

void CompletionAnswer::finish() {
  places_.reset();  // first, since a client that has read the answer may ask again at once
  if (request_.stream) {
    if (request_.stream_usage) {
      ordered_json last = envelope();
      last["choices"] = ordered_json::array();
      last["usage"] = usage();
      reply_->stream("data: " + text_of(last) + "\n\n");
    }
    reply_->stream("data: [DONE]\n\n");
    return reply_->end_stream();
  }
  std::string json = text_of(envelope());
  json.reserve(static_cast<size_t>(bytes_) + 1024 * choices_.size());
  json.back() = ',';
  json += "\"choices\":[";
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (i > 0) json += ',';
    say(i, json);
  }
  json += "],\"usage\":" + text_of(usage()) + "}";
  reply_->send({200, std::move(json)});
}

}  // namespace capstan
