// The texts that one model writes at a time: running ones advance together, prompts are read in pieces between steps.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/no_copy.hpp"
#include "models/generation/written_text.hpp"
#include "run/predictions/completions.hpp"
#include "serve/client_queue.hpp"
#include "serve/metrics.hpp"
#include "serve/state_cache.hpp"
#include "serve/tokens/token_lists.hpp"

namespace capstan {

/// What has become of one text since the last news.
struct TextNews {
  enum class End { none, stop, length, error };

  int64_t sample = 0;
  std::string text;                 // that can be shown now
  int64_t tokens = 0;               // written since
  std::vector<ScoredToken> scored;  // these, if the job asks for it
  End end = End::none;
  int status = 500;   // of an error
  std::string error;  // and what it is

  static TextNews failure(int status, const std::string& error) {
    TextNews news;
    news.end = End::error;
    news.status = status;
    news.error = error;
    return news;
  }
};

/// A prompt and how it is continued. What becomes of it depends on nothing else.
struct TextJob {
  std::string client;           // whose it is
  std::vector<int32_t> tokens;  // with `from`, those after its text
  int64_t samples = 1;
  GenerateOptions generation;
  std::vector<std::string> stop;
  int64_t likeliest = -1;     // tokens of each place whose probabilities are told; < 0: none, not even of those chosen
  bool score_prompt = false;  // tells those of the prompt, too
  std::string from, keep;     // names of sessions; empty: none
  std::function<void(TextNews news)> on_news;                      // on the computing thread
  std::function<void(std::vector<ScoredToken> tokens)> on_prompt;  // of tokens 1, 2, ...
  std::function<bool()> gone;                                      // nobody waits for it any more
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
};

struct EngineOptions {
  int64_t slots = 64;  // sequences that advance together
  DecodeWeights weights = DecodeWeights::float32;
  int64_t cache_bytes = 256 << 20;
};

/// All but the constructor is for one thread.
class Engine : NoCopy {
 public:
  Engine(SavedRun run, std::string name, const EngineOptions& options, std::shared_ptr<ServeMetrics> metrics);

  const SavedRun& run() const { return run_; }
  const std::string& name() const { return name_; }
  /// Is it a language model?
  bool writes() const { return writes_; }
  ServeMetrics& metrics() const { return *metrics_; }
  /// Bytes of a token's text in JSON, on average.
  int64_t name_bytes() const { return name_bytes_; }
  /// Bytes that a sequence takes after so many tokens.
  int64_t state_bytes_at(int64_t tokens) const;

  void add(std::shared_ptr<TextJob> job);
  /// Reads one piece of a prompt, and takes one step of the texts that are written. False when there was nothing to do.
  bool advance();

  /// Forgets all texts.
  void clear();
  /// The same, after telling all of them why.
  void fail_all(const std::exception& error);

  StateCache& cache() { return cache_; }
  std::string saved_session(const std::string& name);
  /// Throws Error for bytes that are not of this model.
  void restore_session(const std::string& name, std::string_view bytes);

 private:
  struct Sequence {
    std::shared_ptr<TextJob> job;
    int64_t sample;
    WrittenText text;
    SampleText shown;
    std::chrono::steady_clock::time_point last;
  };
  /// A window that is being read, or has been and waits for slots.
  struct Reading {
    DecodeState state;
    std::deque<WrittenText> before;  // windows that are only scored
    std::vector<Sequence> texts;     // samples of one prompt, of which the last is read
    Array logits;
    int64_t scored = 0;  // tokens of the prompt
    bool done = false;
  };

  DecodeState new_state() const;
  void forget_gone();
  void open(std::shared_ptr<TextJob> job);
  void read_one_piece();
  void score(Reading& reading, const WrittenText& text, int64_t first, const Array& every);
  static int64_t window_end(const Model& model, int64_t at, int64_t count);
  void start_from_prefix(Reading& reading);
  void keep_prefix(Reading& reading);
  bool keep_session(const Sequence& sequence, DecodeState& state, int64_t row);
  static std::string weights_identity(const SavedRun& run);
  void place();
  void step();
  /// Adds a token to a text; false when it does not go on in its slot. `state`, `row`: where it is.
  bool take(Sequence& sequence, int32_t token, const Array& logits, DecodeState& state, int64_t row);
  void end(Sequence& sequence, TextNews news, TextNews::End how, DecodeState& state, int64_t row);
  void slide(Sequence sequence);
  void leave(size_t row);
  static void fail(Sequence& sequence, const std::exception& error);
  void make_row(int64_t row);

  SavedRun run_;
  std::string name_;
  EngineOptions options_;
  std::shared_ptr<ServeMetrics> metrics_;
  bool writes_;
  int64_t name_bytes_ = 0;
  std::string identity_;
  DecodeState packed_;  // holds the packed weights, which the others share
  StateCache cache_;
  ClientQueue<std::shared_ptr<TextJob>> queue_;
  std::deque<Reading> readings_;
  DecodeState state_;  // row i is that of active_[i]
  std::vector<Sequence> active_;
};

}  // namespace capstan
