#include "train/loop/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "core/products/gemm_backend.hpp"
#include "core/text/utf8.hpp"
#include "nn/params/bf16_weights.hpp"
#include "train/loop/batch_reader.hpp"
#include "train/loop/evaluate.hpp"
#include "train/loop/lanes.hpp"
#include "train/loop/pace.hpp"
#include "train/loop/rank_batches.hpp"
#include "train/loop/rank_gradients.hpp"
#include "train/loop/run_length.hpp"
#include "train/loop/signals.hpp"
#include "train/optimizers/fresh_tables.hpp"
#include "train/records/reporter.hpp"
#include "train/records/run_records.hpp"
#include "train/runs/checkpoint.hpp"
#include "train/runs/run_folder.hpp"

namespace capstan {
namespace {

constexpr int64_t skips_in_row_limit = 20;
constexpr double nats_per_bit = 0.6931471805599453;

class Loop {
 public:
  Loop(const TrainInputs& inputs, const TrainConfig& config);
  TrainResult run();

 private:
  void resume();
  void start_warm();
  /// Is this the run's start from given weights, not yet saved?
  bool before_first_step() const { return state_.step == 0 && !state_.ancestry.empty(); }
  std::optional<std::string> limit() const { return reached_limit(config_, state_, agreed_seconds()); }
  bool save_due() const;

  void step();
  StepSums accumulate_gradients();
  bool update(const StepSums& sums);  // false: skipped
  void refuse_update(const std::string& what, double loss, double norm);
  void report_step(int64_t epoch);
  void record_window(int64_t epoch);
  void record_open_window();
  std::string status_line(int64_t epoch) const;
  double share_done() const { return pace_.share_done(state_.step, seconds()); }
  void show_bar(double done);
  /// Of the last step.
  int64_t last_epoch() const { return state_.batch == 0 && state_.epoch > 0 ? state_.epoch - 1 : state_.epoch; }

  bool validate();  // false: a signal came
  void record_validation(const Evaluation& result, double took);
  bool is_best(const Evaluation& result) const;
  std::string best_so_far() const;
  void save();
  TrainResult finish();
  TrainResult interrupt();
  double seconds() const { return seconds_before_ + session_.seconds(); }
  /// What ends a run must be the same for all ranks: the clock of rank 0 and any rank's signal, as of the last step.
  double agreed_seconds() const { return alone() ? seconds() : seconds_before_ + rank_gradients_.news().clock; }
  int agreed_signal() const { return alone() ? StopSignals::received() : rank_gradients_.news().signal; }
  bool alone() const { return ranks_.size() == 1; }
  void swap_average();  // the averaged weights into the store, or back
  void report_ranks();

  TrainInputs in_;
  TrainConfig config_;
  Communicator one_process_;
  Communicator& ranks_;
  RunFolder folder_;
  RankBatches rank_batches_;
  BatchReader train_batches_;
  Lanes lanes_;
  Shares shares_;
  std::vector<Elements> owned_;
  RankGradients rank_gradients_;
  int slow_rank_ = -1;  // that the log has named last
  int64_t total_;
  Schedule schedule_;
  Optimizer optimizer_;
  std::unique_ptr<WeightAverage> average_;
  Reporter reporter_;
  std::unique_ptr<RunRecords> records_;
  RunState state_;

  bool unsaved_ = true, best_unsaved_ = false;
  bool saved_here_ = false;  // is there a checkpoint in this run's folder? Not yet after a start from another's
  int64_t saved_step_ = -1;
  double learning_rate_ = 0, norm_ = std::nan(""), last_loss_ = 0;  // of the last step

