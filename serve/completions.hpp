// POST /v1/completions: the request, and its answer as texts come. routes.cpp makes a request of the body and hands the
// jobs of its answer to the scheduler. tests/serve/test_endpoints.cpp holds fields and answers,
// tests/interop/serve_client.py those that OpenAI's client reads.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/api.hpp"
#include "serve/engine.hpp"
#include "serve/room.hpp"
#include "serve/tokens/token_lists.hpp"

namespace capstan {

struct CompletionLimits {
  int64_t prompt_tokens = 16384, new_tokens = 8192;  // of one text, at most
  int64_t texts = 128;                               // of one request: prompts times samples
};

struct CompletionRequest {
  struct Prompt {
    std::string text;             // what echo repeats
    std::vector<int32_t> tokens;  // what the model reads
    size_t hidden = 0;            // how many of the first tokens are no part of the text
  };

  std::vector<Prompt> prompts;
  TextJob job;  // what the jobs of all prompts have in common
  bool echo = false, stream = false, stream_usage = false;

  int64_t texts() const { return job.samples * static_cast<int64_t>(prompts.size()); }
};

/// A number that nobody can foresee: the seed of a request that names none, and half of an answer's id.
int64_t drawn_number();

/// The request as its fields say it; each prompt has a text or tokens. Throws ApiError, naming the field.
CompletionRequest completion_fields(const nlohmann::json& body, int64_t vocabulary, const CompletionLimits& limits);

/// completion_fields() with prompts turned into tokens, ready to be read by a model.
CompletionRequest completion_request(const nlohmann::json& body, const SavedRun& run, DecodeWeights weights,
                                     const CompletionLimits& limits);

/// Collects what becomes of the texts of a request and answers it: at once, or when all have ended. For the computing
/// thread.
class CompletionAnswer : public std::enable_shared_from_this<CompletionAnswer> {
 public:
  CompletionAnswer(CompletionRequest request, std::shared_ptr<Engine> engine, std::shared_ptr<HttpReply> reply,
                   std::shared_ptr<Room::Part> part);

  /// A job for each prompt, in order. Jobs hold this answer alive.
  std::vector<std::shared_ptr<TextJob>> jobs();

 private:
  /// The tokens of a prompt with their probabilities, as far as they have come.
  struct Scored {
    TokenLists lists;
    size_t next = 0;  // token of the prompt that is listed next
  };
  /// One text of the answer.
  struct Choice {
    std::string text;  // written and not sent yet
    TokenLists lists;
    bool begun = false, repeats = false;  // repeats: the prompt is to be sent in front
    const char* end = nullptr;
  };

  /// Takes what an engine tells of a text. `prompt`: the number of its prompt.
  void take(size_t prompt, TextNews news);
  /// Lists the token of a prompt that is next. `scored`: null for one without a probability.
  void list_next(size_t prompt, const ScoredToken* scored);
  void begin(Choice& choice, size_t prompt);
  /// Counts memory of the answer or, of a stream, of the prompts that it repeats. Ends the answer with an error where
  /// that is too much.
  void grow(int64_t bytes);
  void fail(const ApiError& error);
  /// Adds the choice as JSON, and forgets what it has said.
  void say(size_t index, std::string& json);
  void send_event(size_t index);
  nlohmann::ordered_json envelope() const;
  nlohmann::ordered_json usage() const;
  void finish();

  const CompletionRequest request_;
  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<HttpReply> reply_;
  std::shared_ptr<Room::Part> part_;
  std::string id_;
  int64_t created_;
  std::vector<Choice> choices_;
  std::vector<Scored> prompts_;
  size_t open_;          // texts that have not ended
  int64_t written_ = 0;  // tokens so far
  bool failed_ = false, streamed_ = false;
};

}  // namespace capstan
