// The loop asks at each turn, in this order: a signal, the end of a piece, a validation that is due, a limit, a
// checkpoint that is due; then it takes a step. A resumed run enters at the same place and finds the same answers:
// tests/train/test_loop.cpp and test_resume.cpp.
#include "train/loop/trainer.hpp"

#include <algorithm>

#include "core/base/stop.hpp"
#include "core/machine/pool.hpp"
#include "core/products/gemm_backend.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/loop/run_length.hpp"
#include "train/optimizers/optimizer.hpp"
#include "train/rank_steps/rank_step.hpp"

namespace capstan {
namespace {

/// How long a step may still take after a signal. What a longer one has computed is lost.
constexpr double grace_seconds = 1;

const StopPoll at_once = [] { return StopSignals::received() != 0; };
const StopPoll after_grace = [] { return StopSignals::received(grace_seconds) != 0; };

/// The state of one call of train().
class Loop {
 public:
  Loop(Session& session, TrainingStep& step, const TrainInputs& inputs)
      : inputs_(inputs),
        session_(session),
        config_(session.config()),
        state_(session.state()),
        progress_(session.progress()),
        step_(step),
        schedule_(config_.schedule, config_.lr, session.options().total_steps) {}
  TrainResult run();

 private:
  RunParts parts() { return step_.parts(state_); }
  StopStatus stop_status() const { return step_.agreed(session_.stop_status()); }
  std::optional<ReachedLimit> limit() const {
    return reached_limit(config_, state_, progress_.seconds_before() + stop_status().clock);
  }
  void describe();
  void step();
  void refuse_update(const std::string& what, double loss, double norm);
  bool validate();  // false: a signal came

