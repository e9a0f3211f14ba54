// A prompt becomes a Reading, which is read in pieces of prompt_piece tokens, by turns with others. Once it is read,
// each of its samples takes a row of state_, and step() computes all rows together. A text that has filled the model's
// positions becomes a Reading again. Clients take turns at each of these, and a client that has nothing under way never
// waits for the texts of another to end. Pieces end at fixed places and rows do not mix, so that load does not change
// any bits: tests/serve/test_company.cpp.
#include "serve/engine.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"
#include "models/generation/generate.hpp"
#include "models/generation/state_bytes.hpp"
#include "serve/api.hpp"

namespace capstan {
namespace {

/// How many prompts of a client are read at a time, by turns, so that a short one does not wait for a long one.
constexpr size_t max_readings = 4;

/// ln p of `token` and of the `count` likeliest tokens, from `vocabulary` logits. Throws NotFinite.
ScoredToken scored_token(const real* logits, int64_t vocabulary, int32_t token, int64_t count) {
  const double total = log_total(logits, vocabulary);
  ScoredToken result{token, static_cast<double>(logits[token]) - total, {}};
  if (!std::isfinite(result.log_probability))
    throw NotFinite(
        fmt::format("the log probability of token {} is {}: the model's weights are damaged or its training "
                    "diverged",
                    token, result.log_probability));
  for (const int32_t likely : likeliest_tokens(logits, vocabulary, count))
    result.likeliest.emplace_back(likely, static_cast<double>(logits[likely]) - total);
  return result;
}

/// Where the window ends that is read of a prompt of `count` tokens from the token `at` on.
int64_t window_end(const Model& model, int64_t at, int64_t count) {
  const auto limit = model.position_limit();
  return limit ? std::min(count, window_begin(at, limit) + *limit) : count;
}

}  // namespace

Engine::Engine(SavedRun run, std::string name, const EngineOptions& options)
    : run_(std::move(run)), name_(std::move(name)), options_(options), sessions_(options.session_bytes) {
  if (writes()) packed_ = run_.model->that_predicts(Predicts::next_token).make_state(1, options.weights);
}

int64_t Engine::state_bytes_at(int64_t tokens) const { return writes() ? bytes_per_sequence(packed_, tokens) : 0; }

DecodeState Engine::new_state(int64_t rows) const {
  DecodeState state = run_.model->model().make_state(rows, options_.weights);
  state.share(packed_);
  state.reset();  // the memory may have held the texts of others
  return state;
}

void Engine::add(const std::shared_ptr<TextJob>& job) { queue_.push(job->client, job); }

void Engine::clear() {
  queue_.clear();
  readings_.clear();
  read_.clear();
  active_.clear();
  state_ = DecodeState();
}

void Engine::fail_all(const std::exception& error) {
  for (const Sequence& sequence : active_) fail(*sequence.job, error, sequence.sample);
  for (auto* const readings : {&readings_, &read_})
    while (const auto reading = readings->pop())
      for (const Sequence& sequence : reading->second.texts) fail(*sequence.job, error, sequence.sample);
  while (const auto job = queue_.pop()) fail(*job->second, error);
  clear();
}

bool Engine::advance() {
  forget_gone();
  const auto may_read = [this](const std::string& client) {
    return readings_.count(client) + read_.count(client) < max_readings;
  };
  while (auto next = queue_.pop(may_read)) open(std::move(next->second));
  const bool busy = !readings_.empty() || !read_.empty() || !active_.empty();
  read_one_piece();
  place();
  if (!active_.empty()) step();
  return busy;
}

/// A client has more than its share of the slots only while no other waits. Others then get theirs beyond all slots, as
/// many as it has too much; and a client without any text in a slot always gets one: another's texts may be long.
bool Engine::may_write(const std::string& client) const {
  std::map<std::string, int64_t> rows;
  for (const Sequence& sequence : active_) ++rows[sequence.job->client];
  int64_t slots = options_.slots;
  for (const auto& [other, count] : rows) slots += std::max<int64_t>(0, count - options_.client_slots);
  const bool has_share = rows[client] < options_.client_slots;
  const bool others_wait = queue_.has_other(client) || readings_.has_other(client) || read_.has_other(client);
  if (!has_share && others_wait) return false;
  return rows[client] == 0 || static_cast<int64_t>(active_.size()) < (has_share ? slots : options_.slots);
}

/// Drops the texts of clients that have left, so that they make room at once.
void Engine::forget_gone() {
  const auto gone = [](const std::shared_ptr<TextJob>& job) { return job->gone && job->gone(); };
  queue_.remove_if(gone);
  for (auto* const readings : {&readings_, &read_})
    readings->remove_if([&](const Reading& reading) { return gone(reading.texts.front().job); });
  for (size_t row = active_.size(); row-- > 0;)
    if (gone(active_[row].job)) leave(row);
}

std::shared_ptr<TextSession> Engine::session_of(const TextJob& job) {
  if (job.from.empty()) return nullptr;
  if (auto known = sessions_.find(job.from)) return known;
  throw ApiError(
      404,
      fmt::format("session.from: there is no session {}: it was never kept, or has made room for others", job.from));
}

bool Engine::keep_session(const Sequence& sequence, DecodeState& state, int64_t row) {
  const auto session = std::make_shared<TextSession>();
  session->state = new_state();
  session->state.copy(0, state, row);
  session->window = sequence.text.window();
  session->begin = sequence.text.begin();
  return sessions_.keep(sequence.job->keep, session);
}

void Engine::open(std::shared_ptr<TextJob> job) {
  try {
    Reading reading;
    Prompt prompt{job->tokens};
    const std::shared_ptr<TextSession> known = session_of(*job);
    if (known != nullptr) {
      prompt.begin = known->begin;
      prompt.read = known->state.positions.front();
      prompt.tokens.insert(prompt.tokens.begin(), known->window.begin(), known->window.end());
      if (prompt.read == static_cast<int64_t>(prompt.tokens.size()))
        throw ApiError(400, "prompt: the session has read all of its text: give some more");
    }
    const Model& model = run_.model->model();
    if (job->score_prompt && known == nullptr) {
      const auto count = static_cast<int64_t>(job->tokens.size());
      for (int64_t at = 0, end = 0; (end = window_end(model, at, count)) < count; at = end)
        reading.before.emplace_back(model, Prompt{{job->tokens.begin(), job->tokens.begin() + end}}, *job);
    }
    read_from_client([&] {  // WrittenText refuses a prompt that the model cannot continue
      for (int64_t sample = 0; sample < job->samples; ++sample) {
        prompt.stream = sample;
        reading.texts.push_back(
            {job, sample, WrittenText(model, prompt, *job), SampleText(run_, job->stop, prompt.tokens.back())});
      }
    });
    reading.state = new_state();
    if (known != nullptr && reading.texts.back().text.read() > 0) reading.state.copy(0, known->state, 0);
    readings_.push(job->client, std::move(reading));
  } catch (const std::exception& error) {
    fail(*job, error);
  }
}

void Engine::read_one_piece() {
  auto next = readings_.pop();
  if (!next) return;
  auto& [client, reading] = *next;
  try {
    const bool only_scored = !reading.before.empty();
    WrittenText& text = only_scored ? reading.before.front() : reading.texts.back().text;
    const bool scores = reading.texts.back().job->score_prompt && reading.texts.back().text.result().tokens.empty();
    Array every;
    if (text.read() == 0) reading.state.reset();
    const int64_t first = text.read();
    reading.logits = read_piece(run_.model->model(), text, reading.state, scores ? &every : nullptr);
    if (scores) score(reading, text, first, every);
    const bool whole = text.read() == static_cast<int64_t>(text.window().size());
    if (whole && only_scored) reading.before.pop_front();
    for (Sequence& sequence : reading.texts) sequence.text.has_read(reading.texts.back().text.read());
    (whole && !only_scored ? read_ : readings_).push(client, std::move(reading));
  } catch (const std::exception& error) {
    for (const Sequence& sequence : reading.texts) fail(*sequence.job, error, sequence.sample);
  }
}

/// Tells the probabilities of the prompt's tokens that come after tokens first, first + 1, ... of the window. Windows
/// overlap, but each token is told once. every: (1, T, V), the logits after the T tokens from `first` on.
void Engine::score(Reading& reading, const WrittenText& text, int64_t first, const Array& every) {
  const TextJob& job = *reading.texts.back().job;
  TextNews news;
  const int64_t vocabulary = every.dim(2);
  for (int64_t t = 0; t < every.dim(1); ++t) {
    const int64_t predicted = text.begin() + first + t + 1;
    const auto place = static_cast<size_t>(predicted - text.begin());
    if (predicted <= reading.scored) continue;
    const bool within = place < text.window().size();
    if (!within && reading.before.empty()) continue;
    const int32_t token = within ? text.window()[place] : job.tokens[static_cast<size_t>(predicted)];
    news.prompt.push_back(scored_token(every.data() + t * vocabulary, vocabulary, token, job.likeliest));
    reading.scored = predicted;
  }
  job.on_news(std::move(news));
}

void Engine::place() {
  while (auto next = read_.pop([this](const std::string& client) { return may_write(client); })) {
    auto& [client, reading] = *next;
    Sequence sequence = std::move(reading.texts.front());
    reading.texts.erase(reading.texts.begin());
    place_one(std::move(sequence), reading);
    if (!reading.texts.empty()) read_.push(client, std::move(reading));
  }
}

void Engine::place_one(Sequence sequence, Reading& reading) {
  try {
    if (sequence.job->max_tokens == 0) return end(sequence, {}, TextNews::End::length, reading.state, 0);
    const int32_t token = sequence.text.choose(reading.logits);
    if (!take(sequence, token, reading.logits, reading.state, 0)) return;
    if (sequence.text.read() == 0) return slide(std::move(sequence));
    const auto row = static_cast<int64_t>(active_.size());
    make_row(row);
    state_.copy(row, reading.state, 0);
    active_.push_back(std::move(sequence));
  } catch (const std::exception& error) {
    fail(*sequence.job, error, sequence.sample);
  }
}

/// Makes room for a row. Rows are doubled, but not beyond the slots, unless more are needed: a row may take much
/// memory.
void Engine::make_row(int64_t row) {
  if (row == 0) state_ = new_state();
  if (row < state_.batch()) return;
  DecodeState larger = new_state(std::max(row + 1, std::min(2 * row, options_.slots)));
  for (int64_t i = 0; i < row; ++i) larger.copy(i, state_, i);
  state_ = std::move(larger);  // without memory for it, the texts in the other rows go on
}

void Engine::step() {
  const auto rows = static_cast<int64_t>(active_.size());
  std::vector<int32_t> tokens;
  for (Sequence& sequence : active_) {
    tokens.push_back(sequence.text.window().back());
    sequence.text.has_read(static_cast<int64_t>(sequence.text.window().size()));
  }
  std::vector<std::exception_ptr> errors(active_.size());
  std::vector<bool> stays(active_.size(), false);
  Array logits;
  try {
    logits = run_.model->model().step(Ids(Shape{rows}, tokens), state_);
    parallel_units(rows, [&](int64_t row) {
      const auto at = static_cast<size_t>(row);
      try {
        tokens[at] = active_[at].text.choose(logits.rows(row, row + 1));
      } catch (const Error&) {
        errors[at] = std::current_exception();
      }
    });
  } catch (const Stopped&) {
    throw;
  } catch (...) {
    std::fill(errors.begin(), errors.end(), std::current_exception());
  }
  for (size_t at = 0; at < active_.size(); ++at) {
    const auto row = static_cast<int64_t>(at);
    try {
      if (errors[at]) std::rethrow_exception(errors[at]);
      stays[at] = take(active_[at], tokens[at], logits.rows(row, row + 1), state_, row);
    } catch (const std::exception& error) {
      fail(*active_[at].job, error, active_[at].sample);
    }
  }
  std::vector<Sequence> slid;
  for (size_t at = active_.size(); at-- > 0;) {
    if (stays[at] && active_[at].text.read() > 0) continue;
    if (stays[at]) slid.push_back(std::move(active_[at]));
    leave(at);
  }
  for (Sequence& sequence : slid) slide(std::move(sequence));
}

/// Removes a sequence from its slot, which the last one takes, so that rows stay without gaps.
void Engine::leave(size_t row) {
  const size_t last = active_.size() - 1;
  if (row != last) {
    state_.copy(static_cast<int64_t>(row), state_, static_cast<int64_t>(last));
    std::swap(active_[row], active_[last]);
  }
  active_.pop_back();
  if (active_.empty()) state_ = DecodeState();
}

/// A text that has come to the model's last position is read again from where its next window begins.
void Engine::slide(Sequence sequence) {
  const std::string client = sequence.job->client;
  Reading reading;
  reading.state = new_state();
  reading.texts.push_back(std::move(sequence));
  readings_.push(client, std::move(reading));
}

bool Engine::take(Sequence& sequence, int32_t token, const Array& logits, DecodeState& state, int64_t row) {
  const TextJob& job = *sequence.job;
  TextNews news;
  news.sample = sequence.sample;
  const WrittenText::Added added = sequence.text.add(token, logits);
  const GenerateEnd how = sequence.text.result().end;
  if (added == WrittenText::Added::end) {
    end(sequence, std::move(news), how == GenerateEnd::stop_token ? TextNews::End::stop : TextNews::End::length, state,
        row);
    return false;
  }
  news.tokens = 1;
  news.text = sequence.shown.push(token);
  if (job.likeliest >= 0) news.scored.push_back(scored_token(logits.data(), logits.size(), token, job.likeliest));
  if (sequence.shown.done() || added == WrittenText::Added::last) {
    end(sequence, std::move(news), sequence.shown.done() ? TextNews::End::stop : TextNews::End::length, state, row);
    return false;
  }
  job.on_news(std::move(news));
  return true;
}

void Engine::end(Sequence& sequence, TextNews news, TextNews::End how, DecodeState& state, int64_t row) {
  const TextJob& job = *sequence.job;
  if (!job.keep.empty() && !keep_session(sequence, state, row))
    return fail(job, ApiError(400, "session.keep: the state is larger than the server's memory for sessions"),
                sequence.sample);
  news.sample = sequence.sample;
  news.text += sequence.shown.finish();
  news.end = how;
  job.on_news(std::move(news));
}

void Engine::fail(const TextJob& job, const std::exception& error, int64_t sample) {
  if (dynamic_cast<const Stopped*>(&error) != nullptr) throw Stopped();
  TextNews news;
  news.sample = sample;
  news.end = TextNews::End::error;
  news.status = status_of(error);
  news.error = error.what();
  job.on_news(std::move(news));
}

}  // namespace capstan
