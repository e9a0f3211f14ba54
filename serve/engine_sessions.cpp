// The sessions of an engine, which clients may save and restore. Bytes of a client are checked before they are used:
// tests/serve/test_company.cpp.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.hpp"
#include "core/io/hash.hpp"
#include "models/generation/state_bytes.hpp"
#include "serve/api.hpp"
#include "serve/engine.hpp"

namespace capstan {
namespace {

/// Throws ApiError for a state that no text of the model leads to. Its bytes may be made by anybody, with a valid hash.
void check_restored(const TextSession& session, const Model& model) {
  const auto refuse_if = [](bool wrong, const char* why) {
    if (wrong) throw ApiError(400, std::string("state: ") + why);
  };
  for (const int32_t token : session.window)
    refuse_if(token < 0 || token >= model.vocabulary(), "it has tokens that this model does not have");
  for (const auto& layer : session.state.layers)
    layer->visit(0, layer->position(0), [&](const real* values, int64_t count) {
      refuse_if(std::any_of(values, values + count, [](real value) { return std::isnan(value); }),
                "it has values that are no numbers");
    });
  const auto limit = model.position_limit();
  const auto fits = [&](int64_t last) { return last >= 0 && session.begin == window_begin(last, limit); };
  const auto size = static_cast<int64_t>(session.window.size());
  const int64_t left = size - session.state.positions.front();
  refuse_if(session.begin < 0 || session.begin >= int64_t{1} << 40 || size == 0 || left < 0 || left > 1 ||
                !(fits(session.begin + size - 1) || fits(session.begin + size - 2)),
            "the tokens do not fit the state");
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

bool Engine::keep_session(const Sequence& sequence, DecodeState& state, int64_t row) {
  const auto session = std::make_shared<TextSession>();
  session->state = new_state();
  session->state.copy(0, state, row);
  session->window = sequence.text.window();
  session->begin = sequence.text.begin();
  return sessions_.keep(sequence.job->keep, session);
}

/// The session that a job goes on from; null where it begins anew.
std::shared_ptr<TextSession> Engine::session_of(const TextJob& job) {
  if (job.from.empty()) return nullptr;
  if (auto known = sessions_.find(job.from)) return known;
  throw ApiError(
      404,
      fmt::format("session.from: there is no session {}: it was never kept, or has made room for others", job.from));
}

std::string Engine::saved_session(const std::string& name) {
  const std::shared_ptr<TextSession> session = sessions_.find(name);
  if (session == nullptr) return "";
  std::string text(reinterpret_cast<const char*>(&session->begin), sizeof(session->begin));
  text.append(reinterpret_cast<const char*>(session->window.data()), session->window.size() * sizeof(int32_t));
  return state_bytes(session->state, 0, identity_, text);
}

int64_t Engine::restore_session(const std::string& name, std::string_view bytes) {
  const auto session = std::make_shared<TextSession>();
  session->state = new_state();
  const std::string text = read_from_client([&] { return set_state(session->state, 0, bytes, identity_); });
  if (text.size() > sizeof(session->begin)) {
    std::memcpy(&session->begin, text.data(), sizeof(session->begin));
    session->window.resize((text.size() - sizeof(session->begin)) / sizeof(int32_t));
    std::memcpy(session->window.data(), text.data() + sizeof(session->begin), session->window.size() * sizeof(int32_t));
  }
  check_restored(*session, run_.model->model());
  if (!sessions_.keep(name, session)) throw ApiError(400, "state: it is larger than the server's memory for sessions");
  return session->tokens();
}

}  // namespace capstan
