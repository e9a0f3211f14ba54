#include "train/loop/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "core/products/gemm_backend.hpp"
#include "core/text/utf8.hpp"
#include "train/checkpoints/run_folder.hpp"
#include "train/evaluation/evaluate.hpp"
#include "train/loop/run_length.hpp"
#include "train/loop/run_progress.hpp"
#include "train/loop/signals.hpp"
#include "train/loop/training_step.hpp"
#include "train/optimizers/fresh_tables.hpp"

namespace capstan {
namespace {

constexpr int64_t skips_in_row_limit = 20;

class Loop {
 public:
  Loop(const TrainInputs& inputs, const TrainConfig& config);
  TrainResult run();

 private:
  void describe_now();
  void resume();
  std::optional<std::filesystem::path> load(const RunState& now);
  void start_warm();
  void open_records();
  void report_ranks();
  /// Is this the run's start from given weights, not yet saved?
  bool before_first_step() const { return state_.step == 0 && !state_.ancestry.empty(); }
  std::optional<std::string> limit() const;
  bool save_due() const;

  void step();
  void solve();
  void refuse_update(const std::string& what, double loss, double norm);
  void warn_of_slow_rank();

  bool validate();                      // false: a signal came
  bool note(const Validation& result);  // returns whether it is the best so far
  void save();
  TrainResult finish();
  TrainResult interrupt();
  /// What ends a run must be the same for all ranks: the clock of rank 0 and any rank's signal, as of the last step.
  double agreed_seconds() const {
    return alone() ? progress_.seconds() : progress_.seconds_before() + step_.rank_gradients().news().clock;
  }
  int agreed_signal() const { return alone() ? StopSignals::received() : step_.rank_gradients().news().signal; }
  bool alone() const { return ranks_.size() == 1; }

  TrainInputs in_;
  TrainConfig config_;
  Communicator one_process_;
  Communicator& ranks_;
  RunFolder folder_;
  TrainingStep step_;
  int64_t total_;
  Schedule schedule_;
  RunState state_;
  RunProgress progress_;
  int slow_rank_ = -1;  // that the log has named last