  TrainInputs inputs_;
  Session& session_;
  const TrainConfig& config_;
  RunState& state_;
  RunProgress& progress_;
  TrainingStep& step_;
  const Schedule schedule_;
  StepNumbers numbers_;
};

/// Logs what a reader should know before the first step.
void Loop::describe() {
  if (config_.precision == Precision::bf16 && bf16_backend() == Bf16Backend::floats)
    progress_.log().warn("train.precision: bf16 is emulated on this machine: its rounding without its speed");
  if (has_fresh_tables(parts().params))
    if (const auto warning = fresh_tables_warning(inputs_.train, config_)) progress_.log().warn(*warning);
  const TrainingStep::Description ranks = step_.description();
  for (const std::string& line : ranks.lines) progress_.log().info(line);
  if (!ranks.warning.empty()) progress_.log().warn(ranks.warning);
  if (!session_.begins()) return;
  progress_.log().info(schedule_.event(0));
  if (const int64_t total = session_.options().total_steps; total > 1 && 2 * schedule_.warmup() > total)
    progress_.log().warn(fmt::format("schedule: {} of {} steps are warm-up: lower train.schedule.{}",
                                     std::min(schedule_.warmup(), total), total,
                                     config_.schedule.warmup_fraction > 0 ? "warmup_fraction" : "warmup_steps"));
}

TrainResult Loop::run() {
  describe();
  // An evaluation is the forward pass of a step, about a third of it, for as many batches as there are.
  if (inputs_.valid != nullptr)
    progress_.pace().expect_evaluations(static_cast<double>(inputs_.valid->batches_per_epoch(0)) /
                                        static_cast<double>(3 * config_.accumulate));
  progress_.pace().expect_saves(seconds_to_save(parts()));
  for (;;) {
    if (const int signal = stop_status().signal; signal != 0) return session_.interrupt(signal, parts());
    const bool ends = inputs_.end && state_.step == inputs_.end->step;
    if (ends && !inputs_.end->validated) return session_.end_piece(parts());
    const bool regular = session_.starts_warm() || (inputs_.end && inputs_.end->validations.count(state_.step) > 0) ||
                         (config_.valid_every > 0 && state_.step > 0 && state_.step % *config_.valid_every == 0);
    // Also the first thing after an interrupted evaluation, so that patience counts as in an uninterrupted run.
    if (inputs_.valid != nullptr && state_.validated_step != state_.step && (regular || ends || limit()))
      if (!validate()) return session_.interrupt(stop_status().signal, parts());
    if (ends) return session_.end_piece(parts());
    if (const auto reached = limit())
      return session_.finish(reached->reason, parts(), fmt::format("raise {} to continue", reached->key));
    session_.publish_due();
    if (session_.save_due()) session_.save(parts());
    step();
  }
}

void Loop::step() {
  const ProfiledStep profiled(inputs_.profiler != nullptr ? inputs_.profiler->next_step() : nullptr);
  const Stopwatch watch;
  const int64_t epoch = state_.epoch;
  numbers_.learning_rate = schedule_.rate(state_.step);
  if (epoch > 0 && state_.batch == 0) step_.empty_fresh_tables();
  TrainingStep::Result result;
  try {
    const StopScope scope(&after_grace);
    result = step_.run(state_, numbers_.learning_rate, [&] { return session_.stop_status(); });
  } catch (const Stopped&) {  // the step is undone: it begins again when the run goes on
    return;
  }
  if (result.gradient_norm) numbers_.gradient_norm = *result.gradient_norm;
  numbers_.loss = result.sums.loss / static_cast<double>(std::max<int64_t>(result.sums.targets, 1));
  state_.tokens += result.sums.tokens;
  if (!result.problem.empty()) {
    refuse_update(result.problem, numbers_.loss, result.gradient_norm.value_or(std::nan("")));
  } else if (result.updated) {
    state_.window_loss += result.sums.loss;
    state_.window_targets += result.sums.targets;
  } else {
    progress_.log().warn(
        fmt::format("step {}: its batches have no targets; the weights were not changed", state_.step + 1));
  }
  ++state_.step;
  ++state_.window_steps;
  session_.changed();
  progress_.pace().step_took(watch.seconds(), result.sums.tokens);
  if (const std::string event = schedule_.event(state_.step); !event.empty()) progress_.log().info(event);
  if (!progress_.step_done(numbers_, epoch)) return;
  if (const std::string warning = step_.slow_warning(); !warning.empty()) progress_.log().warn(warning);
}

void Loop::refuse_update(const std::string& what, double loss, double norm) {
  const std::string text =
      fmt::format("step {}: {} (loss {:.4g}, gradient norm {:.4g}, learning rate {:.3g}); the weights were not changed",
                  state_.step + 1, what, loss, norm, numbers_.learning_rate);
  session_.publish();
  const std::string kept = session_.begins()
                               ? std::string("there is no checkpoint yet")
                               : fmt::format("the checkpoint of step {} is intact", session_.saved_step());
  const std::string clip = config_.grad_clip > 0 ? fmt::format("lower train.grad_clip (now {})", config_.grad_clip)
                                                 : std::string("set train.grad_clip (now off)");
  throw Error(fmt::format("{}; {}. Lower train.lr, lengthen train.schedule.warmup_steps, or {}", text, kept, clip));
}

bool Loop::validate() {
  const Stopwatch watch;
  if (session_.unsaved()) progress_.show_bar();
  const size_t reserved = pool::stats().bytes_reserved;
  std::optional<Validation> result;
  Progress progress(progress_.log().of_work(true), "evaluating",
                    static_cast<double>(inputs_.valid->batches_per_epoch(0)), in_shares);
  progress.expect_more_seconds(std::max(0.0, progress_.time_left()));
  try {
    const StopScope scope(&at_once);
    result = capstan::validate(inputs_.task, WatchedBatches(*inputs_.valid, progress), config_.micro_batch_tokens,
                               &session_.ranks(), session_.options().goal ? &*session_.options().goal : nullptr);
  } catch (const Stopped&) {
  }
  // Evaluation may use other shapes, whose blocks of memory training cannot use. Small ones are kept: giving them back
  // and taking them again at every evaluation would scatter them over the heap.
  constexpr size_t worth_returning = size_t{64} << 20;
  if (pool::stats().bytes_reserved > 2 * reserved + worth_returning) pool::trim();
  if (!result) {
    step_.note_signal(StopSignals::received());
    return false;
  }
  progress_.pace().evaluation_took(watch.seconds());
  session_.validated(*result, watch.seconds());
  return true;
}

}  // namespace

TrainResult train(Session& session, TrainingStep& step, const TrainInputs& inputs) {
  return Loop(session, step, inputs).run();
}

TrainResult train(const RunInputs& in, const TrainConfig& config) {
  Communicator one_process;
  Communicator& ranks = in.ranks != nullptr ? *in.ranks : one_process;
  TrainConfig whole = config;
  whole.valid_every = evaluation_interval(in.train, in.valid, config);
  Session::Options options{in.folder, in.identity, in.seed, in.resume_from, total_steps(in.train, config)};
  options.validates = in.valid != nullptr;
  options.publish_later_above = in.publish_later_above;
  Session session(std::move(options), whole, ranks);
  const auto step = make_step(in.task, in.params, in.train, session.config(), ranks);
  session.resume(step->parts(session.state()));
  session.record();
  return train(session, *step, {in.task, in.train, in.valid, in.profiler});
}

}  // namespace capstan
