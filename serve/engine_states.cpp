// The states that an engine keeps: where pieces of prompts end, and sessions, which clients may save and restore. Bytes
// of a client are checked before they are used: tests/serve/test_company.cpp, tests/fuzz/fuzz_state.cpp.
#include <cstring>

#include "core/base/error.hpp"
#include "core/io/hash.hpp"
#include "models/generation/generate.hpp"
#include "serve/api.hpp"
#include "serve/engine.hpp"

namespace capstan {
namespace {

int64_t bytes_of(const Snapshot& snapshot) {
  int64_t elements = 0;
  for (const auto& layer : snapshot.state.layers)
    layer->visit(0, layer->position(0), [&](real*, int64_t count) { elements += count; });
  return elements * static_cast<int64_t>(sizeof(real)) +
         static_cast<int64_t>(snapshot.window.size() * sizeof(int32_t)) + 4096;  // about what containers take
}

}  // namespace

/// A hash of what a state belongs to: tokenizer, names of parameters and values. Keys of the configuration that have no
/// parameters do not count.
std::string Engine::weights_identity(const SavedRun& run) {
  Hash hash;
  hash.add(run.tokenizer->fingerprint());
  const ParamStore& params = run.model->params();
  for (const Param& param : params.params()) hash.add(param.name);
  hash.add(params.values(), static_cast<size_t>(params.flat_size()) * sizeof(real));
  return hash.hex();
}

void Engine::start_from_prefix(Reading& reading) {
  WrittenText& text = reading.texts.back().text;
  if (run_.model->stack().shape().prefix) return;  // every state of a prompt depends on all of the prompt
  metrics_->add(ServeMetrics::Count::cache_queries);
  const std::shared_ptr<Snapshot> known = cache_.prefix_of(text.window());
  if (known == nullptr) return;
  metrics_->add(ServeMetrics::Count::cache_hits);
  reading.state.copy(0, known->state, 0);
  text.has_read(static_cast<int64_t>(known->window.size()));
}

/// Keeps the state where a piece ends: any prompt with the same beginning has the same state there.
void Engine::keep_prefix(Reading& reading) {
  const WrittenText& text = reading.texts.back().text;
  const int64_t read = text.read();
  if (!reading.texts.back().job->from.empty() || run_.model->stack().shape().prefix || read % prompt_piece != 0) return;
  std::vector<int32_t> tokens(text.window().begin(), text.window().begin() + read);
  if (cache_.has_prefix(tokens)) return;
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->state = new_state();
  snapshot->state.copy(0, reading.state, 0);
  snapshot->window = std::move(tokens);
  snapshot->bytes = bytes_of(*snapshot);
  cache_.keep_prefix(std::move(snapshot));
}

bool Engine::keep_session(const Sequence& sequence, DecodeState& state, int64_t row) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->state = new_state();
  snapshot->state.copy(0, state, row);
  snapshot->window = sequence.text.window();
  snapshot->begin = sequence.text.begin();
  snapshot->bytes = bytes_of(*snapshot);
  return cache_.keep_session(sequence.job->keep, std::move(snapshot));
}

std::string Engine::saved_session(const std::string& name) {
  const std::shared_ptr<Snapshot> snapshot = cache_.session(name);
  if (snapshot == nullptr) return "";
  std::string text(reinterpret_cast<const char*>(&snapshot->begin), sizeof(snapshot->begin));
  text.append(reinterpret_cast<const char*>(snapshot->window.data()), snapshot->window.size() * sizeof(int32_t));
  return state_bytes(snapshot->state, 0, identity_, text);
}

void Engine::restore_session(const std::string& name, std::string_view bytes) {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->state = new_state();
  const std::string text = read_from_client([&] { return set_state(snapshot->state, 0, bytes, identity_); });
  if (text.size() > sizeof(snapshot->begin)) {
    std::memcpy(&snapshot->begin, text.data(), sizeof(snapshot->begin));
    snapshot->window.resize((text.size() - sizeof(snapshot->begin)) / sizeof(int32_t));
    std::memcpy(snapshot->window.data(), text.data() + sizeof(snapshot->begin),
                snapshot->window.size() * sizeof(int32_t));
  }
  // The bytes may be made by anybody, with a valid hash, so what indexes memory is checked (tests/fuzz/fuzz_state.cpp).
  const int64_t vocabulary = run_.model->model().vocabulary();
  for (const int32_t token : snapshot->window)
    if (token < 0 || token >= vocabulary) throw ApiError(400, "state: it has tokens that this model does not have");
  const auto limit = run_.model->position_limit();
  const auto fits = [&](int64_t last) { return last >= 0 && snapshot->begin == window_begin(last, limit); };
  const auto size = static_cast<int64_t>(snapshot->window.size());
  const int64_t left = size - snapshot->state.positions.front();
  if (snapshot->begin < 0 || snapshot->begin >= int64_t{1} << 40 || size == 0 || left < 0 || left > 1 ||
      !(fits(snapshot->begin + size - 1) || fits(snapshot->begin + size - 2)))
    throw ApiError(400, "state: the tokens do not fit the state");
  snapshot->bytes = bytes_of(*snapshot);
  if (!cache_.keep_session(name, std::move(snapshot)))
    throw ApiError(400, "state: it is larger than the server's memory for sessions");
}

}  // namespace capstan
