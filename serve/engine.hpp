// The texts that one model writes at a time: running ones advance together, prompts are read in pieces between steps.
// The scheduler calls it on the computing thread. A text must have the same bits alone and in any company, and from a
// session: tests/serve/test_company.cpp holds it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/no_copy.hpp"
#include "models/generation/written_text.hpp"
#include "run/predictions/completions.hpp"
#include "serve/client_queue.hpp"
#include "serve/sessions.hpp"
#include "serve/tokens/token_lists.hpp"

namespace capstan {

/// What has become of one text since the last news.
struct TextNews {
  enum class End { none, stop, length, error };

  int64_t sample = 0;
  std::string text;                 // what can be shown now
  int64_t tokens = 0;               // how many were written since
  std::vector<ScoredToken> scored;  // those tokens, if the job asks for probabilities
  std::vector<ScoredToken> prompt;  // or tokens 1, 2, ... of the prompt, in pieces, and nothing else
  End end = End::none;
  int status = 500;   // of the answer, with End::error
  std::string error;  // what is wrong, with End::error
};

/// A prompt and how it is continued. The texts that are written depend on nothing else.
struct TextJob : CompletionOptions {
  std::string client;           // the client that takes turns with others
  std::vector<int32_t> tokens;  // what the model reads before it writes; with `from`, what follows the session's text
  int64_t likeliest = -1;       // how many likeliest tokens are told besides each chosen token; < 0: no probabilities
  bool score_prompt = false;    // the probabilities of the prompt's tokens are told, too
  std::string from, keep;       // names of sessions; empty: none
  std::function<void(TextNews news)> on_news;  // on the computing thread
  std::function<bool()> gone;                  // has the client left? Then the text is dropped
};

struct EngineOptions {
  int64_t slots = 64, client_slots = 64;  // sequences that advance together; those of a client while others wait
  DecodeWeights weights = DecodeWeights::float32;
  int64_t session_bytes = 256 << 20;  // memory for sessions
};

/// For the computing thread alone, except for run() and name().
class Engine : NoCopy {
 public:
  Engine(SavedRun run, std::string name, const EngineOptions& options);

  const SavedRun& run() const { return run_; }
  const std::string& name() const { return name_; }
  /// Is it a language model?
  bool writes() const { return facts_of(run_.config.model).predicts == Predicts::next_token; }
  /// Bytes that the state of a sequence takes after so many tokens; 0 unless the model writes.
  int64_t state_bytes_at(int64_t tokens) const;

  void add(const std::shared_ptr<TextJob>& job);
  /// Reads one piece of a prompt, and takes one step of the texts that are written. False when there was nothing to do.
  bool advance();

  /// Forgets all texts.
  void clear();
  /// Ends all texts with this error, and forgets them.
  void fail_all(const std::exception& error);

 private:
  /// A text that is being written.
  struct Sequence {
    std::shared_ptr<TextJob> job;
    int64_t sample;
    WrittenText text;
    SampleText shown;
  };
  /// A window that is being read, or has been and waits for slots.
  struct Reading {
    DecodeState state;
    std::deque<WrittenText> before;  // windows that are only scored
    std::vector<Sequence> texts;     // samples of one prompt, of which the last is read
    Array logits;
    int64_t scored = 0;  // place of the last token of the prompt that was scored
  };

  /// An empty state of `rows` sequences, which shares the packed weights.
  DecodeState new_state(int64_t rows = 1) const;
  void forget_gone();
  /// Whether another text of this client may take a slot.
  bool may_write(const std::string& client) const;
  void open(std::shared_ptr<TextJob> job);
  /// The session that a job goes on from; null where it begins anew.
  std::shared_ptr<TextSession> session_of(const TextJob& job);
  void read_one_piece();
  void score(Reading& reading, const WrittenText& text, int64_t first, const Array& every);
  bool keep_session(const Sequence& sequence, DecodeState& state, int64_t row);
  /// Gives texts whose prompts have been read a slot, as far as there are any free.
  void place();
  void place_one(Sequence sequence, Reading& reading);
  /// One step of all texts in slots.
  void step();
  /// Adds a token to a text; false when the text does not go on in its slot. `state`, `row`: where its state is.
  bool take(Sequence& sequence, int32_t token, const Array& logits, DecodeState& state, int64_t row);
  void end(Sequence& sequence, TextNews news, TextNews::End how, DecodeState& state, int64_t row);
  void slide(Sequence sequence);
  void leave(size_t row);
  static void fail(const TextJob& job, const std::exception& error, int64_t sample = 0);
  void make_row(int64_t row);

  SavedRun run_;
  std::string name_;
  EngineOptions options_;
  DecodeState packed_;  // holds the packed weights, which all other states share
  TextSessions sessions_;
  ClientQueue<std::shared_ptr<TextJob>> queue_;  // prompts that are not begun
  ClientQueue<Reading> readings_, read_;         // those that are being read; those whose texts wait for slots
  DecodeState state_;                            // row i is that of active_[i]
  std::vector<Sequence> active_;
};

}  // namespace capstan