  Pace pace_;
  Stopwatch session_;
  double seconds_before_ = 0;  // in earlier sessions
};

Loop::Loop(const TrainInputs& inputs, const TrainConfig& config)
    : in_(inputs),
      config_(config),
      ranks_(inputs.ranks != nullptr ? *inputs.ranks : one_process_),
      folder_(inputs.folder, ranks_),
      rank_batches_(inputs.train, config.lanes, ranks_.rank(), ranks_.size()),
      train_batches_(alone() ? inputs.train : static_cast<const BatchSource&>(rank_batches_)),
      lanes_(inputs.task, inputs.params),
      shares_(shares_for(config.optimizer, inputs.params, ranks_.size())),
      owned_(alone() ? std::vector<Elements>{{0, inputs.params.flat_size()}} : shares_.parts(ranks_.rank())),
      rank_gradients_(ranks_, inputs.params, shares_, lanes_),
      total_(total_steps(inputs.train, config)),
      schedule_(config.schedule, config.lr, total_),
      optimizer_(config.optimizer, inputs.params, owned_),
      average_(config.ema_decay > 0 ? std::make_unique<WeightAverage>(config.ema_decay, inputs.params, owned_)
                                    : nullptr),
      reporter_(config.progress, ranks_.first() ? folder_.log_file() : ""),
      pace_({total_, inputs.valid != nullptr ? config.valid_every : 0, config.save_every, 60 * config.max_minutes}) {
  if (train_batches_.batches(0) <= 0)
    throw Error(
        "train: the training data does not fill a single batch: give more data, or lower train.batch_size or the "
        "sequence length");
  if (config_.patience > 0 && in_.valid == nullptr)
    throw ConfigError("train.patience: needs validation data; give some, or set train.patience to 0");
  for (const std::string& line : in_.preamble) reporter_.info(line);
  for (const std::string& line : in_.warnings) reporter_.warn(line);
  std::error_code unknown;
  const std::string working_folder = std::filesystem::current_path(unknown).string();
  if (is_utf8(working_folder)) state_.working_folder = working_folder;
  state_.seed = in_.seed;
  state_.identity = in_.identity;
  state_.settings = settings_of(config_);
  state_.machine = this_machine(config_.precision);
  if (config_.precision == Precision::bf16 && bf16_backend() == Bf16Backend::floats)
    reporter_.warn("train.precision: bf16 is emulated on this machine: its rounding without its speed");
  if (has_fresh_tables(in_.params))
    if (const auto warning = fresh_tables_warning(in_.train, config_)) reporter_.warn(*warning);
  if (!alone()) report_ranks();
  resume();
  if (saved_step_ < 0 && in_.warm_start) start_warm();
  if (!ranks_.first()) return;
  if (in_.on_ready) in_.on_ready();
  const auto warn = [this](const std::string& line) { reporter_.warn(line); };
  // A run that begins anew keeps no line of a killed one, not even of the evaluation before the first step.
  const int64_t recorded = saved_step_ < 0 ? -1 : state_.step;
  RunRecords::Options records{folder_.metrics_file(), "", recorded, {state_.metrics_bytes, state_.metrics_checksum}};
  records.own = !in_.resume_from;
  records.open_window = state_.window_steps > 0;
  if (config_.tensorboard) records.event_folder = in_.folder.string();
  records_ = std::make_unique<RunRecords>(records, warn);
}

void Loop::resume() {
  const RunState now = state_;
  const RunParts parts{in_.params, optimizer_, average_.get(), state_, &ranks_, owned_};
  const AcceptState accept = [&](RunState saved, const std::filesystem::path& from) {
    if (in_.renewed)
      for (auto& [name, text] : saved.identity) text = in_.renewed(name, text);
    check_resumable(saved, now, from.string());
  };
  std::optional<std::filesystem::path> from = in_.resume_from;
  if (!ranks_.first()) {  // rank 0 decides
    const Communicator::Patience disk(ranks_);
    const std::string chosen = ranks_.broadcast("");
    if (chosen.empty()) return;
    from = chosen;
    read_checkpoint(*from, parts);
    saved_here_ = !in_.resume_from;
  } else if (from) {
    folder_.checkpoints().load(*from, parts, accept);
    ranks_.broadcast(from->string());
  } else {
    const auto resumed = folder_.checkpoints().load_newest(parts, accept);
    ranks_.broadcast(resumed ? resumed->from.string() : "");
    if (!resumed) return;
    from = resumed->from;
    for (const std::string& warning : resumed->warnings) reporter_.warn(warning);
    folder_.checkpoints().repair_best(state_);
    saved_here_ = true;
  }
  in_.params.clear_grads();
  saved_step_ = state_.step;
  unsaved_ = false;
  seconds_before_ = state_.seconds;
  reporter_.info(fmt::format("resumed from {}: step {}, epoch {}, batch {}", from->string(), state_.step,
                             state_.epoch + 1, state_.batch));
  for (const std::string& change : changes(state_.settings, now.settings)) reporter_.info("resume: train." + change);
  for (const std::string& change : changes(state_.machine, now.machine))
    reporter_.warn(change + ": results may differ in the last bits from those of an uninterrupted run");
  state_.identity = now.identity;
  state_.settings = now.settings;
  state_.machine = now.machine;
  state_.working_folder = now.working_folder;
}

/// After the first lines of the log.
void Loop::report_ranks() {
  reporter_.info(ranks_.description());
  for (int rank = 0; rank < ranks_.size(); ++rank) reporter_.info("  " + ranks_.name_of(rank));
  const BatchShare first = rank_batches_.share(0, 0);
  if (first.tree.lanes() < ranks_.size())
    reporter_.warn(fmt::format(
        "train.lanes: the first batch has {} lanes, so that {} of {} ranks have nothing to compute; set train.lanes to "
        "{} or a multiple of it, or make batches larger",
        first.tree.lanes(), ranks_.size() - first.tree.lanes(), ranks_.size(), ranks_.size()));
}

void Loop::start_warm() {
  const WarmStart start = in_.warm_start({in_.params, optimizer_, average_.get(), state_, &ranks_, owned_});
  state_.ancestry = start.ancestry;
  state_.optimizer_step = optimizer_.steps();
  for (const std::string& line : start.report) reporter_.info(line);
  for (const std::string& line : start.warnings) reporter_.warn(line);
}

bool Loop::save_due() const {
  return best_unsaved_ || (before_first_step() && saved_step_ < 0) ||
         (config_.save_every > 0 && state_.step > saved_step_ && state_.step % config_.save_every == 0);
}

TrainResult Loop::run() {
  if (saved_step_ < 0) reporter_.info(schedule_.event(0));
  for (;;) {
    if (agreed_signal() != 0) return interrupt();
    const bool regular =
        before_first_step() || (config_.valid_every > 0 && state_.step > 0 && state_.step % config_.valid_every == 0);
    // Also the first thing after an interrupted evaluation, so that patience counts as in an uninterrupted run.
    if (in_.valid != nullptr && state_.validated_step != state_.step && (regular || limit()))
      if (!validate()) return interrupt();
    if (limit()) return finish();
    if (save_due()) save();
    step();
  }
}

void Loop::step() {
  const ProfiledStep profiled(in_.profiler != nullptr ? in_.profiler->next_step() : nullptr);
  const Stopwatch watch;
  const int64_t epoch = state_.epoch;
  learning_rate_ = schedule_.rate(state_.step);
  if (epoch > 0 && state_.batch == 0) empty_fresh_tables(in_.params, optimizer_, average_.get());
  std::optional<StepSums> sums;
  try {
    sums = accumulate_gradients();
  } catch (const std::domain_error& error) {  // the checked tape names the operation
    refuse_update(error.what(), std::nan(""), std::nan(""));
  }
  if (sums) {
    last_loss_ = sums->loss / static_cast<double>(std::max<int64_t>(sums->targets, 1));
    state_.tokens += sums->tokens;
    if (update(*sums)) {
      state_.window_loss += sums->loss;
      state_.window_targets += sums->targets;
    }
  }
  ++state_.step;
  ++state_.window_steps;
  unsaved_ = true;
  pace_.step_took(watch.seconds(), sums ? sums->tokens : 0);
  if (const std::string event = schedule_.event(state_.step); !event.empty()) reporter_.info(event);
  report_step(epoch);
}

StepSums Loop::accumulate_gradients() {
  StepSums sums;
  const int64_t epoch = state_.epoch, batches = train_batches_.batches(epoch);
  // The position moves first: a skipped step has used its batches too.
  const int64_t first = state_.batch, last = first + std::min(config_.accumulate, batches - first);
  state_.batch = last;
  if (last >= batches) {
    ++state_.epoch;
    state_.batch = 0;
  }
  std::optional<Bf16Weights> rounded;
  if (config_.precision == Precision::bf16) rounded.emplace(in_.params);
  PassOptions options{
      config_.lanes, config_.micro_batch_tokens, static_cast<uint64_t>(state_.step), {config_.check_finite}};
  for (int64_t index = first; index < last; ++index) {
    options.fresh = index == first;
    const Batch batch = train_batches_.batch(epoch, index);
    if (alone())
      lanes_.add_gradients(batch, options, sums);
    else
      rank_gradients_.add_gradients(batch, rank_batches_.share(epoch, index), options, StopSignals::received(),
                                    session_.seconds(), sums);
  }
  return sums;
}

bool Loop::update(const StepSums& sums) {
  if (sums.targets == 0) {
    reporter_.warn(fmt::format("step {}: its batches have no targets; the weights were not changed", state_.step + 1));
    return false;
  }
  const double scale = 1 / static_cast<double>(sums.targets);
  norm_ = alone() ? gradient_norm(in_.params, scale) : rank_gradients_.norm(scale);
  if (!std::isfinite(sums.loss) || !std::isfinite(norm_)) {
    refuse_update(std::isfinite(sums.loss) ? "the gradient is not finite" : "the loss is not finite", sums.loss * scale,
                  norm_);
    return false;
  }
  const auto step = [&] { optimizer_.step(in_.params, scale * clip_factor(norm_, config_.grad_clip), learning_rate_); };
  alone() ? step() : rank_gradients_.update(step);
  state_.optimizer_step = optimizer_.steps();
  state_.skipped_in_row = 0;
  if (average_) average_->update(in_.params, optimizer_.steps());
  return true;
}

void Loop::refuse_update(const std::string& what, double loss, double norm) {
  in_.params.clear_grads();
  const std::string text =
      fmt::format("step {}: {} (loss {:.4g}, gradient norm {:.4g}, learning rate {:.3g}); the weights were not changed",
                  state_.step + 1, what, loss, norm, learning_rate_);
  ++state_.skipped;
  const bool hopeless = ++state_.skipped_in_row >= skips_in_row_limit;
  if (config_.on_nonfinite == OnNonfinite::skip && !hopeless) return reporter_.warn(text + "; update skipped");
  const std::string kept = saved_step_ >= 0 ? fmt::format("the checkpoint of step {} is intact", saved_step_)
                                            : std::string("there is no checkpoint yet");
  const std::string clip = config_.grad_clip > 0 ? fmt::format("lower train.grad_clip (now {})", config_.grad_clip)
                                                 : std::string("set train.grad_clip (now off)");
  throw Error(fmt::format(
      "{}; {}{}. Lower train.lr, lengthen train.schedule.warmup_steps, or {}; "
      "train.on_nonfinite: skip skips such updates, train.check_finite: true names the operation",
      text, hopeless ? fmt::format("{} consecutive updates were skipped; ", skips_in_row_limit) : "", kept, clip));
}

std::string Loop::status_line(int64_t epoch) const {
  const double loss =
      state_.window_targets > 0 ? state_.window_loss / static_cast<double>(state_.window_targets) : last_loss_;
  const double left = pace_.time_left(state_.step, seconds());
  return fmt::format(
      "Ep. {} : Step {}{} : Loss {:.4g} ({:.3g} bpt) : {} tok/s : gnorm {:.3g} : lr {:.2e} : RSS {:.0f} MB{}",
      epoch + 1, state_.step, total_ > 0 ? "/" + std::to_string(total_) : "", loss, loss / nats_per_bit,
      short_count(pace_.tokens_per_second()), norm_, learning_rate_, static_cast<double>(resident_bytes()) / 1e6,
      left >= 0 ? " : ETA " + short_time(left) : "");
}

void Loop::report_step(int64_t epoch) {
  const double done = share_done();
  if (state_.step % config_.log_every != 0 && state_.step != 1)
    return reporter_.tick(done, [&] { return status_line(epoch); });
  reporter_.status(status_line(epoch));
  reporter_.tick(done, [&] { return status_line(epoch); });
  if (const auto slow = slow_rank(rank_gradients_.take_lane_seconds()); slow && slow->rank != slow_rank_) {
    slow_rank_ = slow->rank;
    reporter_.warn(fmt::format("{} is slower than the median of the ranks by {:.0f} %, and the others wait for it",
                               ranks_.name_of(slow->rank), 100 * (slow->factor - 1)));
  }
  record_window(epoch);
  state_.window_loss = 0;
  state_.window_targets = 0;
  state_.window_steps = 0;
  pace_.start_window();
}

/// The line of the steps since the last logged one.
void Loop::record_window(int64_t epoch) {
  const double targets = static_cast<double>(state_.window_targets);
  nlohmann::json line = {{"event", "train"},
                         {"step", state_.step},
                         {"epoch", epoch + 1},
                         {"loss", targets > 0 ? nlohmann::json(state_.window_loss / targets) : nlohmann::json(nullptr)},
                         {"grad_norm", norm_},
                         {"lr", learning_rate_},
                         {"tokens", state_.tokens},
                         {"tokens_per_second", pace_.tokens_per_second()},
                         {"seconds", seconds()},
                         {"rss_bytes", resident_bytes()},
                         {"peak_rss_bytes", peak_resident_bytes()}};
  if (state_.skipped > 0) line["skipped"] = state_.skipped;
  if (records_) records_->add(line);
}

/// At the end of a session: the steps since the last logged one would not be seen otherwise. The line follows the
/// checkpoint's mark, so a run that goes on from here replaces it by that of the whole window.
void Loop::record_open_window() {
  if (state_.window_steps == 0) return;
  reporter_.status(status_line(last_epoch()));
  record_window(last_epoch());
}

/// After at least one step of this session.
void Loop::show_bar(double done) { reporter_.show_now(done, status_line(last_epoch())); }

bool Loop::validate() {
  const Stopwatch watch;
  if (unsaved_) show_bar(share_done());
  const size_t reserved = pool::stats().bytes_reserved;
  std::optional<Evaluation> result;
  {
    /// Puts the averaged weights into the store for its lifetime.
    struct Averaged {
      Loop& loop;
      explicit Averaged(Loop& l) : loop(l) { loop.swap_average(); }
      ~Averaged() {
        // Where ranks fail, they end.
        if (loop.alone() || std::uncaught_exceptions() == 0) loop.swap_average();
      }
    } const averaged(*this);
    result = evaluate(
        in_.task, *in_.valid, config_.micro_batch_tokens, [] { return StopSignals::received() != 0; }, &ranks_);
  }
  // Evaluation may use other shapes, whose blocks of memory training cannot use. Small ones are kept: giving them back and
  // taking them again at every evaluation would scatter them over the heap.
  constexpr size_t worth_returning = size_t{64} << 20;
  if (pool::stats().bytes_reserved > 2 * reserved + worth_returning) pool::trim();
  if (!result) {
    rank_gradients_.note_signal(StopSignals::received());
    return false;
  }
  pace_.evaluation_took(watch.seconds());
  record_validation(*result, watch.seconds());
  return true;
}

void Loop::swap_average() {
  if (!average_) return;
  average_->swap(in_.params);
  if (!alone()) rank_gradients_.gather_values();
}

bool Loop::is_best(const Evaluation& result) const {
  if (config_.monitor == Monitor::accuracy)
    return !state_.best_accuracy || result.accuracy() > *state_.best_accuracy + config_.min_delta;
  return !state_.best_loss || result.loss() < *state_.best_loss - config_.min_delta;
}

std::string Loop::best_so_far() const {
  return config_.monitor == Monitor::accuracy && state_.best_accuracy
             ? fmt::format("accuracy {:.2f} % at step {}", 100 * *state_.best_accuracy, state_.best_step)
             : fmt::format("loss {:.4f} at step {}", *state_.best_loss, state_.best_step);
}

void Loop::record_validation(const Evaluation& result, double took) {
  state_.validated_step = state_.step;
  unsaved_ = true;
  const double loss = result.loss();
  const bool best = std::isfinite(loss) && is_best(result);
  if (best) {
    state_.best_loss = loss;
    state_.best_accuracy = result.accuracy();
    state_.best_step = state_.step;
    state_.stalled = 0;
    best_unsaved_ = true;
  } else {
    ++state_.stalled;
  }
  const std::string verdict = best ? std::string("new best")
                                   : fmt::format("stalled {} times (last best: {})", state_.stalled,
                                                 state_.best_loss ? best_so_far() : std::string("none"));
  reporter_.info(fmt::format("Valid : Step {} : Loss {:.4f} ({:.3f} bpt) : Accuracy {:.2f} % : {} targets : {} : {}",
                             state_.step, loss, result.bits(), 100 * result.accuracy(),
                             short_count(static_cast<double>(result.targets)), short_time(took), verdict));
  if (!records_) return;
  records_->add({{"event", "valid"},
                 {"step", state_.step},
                 {"loss", loss},
                 {"bits", result.bits()},
                 {"accuracy", result.accuracy()},
                 {"targets", result.targets},
                 {"best", best},
                 {"stalled", state_.stalled},
                 {"seconds", seconds()}});
}

void Loop::save() {
  const Stopwatch watch;
  state_.seconds = seconds();
  // On the disk before the checkpoint that refers to it.
  if (records_) {
    const MetricsMark mark = records_->sync();
    state_.metrics_bytes = mark.bytes;
    state_.metrics_checksum = mark.checksum;
  }
  folder_.checkpoints().save({in_.params, optimizer_, average_.get(), state_, &ranks_, owned_}, best_unsaved_,
                             config_.keep_last);
  {
    const Communicator::Patience disk(ranks_);
    ranks_.barrier();  // nobody goes on before the checkpoint is whole
  }
  saved_step_ = state_.step;
  unsaved_ = best_unsaved_ = false;
  saved_here_ = true;
  pace_.save_took(watch.seconds());
}

TrainResult Loop::finish() {
  const std::string reason = *limit();
  const bool went_on = unsaved_;
  if (unsaved_) {
    show_bar(1);
    save();
    record_open_window();
  }
  const std::string best = state_.best_loss ? "; best validation " + best_so_far() : std::string();
  reporter_.info(
      went_on
          ? fmt::format("finished at step {}: {}; {} of training{}", state_.step, reason, short_time(seconds()), best)
          : fmt::format("nothing to do: this run is finished at step {}: {}{}; raise the limit to continue",
                        state_.step, reason, best));
  return {false, reason, state_};
}

TrainResult Loop::interrupt() {
  const char* const name = sigabbrev_np(agreed_signal());
  const std::string reason = fmt::format("interrupted by SIG{}", name != nullptr ? name : "?");
  if (unsaved_ || !saved_here_) {
    save();
    record_open_window();
  }
  reporter_.info(fmt::format("{} at step {}: saved in {}; the same command resumes the run", reason, state_.step,
                             folder_.checkpoints().of_step(state_.step).string()));
  return {true, reason, state_};
}

}  // namespace

namespace {

void check_ranks(int ranks, const TrainConfig& config) {
  const int64_t most = config.lanes > 0 ? config.lanes : most_lanes;
  if (ranks > most)
    throw ConfigError(fmt::format(
        "train.lanes: {}; {} ranks need at least as many: a rank computes whole lanes of a batch. Set train.lanes to "
        "{} "
        "or a multiple of it (results depend on this number, not on that of the ranks), or start fewer ranks",
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
