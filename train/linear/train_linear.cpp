#include "train/linear/train_linear.hpp"

#include <algorithm>

#include "train/evaluation/evaluate_classifier.hpp"
#include "train/linear/fit_linear.hpp"

namespace capstan {
namespace {

bool stop() { return StopSignals::received() != 0; }

/// Returns false after a signal; the state is then still that of the start.
bool solve(Session& session, const NgramRows& rows, ParamStore& params, bool validates) {
  const Stopwatch watch;
  const auto fit = fit_linear(rows, params, session.state().seed, stop);
  if (!fit) return false;
  for (const std::string& line : fit->report) session.log().info(line);
  RunState& state = session.state();
  state.step = std::max<int64_t>(session.config().steps, 1);
  state.epoch = std::max<int64_t>(session.config().epochs, 1);
  state.tokens = rows.tokens();
  state.window_loss = fit->held_out.loss_sum;
  state.window_targets = fit->held_out.targets;
  session.changed();
  session.progress().pace().step_took(watch.seconds(), rows.tokens());
  session.progress().all_done();
  if (!validates && fit->held_out.targets > 0) session.validated({fit->held_out, std::nullopt}, watch.seconds());
  return true;
}

}  // namespace

TrainResult train_linear(Session& session, const Model& classifier, const NgramRows& rows, const LabelledTexts* valid,
                         const RunParts& parts) {
  if (session.state().step == 0 && !solve(session, rows, parts.params, valid != nullptr))
    return session.give_up(StopSignals::received());
  if (valid != nullptr && session.state().validated_step != session.state().step) {
    const Stopwatch watch;
    const auto found = evaluate_classifier(classifier, *valid, stop);
    if (!found) return session.interrupt(StopSignals::received(), parts);
    session.validated({found->total, std::nullopt}, watch.seconds());
  }
  return session.finish("the weights are solved for", parts, "another name starts a new one");
}

}  // namespace capstan
