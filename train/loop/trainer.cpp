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
  std::optional<std::string> limit() const { return reached_limit(config_, state_, seconds()); }
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

  TrainInputs in_;
  TrainConfig config_;
  RunFolder folder_;
  BatchReader train_batches_;
  Lanes lanes_;
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
      folder_(inputs.folder),
      train_batches_(inputs.train),
      lanes_(inputs.task, inputs.params),
      total_(total_steps(inputs.train, config)),
      schedule_(config.schedule, config.lr, total_),
      optimizer_(config.optimizer, inputs.params),
      average_(config.ema_decay > 0 ? std::make_unique<WeightAverage>(config.ema_decay, inputs.params) : nullptr),
      reporter_(config.progress, folder_.log_file()),
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
  resume();
  if (in_.on_ready) in_.on_ready();
  const auto warn = [this](const std::string& line) { reporter_.warn(line); };
  RunRecords::Options records{folder_.metrics_file(), "", state_.step, {state_.metrics_bytes, state_.metrics_checksum}};
  records.own = !in_.resume_from;
  records.open_window = state_.window_steps > 0;
  if (config_.tensorboard) records.event_folder = in_.folder.string();
  records_ = std::make_unique<RunRecords>(records, warn);
}

void Loop::resume() {
  const RunState now = state_;
  const RunParts parts{in_.params, optimizer_, average_.get(), state_};
  const AcceptState accept = [&](const RunState& saved, const std::filesystem::path& from) {
    check_resumable(saved, now, from.string());
  };
  std::optional<std::filesystem::path> from = in_.resume_from;
  if (from) {
    folder_.checkpoints().load(*from, parts, accept);
  } else {
    const auto resumed = folder_.checkpoints().load_newest(parts, accept);
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
  state_.settings = now.settings;
  state_.machine = now.machine;
  state_.working_folder = now.working_folder;
}

bool Loop::save_due() const {
  return best_unsaved_ ||
         (config_.save_every > 0 && state_.step > saved_step_ && state_.step % config_.save_every == 0);
}

TrainResult Loop::run() {
  if (saved_step_ < 0) reporter_.info(schedule_.event(0));
  for (;;) {
    if (StopSignals::received() != 0) return interrupt();
    const bool regular = config_.valid_every > 0 && state_.step > 0 && state_.step % config_.valid_every == 0;
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
  const PassOptions options{
      config_.lanes, config_.micro_batch_tokens, static_cast<uint64_t>(state_.step), {config_.check_finite}};
  for (int64_t index = first; index < last; ++index)
    lanes_.add_gradients(train_batches_.batch(epoch, index), options, sums);
  return sums;
}

bool Loop::update(const StepSums& sums) {
  if (sums.targets == 0) {
    reporter_.warn(fmt::format("step {}: its batches have no targets; the weights were not changed", state_.step + 1));
    return false;
  }
  const double scale = 1 / static_cast<double>(sums.targets);
  norm_ = gradient_norm(in_.params, scale);
  if (!std::isfinite(sums.loss) || !std::isfinite(norm_)) {
    refuse_update(std::isfinite(sums.loss) ? "the gradient is not finite" : "the loss is not finite", sums.loss * scale,
                  norm_);
    return false;
  }
  optimizer_.step(in_.params, scale * clip_factor(norm_, config_.grad_clip), learning_rate_);
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
  records_->add(line);
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
      WeightAverage* average;
      ParamStore& params;
      Averaged(WeightAverage* a, ParamStore& p) : average(a), params(p) {
        if (average != nullptr) average->swap(params);
      }
      ~Averaged() {
        if (average != nullptr) average->swap(params);
      }
    } const averaged(average_.get(), in_.params);
    result = evaluate(in_.task, *in_.valid, config_.micro_batch_tokens, [] { return StopSignals::received() != 0; });
  }
  // Evaluation may use other shapes, whose blocks of memory training cannot use.
  if (pool::stats().bytes_reserved > 2 * reserved) pool::trim();
  if (!result) return false;
  pace_.evaluation_took(watch.seconds());
  record_validation(*result, watch.seconds());
  return true;
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
  const MetricsMark mark = records_->sync();
  state_.metrics_bytes = mark.bytes;
  state_.metrics_checksum = mark.checksum;
  folder_.checkpoints().save({in_.params, optimizer_, average_.get(), state_}, best_unsaved_, config_.keep_last);
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
  const char* const name = sigabbrev_np(StopSignals::received());
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

TrainResult train(const TrainInputs& inputs, const TrainConfig& config) {
  check_config(config);
  const StopSignals signals;
  const SignalThread signal_thread;
  return Loop(inputs, config).run();
}

}  // namespace capstan
