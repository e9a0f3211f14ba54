// Solves for the weights, evaluates, and saves one checkpoint at the end. A signal in between leaves no checkpoint:
// finished work is in work files (work_file.hpp), which the next call takes up.
// tests/train/linear/test_train_linear.cpp.
#include "train/linear/train_linear.hpp"

#include <algorithm>

#include "core/base/stop.hpp"
#include "train/evaluation/classifier_evaluation.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/linear/fit_linear.hpp"

namespace capstan {
namespace {

const StopPoll stop = [] { return StopSignals::received() != 0; };

/// Finds the weights, and sets the state to that of a finished training. Returns false after a signal; the state is
/// then still that of the start.
bool solve(Session& session, const NgramRows& rows, ParamStore& params, bool validates, Progress& progress) {
  const Stopwatch watch;
  LinearFit fit;
  std::optional<DecisionFigures> decisions;
  const auto& goal = session.options().goal;
  try {
    const StopScope scope(&stop);
    fit = fit_linear(rows, params, session.state().seed, &progress);
    if (goal && fit.predictions) decisions = decide_held_out(*fit.predictions, *goal);
  } catch (const Stopped&) {
    return false;
  }
  session.log().info(rows.report());
  for (const std::string& line : fit.report) session.log().info(line);
  if (!fit.warning.empty()) session.log().warn(fit.warning);
  RunState& state = session.state();
  if (decisions) {
    state.rule = decisions->rule;
    fit.held_out.correct = decisions->correct;
  }
  state.step = std::max<int64_t>(session.config().steps, 1);
  state.epoch = std::max<int64_t>(session.config().epochs, 1);
  state.tokens = rows.tokens();
  state.window_loss = fit.held_out.loss_sum;
  state.window_targets = fit.held_out.targets;
  session.changed();
  session.progress().pace().step_took(watch.seconds(), rows.tokens());
  session.progress().all_done();
  const char* const by = rows.by_adagrad() ? held_out_texts : cross_validation;
  if (!validates && fit.held_out.targets > 0)
    session.validated({fit.held_out, fit.labels, decisions, by}, watch.seconds());
  return true;
}

}  // namespace

TrainResult train_linear(Session& session, const Model& classifier, const NgramRows& rows, LabelledTexts* valid,
                         const RunParts& parts) {
  const bool solved = session.state().step != 0;
  // To read and to score a text takes about a tenth as long as a class learns from it.
  const double each =
      0.1 / static_cast<double>(std::max<int64_t>(rows.rows(), 1)) * static_cast<double>(rows.classes());
  const double evaluation = valid != nullptr ? each * static_cast<double>(valid->size()) : 0;
  Progress progress(session.log().of_work(false), "evaluating", (solved ? 0 : fit_work(rows)) + evaluation, in_shares);
  if (valid != nullptr) valid->report_to(progress, each);
  if (!solved && !solve(session, rows, parts.params, valid != nullptr, progress))
    return session.give_up(StopSignals::received(), "the same command goes on with what is finished");
  if (valid != nullptr && session.state().validated_step != session.state().step) {
    const Stopwatch watch;
    progress.begin("evaluating");
    ClassifierEvaluation found;
    try {
      const StopScope scope(&stop);
      found = evaluate_classifier(classifier, *valid, session.state().rule);
    } catch (const Stopped&) {
      return session.interrupt(StopSignals::received(), parts);
    }
    std::optional<DecisionFigures> decisions;
    if (session.options().goal && found.report) decisions = figures_of(*found.report, *session.options().goal);
    session.validated({found.total, found.labels, decisions}, watch.seconds());
  }
  const TrainResult result = session.finish("the weights are solved for", parts, "another name starts a new one");
  WorkFile::remove_all(session.options().folder.string());
  return result;
}

}  // namespace capstan