  bool unsaved_ = true, best_unsaved_ = false;
  bool saved_here_ = false;  // is there a checkpoint in this run's folder? Not yet after a start from another's
  int64_t saved_step_ = -1;
  StepNumbers numbers_;
};

Loop::Loop(const TrainInputs& inputs, const TrainConfig& config)
    : in_(inputs),
      config_(config),
      ranks_(inputs.ranks != nullptr ? *inputs.ranks : one_process_),
      folder_(inputs.folder, ranks_),
      step_(in_.task, in_.params, in_.train, config_, ranks_),
      total_(total_steps(inputs.train, config)),
      schedule_(config.schedule, config.lr, total_),
      progress_(config_, state_, total_, inputs.valid != nullptr, ranks_.first() ? folder_.log_file() : "") {
  if (step_.batches().batches(0) <= 0)
    throw Error(
        "train: the training data does not fill a single batch: give more data, or lower train.batch_size or the "
        "sequence length");
  if (config_.patience > 0 && in_.valid == nullptr)
    throw ConfigError("train.patience: needs validation data; give some, or set train.patience to 0");
  for (const std::string& line : in_.preamble) progress_.log().info(line);
  for (const std::string& line : in_.warnings) progress_.log().warn(line);
  describe_now();
  if (config_.precision == Precision::bf16 && bf16_backend() == Bf16Backend::floats)
    progress_.log().warn("train.precision: bf16 is emulated on this machine: its rounding without its speed");
  if (has_fresh_tables(in_.params))
    if (const auto warning = fresh_tables_warning(in_.train, config_)) progress_.log().warn(*warning);
  if (!alone()) report_ranks();
  resume();
  if (saved_step_ < 0 && in_.warm_start) start_warm();
  if (!ranks_.first()) return;
  if (in_.on_ready) in_.on_ready();
  open_records();
}

/// What the state says of this session rather than of the run's progress.
void Loop::describe_now() {
  std::error_code unknown;
  const std::string working_folder = std::filesystem::current_path(unknown).string();
  if (is_utf8(working_folder)) state_.working_folder = working_folder;
  state_.seed = in_.seed;
  state_.identity = in_.identity;
  state_.settings = settings_of(config_);
  state_.machine = this_machine(config_.precision);
}

void Loop::resume() {
  const RunState now = state_;
  const auto from = load(now);
  if (!from) return;
  in_.params.clear_grads();
  saved_step_ = state_.step;
  unsaved_ = false;
  progress_.resumed();
  progress_.log().info(fmt::format("resumed from {}: step {}, epoch {}, batch {}", from->string(), state_.step,
                                   state_.epoch + 1, state_.batch));
  for (const std::string& change : changes(state_.settings, now.settings))
    progress_.log().info("resume: train." + change);
  for (const std::string& change : changes(state_.machine, now.machine))
    progress_.log().warn(change + ": results may differ in the last bits from those of an uninterrupted run");
  state_.identity = now.identity;
  state_.settings = now.settings;
  state_.machine = now.machine;
  state_.working_folder = now.working_folder;
}

/// The run becomes that of a checkpoint, whose folder is returned; nothing where there is none.
std::optional<std::filesystem::path> Loop::load(const RunState& now) {
  const RunParts parts = step_.parts(state_);
  if (!ranks_.first()) {  // rank 0 decides
    const Communicator::Patience disk(ranks_);
    const std::string chosen = ranks_.broadcast("");
    if (chosen.empty()) return {};
    read_checkpoint(chosen, parts);
    saved_here_ = !in_.resume_from;
    return chosen;
  }
  const AcceptState accept = [&](RunState saved, const std::filesystem::path& from) {
    if (in_.renewed)
      for (auto& [name, text] : saved.identity) text = in_.renewed(name, text);
    check_resumable(saved, now, from.string());
  };
  if (in_.resume_from) {
    folder_.checkpoints().load(*in_.resume_from, parts, accept);
    ranks_.broadcast(in_.resume_from->string());
    return in_.resume_from;
  }
  const auto resumed = folder_.checkpoints().load_newest(parts, accept);
  ranks_.broadcast(resumed ? resumed->from.string() : "");
  if (!resumed) return {};
  for (const std::string& warning : resumed->warnings) progress_.log().warn(warning);
  folder_.checkpoints().repair_best(state_);
  saved_here_ = true;
  return resumed->from;
}

void Loop::start_warm() {
  const WarmStart start = in_.warm_start(step_.parts(state_));
  state_.ancestry = start.ancestry;
  state_.optimizer_step = step_.optimizer().steps();
  for (const std::string& line : start.report) progress_.log().info(line);
  for (const std::string& line : start.warnings) progress_.log().warn(line);
}

void Loop::open_records() {
  // A run that begins anew keeps no line of a killed one, not even of the evaluation before the first step.
  const int64_t recorded = saved_step_ < 0 ? -1 : state_.step;
  RunRecords::Options records{folder_.metrics_file(), "", recorded, {state_.metrics_bytes, state_.metrics_checksum}};
  records.own = !in_.resume_from;
  records.open_window = state_.window_steps > 0;
  if (config_.tensorboard) records.event_folder = in_.folder.string();
  progress_.record(records);
}

/// After the first lines of the log.
void Loop::report_ranks() {
  progress_.log().info(ranks_.description());
  for (int rank = 0; rank < ranks_.size(); ++rank) progress_.log().info("  " + ranks_.name_of(rank));
  const int64_t lanes = step_.first_share().tree.lanes();
  if (lanes < ranks_.size())
    progress_.log().warn(
        fmt::format("train.lanes: the first batch has too few lanes ({}) for {} ranks, so that {} of them have nothing "
                    "to compute; set train.lanes to {} or a multiple of it, or make batches larger",
                    lanes, ranks_.size(), ranks_.size() - lanes, ranks_.size()));
}

std::optional<std::string> Loop::limit() const {
  if (in_.solve && state_.step > 0) return "the weights are solved for";
  return reached_limit(config_, state_, agreed_seconds());
}

bool Loop::save_due() const {
  return best_unsaved_ || (before_first_step() && saved_step_ < 0) ||
         (config_.save_every > 0 && state_.step > saved_step_ && state_.step % config_.save_every == 0);
}

TrainResult Loop::run() {
  if (saved_step_ < 0 && !in_.solve) progress_.log().info(schedule_.event(0));
  for (;;) {
    if (agreed_signal() != 0) return interrupt();
    const bool regular =
        before_first_step() || (config_.valid_every > 0 && state_.step > 0 && state_.step % config_.valid_every == 0);
    // Also the first thing after an interrupted evaluation, so that patience counts as in an uninterrupted run.
    if (in_.valid != nullptr && state_.validated_step != state_.step && (regular || limit()))
      if (!validate()) return interrupt();
    if (limit()) return finish();
    if (save_due() && !in_.solve) save();
    in_.solve ? solve() : step();
  }
}

void Loop::step() {
  const ProfiledStep profiled(in_.profiler != nullptr ? in_.profiler->next_step() : nullptr);
  const Stopwatch watch;
  const int64_t epoch = state_.epoch;
  numbers_.learning_rate = schedule_.rate(state_.step);
  if (epoch > 0 && state_.batch == 0) step_.empty_fresh_tables();
  const TrainingStep::Result result = step_.run(state_, numbers_.learning_rate, progress_.session_seconds());
  if (result.gradient_norm) numbers_.gradient_norm = *result.gradient_norm;
  if (result.sums) {
    numbers_.loss = result.sums->loss / static_cast<double>(std::max<int64_t>(result.sums->targets, 1));
    state_.tokens += result.sums->tokens;
  }
  if (!result.problem.empty()) {
    const double none = std::nan("");
    refuse_update(result.problem, result.sums ? numbers_.loss : none, result.gradient_norm.value_or(none));
  } else if (result.updated) {
    state_.skipped_in_row = 0;
    state_.window_loss += result.sums->loss;
    state_.window_targets += result.sums->targets;
  } else {
    progress_.log().warn(
        fmt::format("step {}: its batches have no targets; the weights were not changed", state_.step + 1));
  }
  ++state_.step;
  ++state_.window_steps;
  unsaved_ = true;
  progress_.pace().step_took(watch.seconds(), result.sums ? result.sums->tokens : 0);
  if (const std::string event = schedule_.event(state_.step); !event.empty()) progress_.log().info(event);
  if (progress_.step_done(numbers_, epoch)) warn_of_slow_rank();
}

/// All epochs at once. After a signal the state is still that of the start.
void Loop::solve() {
  const Stopwatch watch;
  const auto solved = in_.solve();
  if (!solved) return;
  for (const std::string& line : solved->report) progress_.log().info(line);
  state_.step = std::max<int64_t>(total_, 1);
  state_.epoch = std::max<int64_t>(config_.epochs, 1);
  state_.tokens = solved->tokens;
  state_.window_loss = solved->held_out.loss_sum;
  state_.window_targets = solved->held_out.targets;
  unsaved_ = true;
  progress_.pace().step_took(watch.seconds(), solved->tokens);
  progress_.all_done();
  if (in_.valid != nullptr || solved->held_out.targets == 0) return;
  const Validation held_out{solved->held_out, std::nullopt};
  progress_.validated(held_out, note(held_out), watch.seconds());
}

void Loop::warn_of_slow_rank() {
  const auto slow = slow_rank(step_.rank_gradients().take_lane_seconds());
  if (!slow || slow->rank == slow_rank_) return;
  slow_rank_ = slow->rank;
  progress_.log().warn(fmt::format("{} is slower than the median of the ranks by {:.0f} %, and the others wait for it",
                                   ranks_.name_of(slow->rank), 100 * (slow->factor - 1)));
}

void Loop::refuse_update(const std::string& what, double loss, double norm) {
  const std::string text =
      fmt::format("step {}: {} (loss {:.4g}, gradient norm {:.4g}, learning rate {:.3g}); the weights were not changed",
                  state_.step + 1, what, loss, norm, numbers_.learning_rate);
  ++state_.skipped;
  const bool hopeless = ++state_.skipped_in_row >= skips_in_row_limit;
  if (config_.on_nonfinite == OnNonfinite::skip && !hopeless) return progress_.log().warn(text + "; update skipped");
  const std::string kept = saved_step_ >= 0 ? fmt::format("the checkpoint of step {} is intact", saved_step_)
                                            : std::string("there is no checkpoint yet");
  const std::string clip = config_.grad_clip > 0 ? fmt::format("lower train.grad_clip (now {})", config_.grad_clip)
                                                 : std::string("set train.grad_clip (now off)");
  throw Error(fmt::format(
      "{}; {}{}. Lower train.lr, lengthen train.schedule.warmup_steps, or {}; "
      "train.on_nonfinite: skip skips such updates, train.check_finite: true names the operation",
      text, hopeless ? fmt::format("{} consecutive updates were skipped; ", skips_in_row_limit) : "", kept, clip));
}

bool Loop::validate() {
  const Stopwatch watch;
  if (unsaved_) progress_.show_bar();
  const size_t reserved = pool::stats().bytes_reserved;
  std::optional<Validation> result;
  {
    /// Puts the averaged weights into the store for its lifetime.
    struct Averaged {
      Loop& loop;
      explicit Averaged(Loop& l) : loop(l) { loop.step_.swap_average(); }
      ~Averaged() {
        // Where ranks fail, they end.
        if (loop.alone() || std::uncaught_exceptions() == 0) loop.step_.swap_average();
      }
    } const averaged(*this);
    result = capstan::validate(
        in_.task, *in_.valid, config_.micro_batch_tokens, [] { return StopSignals::received() != 0; }, &ranks_);
  }
  // Evaluation may use other shapes, whose blocks of memory training cannot use. Small ones are kept: giving them back
  // and taking them again at every evaluation would scatter them over the heap.
  constexpr size_t worth_returning = size_t{64} << 20;
  if (pool::stats().bytes_reserved > 2 * reserved + worth_returning) pool::trim();
  if (!result) {
    step_.rank_gradients().note_signal(StopSignals::received());
    return false;
  }
  progress_.pace().evaluation_took(watch.seconds());
  progress_.validated(*result, note(*result), watch.seconds());
  return true;
}

bool Loop::note(const Validation& result) {
  unsaved_ = true;
  const bool best = note_validation(result, config_, state_);
  if (best) best_unsaved_ = true;
  return best;
}

void Loop::save() {
  const Stopwatch watch;
  state_.seconds = progress_.seconds();
  progress_.sync_records();  // before the checkpoint that refers to them
  folder_.checkpoints().save(step_.parts(state_), best_unsaved_, config_.keep_last);
  {
    const Communicator::Patience disk(ranks_);
    ranks_.barrier();  // no rank goes on before the checkpoint is whole
  }
  saved_step_ = state_.step;
  unsaved_ = best_unsaved_ = false;
  saved_here_ = true;
  progress_.pace().save_took(watch.seconds());
}

TrainResult Loop::finish() {
  const std::string reason = *limit();
  const bool went_on = unsaved_;
  if (unsaved_) {
    progress_.show_full_bar();
    save();
    progress_.close_window();
  }
  const std::string best = state_.best_loss ? "; best validation " + progress_.best_so_far() : std::string();
  progress_.log().info(
      went_on ? fmt::format("finished at step {}: {}; {} of training{}", state_.step, reason,
                            short_time(progress_.seconds()), best)
              : fmt::format("nothing to do: this run is finished at step {}: {}{}; {}", state_.step, reason, best,
                            in_.solve ? "another name starts a new one" : "raise the limit to continue"));
  return {false, reason, state_};
}

TrainResult Loop::interrupt() {
  const char* const name = sigabbrev_np(agreed_signal());
  const std::string reason = fmt::format("interrupted by SIG{}", name != nullptr ? name : "?");
  if (unsaved_ || !saved_here_) {
    save();
    progress_.close_window();
  }
  progress_.log().info(fmt::format("{} at step {}: saved in {}; the same command resumes the run", reason, state_.step,
                                   folder_.checkpoints().of_step(state_.step).string()));
  return {true, reason, state_};
}

void check_ranks(int ranks, const TrainConfig& config) {
  const int64_t most = config.lanes > 0 ? config.lanes : most_lanes;
  if (ranks > most)
    throw ConfigError(fmt::format(
        "train.lanes: {}; {} ranks need at least as many: a rank computes whole lanes of a batch. Set train.lanes "
        "to {} or a multiple of it (results depend on this number, not on that of the ranks), or start fewer ranks",
        config.lanes > 0 ? std::to_string(config.lanes) : fmt::format("0 means up to {} lanes", most_lanes), ranks,
        ranks));
}

}  // namespace

TrainResult train(const TrainInputs& inputs, const TrainConfig& config) {
  check_config(config);
  if (inputs.ranks != nullptr && inputs.ranks->size() > 1) check_ranks(inputs.ranks->size(), config);
  const StopSignals signals;
  const SignalThread signal_thread;
  return Loop(inputs, config).run();
}

}  // namespace capstan
