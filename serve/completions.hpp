// POST /v1/completions: the request, and its answer as texts come.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/api.hpp"
#include "serve/engine.hpp"
#include "serve/tokens/token_lists.hpp"

namespace capstan {

struct CompletionLimits {
  int64_t prompt_tokens = 16384, new_tokens = 8192;
  int64_t texts = 128;  // of one request
};

struct CompletionRequest {
  struct Prompt {
    std::string text;                   // what echo repeats
    std::vector<int32_t> tokens;        // that are read
    size_t hidden = 0;                  // of these, the first, which are in front of the text
    std::vector<int64_t> offsets = {};  // of the others, in characters of the text, where the answer has them
  };

  std::vector<Prompt> prompts;
  int64_t samples = 1;  // of each
  int64_t likeliest = -1;
  bool echo = false, stream = false, stream_usage = false;
  int64_t seed = 0;
  std::string from, keep;  // sessions
  std::vector<std::string> stop;
  GenerateOptions generation;

  int64_t texts() const { return samples * static_cast<int64_t>(prompts.size()); }
  bool scores_prompts() const { return echo && likeliest >= 0; }
  /// About as many bytes as the answer may have, and those of the prompts that a stream repeats at once.
  /// `name_bytes`: of the text of a token.
  int64_t answer_bytes(int64_t name_bytes) const;
  int64_t echo_bytes(int64_t name_bytes) const;
};

/// An event, and what several begin with at once, has no more: a client that has 4 MB unread is dropped.
constexpr int64_t most_echo_bytes = 3 << 20;

/// What the fields say; each prompt has a text or tokens. `completion` receives the knobs. Throws ApiError, naming
/// the field.
CompletionRequest completion_fields(const nlohmann::json& body, int64_t vocabulary, const CompletionLimits& limits,
                                    CompletionOptions& completion);

/// The same, ready to be read by a model.
CompletionRequest completion_request(const nlohmann::json& body, const SavedRun& run, DecodeWeights weights,
                                     const CompletionLimits& limits);

/// Collects what becomes of the texts of a request and answers it: at once, or when all have ended. For the computing
/// thread.
class CompletionAnswer : public std::enable_shared_from_this<CompletionAnswer> {
 public:
  CompletionAnswer(CompletionRequest request, std::string client, std::shared_ptr<Engine> engine,
                   std::shared_ptr<HttpReply> reply, std::shared_ptr<void> places);

  /// One for each prompt, in order. They hold this answer.
  std::vector<std::shared_ptr<TextJob>> jobs();

 private:
  /// What has come of a prompt.
  struct Scored {
    TokenLists lists;
    size_t next = 0;  // token of the prompt that is listed next
  };
  struct Choice {
    std::string text;  // that is written and not sent
    TokenLists lists;
    CharacterCount characters;
    int64_t offset = 0;  // of the written text
    int32_t previous = -1;
    bool begun = false, repeats = false;  // repeats: the prompt is to be sent in front
    const char* end = nullptr;
  };

  void take(size_t prompt, TextNews news);
  void take_prompt(size_t prompt, const std::vector<ScoredToken>& scored);
  /// Lists the token of a prompt that is next. `scored`: null for one without a probability.
  void list_next(size_t prompt, const ScoredToken* scored);
  void begin(Choice& choice, size_t prompt);
  void add_token(Choice& choice, const ScoredToken& scored);
  /// Ends the answer where it has become larger than was estimated, and may be.
  void check_size();
  void fail(const ApiError& error);
  /// Adds the choice as JSON, and forgets what it has said.
  void say(size_t index, std::string& json);
  void send_event(size_t index);
  nlohmann::ordered_json envelope() const;
  nlohmann::ordered_json usage() const;
  void finish();

  const CompletionRequest request_;
  const std::string client_;
  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<HttpReply> reply_;
  std::shared_ptr<void> places_;
  std::string id_;
  int64_t created_;
  std::vector<Choice> choices_;
  std::vector<Scored> prompts_;
  size_t open_;
  int64_t written_ = 0, bytes_ = 0;  // bytes: of the answer, or of the prompts that a stream repeats
  bool failed_ = false, streamed_ = false;
};

}  // namespace capstan
