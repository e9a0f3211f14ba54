// POST /v1/completions: the request, and its answer as texts come.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/api.hpp"
#include "serve/engine.hpp"

namespace capstan {

struct CompletionLimits {
  int64_t prompt_tokens = 16384, new_tokens = 8192;
  int64_t texts = 128;  // of one request
};

struct CompletionRequest {
  struct Prompt {
    std::string text;             // what echo repeats
    std::vector<int32_t> tokens;  // that are read
    size_t hidden = 0;            // of these, the first, which are in front of the text
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
};

/// What the fields say; each prompt has a text or tokens. `continuation` receives the knobs. Throws ApiError, naming
/// the field.
CompletionRequest completion_fields(const nlohmann::json& body, int64_t vocabulary, const CompletionLimits& limits,
                                    ContinuationOptions& continuation);

/// The same, ready to be read by a model.
CompletionRequest completion_request(const nlohmann::json& body, const SavedRun& run, DecodeWeights weights,
                                     const CompletionLimits& limits);

/// Collects what becomes of the texts of a request and answers it: at once, or when all have ended. For the computing
/// thread.
class CompletionAnswer : public std::enable_shared_from_this<CompletionAnswer> {
 public:
  CompletionAnswer(CompletionRequest request, std::shared_ptr<Engine> engine, std::shared_ptr<HttpReply> reply,
                   std::shared_ptr<void> places);

  /// One for each prompt, in order. They hold this answer.
  std::vector<std::shared_ptr<TextJob>> jobs();

 private:
  struct Choice {
    std::string text;
    nlohmann::ordered_json tokens = nlohmann::ordered_json::array(), values = tokens, likeliest = tokens,
                           offsets = tokens;
    int64_t offset = 0;  // characters so far
    int32_t previous = -1;
    bool begun = false;
    const char* end = nullptr;
  };

  void take(size_t prompt, TextNews news);
  void take_prompt(size_t prompt, const std::vector<ScoredToken>& scored);
  /// Adds a token to the lists of a choice. `scored`: null for one without a probability.
  void add_token(Choice& choice, int32_t token, const ScoredToken* scored);
  void begin(Choice& choice, size_t prompt);
  nlohmann::ordered_json json_of(size_t index, Choice& choice) const;
  nlohmann::ordered_json envelope(nlohmann::ordered_json choices) const;
  nlohmann::ordered_json usage() const;
  void finish();

  const CompletionRequest request_;
  const std::shared_ptr<Engine> engine_;
  const std::shared_ptr<HttpReply> reply_;
  std::shared_ptr<void> places_;
  std::string id_;
  int64_t created_;
  std::vector<Choice> choices_;
  std::vector<std::vector<ScoredToken>> prompts_;  // the scored tokens of each
  size_t open_;
  int64_t written_ = 0;
  bool failed_ = false, streamed_ = false;
};

/// A token as answers show it: its text, or "bytes:\xNN" where that is a part of a character.
std::string token_text(const SavedRun& run, int32_t token, int32_t previous);

}  // namespace capstan
