// Losses are summed in the state's window from one logged step to the next, so that a run that goes on in between logs
// the whole window. The line of an incomplete window comes after the place of metrics.jsonl that the checkpoint has
// noted, so that a run which goes on replaces it. tests/train/test_loop.cpp.
#include "train/loop/run_progress.hpp"

#include "core/strings/quantities.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace capstan {
namespace {

constexpr double nats_per_bit = 0.6931471805599453;

}  // namespace

RunProgress::RunProgress(const TrainConfig& config, RunState& state, int64_t total_steps, RunKind kind,
                         Reporter reporter)
    : config_(config),
      state_(state),
      total_steps_(total_steps),
      kind_(kind),
      reporter_(std::move(reporter)),
      pace_({total_steps, config.valid_every.value_or(0), config.save_every, 60 * config.max_minutes}) {}

void RunProgress::record(const std::string& metrics_file, int64_t step, bool own) {
  metrics_.emplace(metrics_file, step, MetricsMark{state_.metrics_bytes, state_.metrics_checksum}, own,
                   [this](const std::string& line) { reporter_.warn(line); });
}

void RunProgress::record_line(const nlohmann::json& line) {
  if (metrics_) metrics_->add(line);
}

std::string RunProgress::status_line(int64_t epoch) const {
  const double memory = static_cast<double>(resident_bytes()) / 1e6;
  if (kind_ == RunKind::solved)  // it has no steps with a rate
    return fmt::format("{}RSS {:.0f} MB", state_.best.empty() ? "" : best_so_far() + " : ", memory);
  const double loss =
      state_.window_targets > 0 ? state_.window_loss / static_cast<double>(state_.window_targets) : numbers_.loss;
  const double left = time_left();
  // The first fields are those that a narrow terminal shows.
  return fmt::format("Step {}{} : {}{} : {} tok/s : Ep. {} : lr {:.2e} : gnorm {:.3g} : RSS {:.0f} MB", state_.step,
                     total_steps_ > 0 ? "/" + std::to_string(total_steps_) : "", loss_text(loss),
                     left >= 0 ? " : ETA " + short_time(left) : "", short_count(pace_.tokens_per_second()), epoch + 1,
                     numbers_.learning_rate, numbers_.gradient_norm, memory);
}

std::string RunProgress::loss_text(double loss) const {
  return fmt::format("Loss {:.4f}", loss) +
         (kind_ == RunKind::tokens ? fmt::format(" ({:.3f} bpt)", loss / nats_per_bit) : "");
}

std::string RunProgress::at_step(int64_t step) const {
  return kind_ == RunKind::solved ? "" : fmt::format(" at step {}", step);
}

bool RunProgress::step_done(const StepNumbers& numbers, int64_t epoch) {
  numbers_ = numbers;
  const bool logged = state_.step % config_.log_every == 0 || state_.step == 1;
  if (logged) reporter_.often(statuses_, share_done(), status_line(epoch), false);
  reporter_.tick(share_done(), [&] { return status_line(epoch); });
  if (!logged) return false;
  record_window(epoch);
  clear_window();
  pace_.start_window();
  return true;
}

/// Writes the line of the steps since the last logged one into metrics.jsonl.
void RunProgress::record_window(int64_t epoch) {
  if (!metrics_) return;
  const double targets = static_cast<double>(state_.window_targets);
  nlohmann::json line = {{"event", "train"},
                         {"step", state_.step},
                         {"epoch", epoch + 1},
                         {"loss", targets > 0 ? nlohmann::json(state_.window_loss / targets) : nlohmann::json(nullptr)},
                         {"grad_norm", numbers_.gradient_norm},
                         {"lr", numbers_.learning_rate},
                         {"tokens", state_.tokens},
                         {"tokens_per_second", pace_.tokens_per_second()},
                         {"seconds", seconds()},
                         {"rss_bytes", resident_bytes()},
                         {"peak_rss_bytes", peak_resident_bytes()}};
  record_line(line);
}

void RunProgress::clear_window() {
  state_.window_loss = 0;
  state_.window_targets = 0;
  state_.window_steps = 0;
}

void RunProgress::close_window() {
  if (state_.window_steps == 0) return;
  reporter_.often(statuses_, 1, status_line(last_epoch()), false);
  record_window(last_epoch());
}

void RunProgress::all_done() {
  record_window(last_epoch());
  clear_window();
}

void RunProgress::show_bar() { reporter_.show_now(share_done(), status_line(last_epoch())); }

void RunProgress::show_full_bar() { reporter_.show_now(1, status_line(last_epoch())); }

std::string RunProgress::best_so_far() const {
  const Metric& metric = metric_of(config_.monitor);
  const auto best = state_.best.find(metric.name);
  const Metric& shown = best != state_.best.end() ? metric : metrics().front();
  return shown.text(state_.best.at(shown.name)) + at_step(state_.best_step);
}

void RunProgress::validated(const Validation& result, bool best, double took) {
  const Evaluation& total = result.total;
  const std::string verdict = best ? std::string("new best")
                                   : fmt::format("stalled {} times (last best: {})", state_.stalled,
                                                 state_.best.empty() ? std::string("none") : best_so_far());
  nlohmann::json line = {{"event", "valid"},          {"step", state_.step},  {"bits", total.bits()},    {"best", best},
                         {"stalled", state_.stalled}, {"seconds", seconds()}, {"targets", total.targets}};
  std::string text = kind_ == RunKind::solved ? "Valid" : fmt::format("Valid : Step {}", state_.step);
  if (*result.by != '\0') {
    text = result.by;
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
    line["by"] = result.by;
  }
  for (const Metric& metric : metrics()) {
    const std::optional<double> value = metric.compute(result);
    if (!value) continue;
    line[metric.name] = *value;
    text += metric.unit == Metric::Unit::nats    ? " : " + loss_text(*value)
            : metric.unit == Metric::Unit::share ? fmt::format(" : {} {:.2f} %", metric.title, 100 * *value)
                                                 : fmt::format(" : {} {:.4f}", metric.title, *value);
  }
  if (const auto error = total.standard_error(); kind_ == RunKind::tokens && error) {
    line["loss_standard_error"] = *error;
    text += fmt::format(" : standard error {:.2g}", *error);
  }
  if (result.labels) {
    if (result.labels->thresholds.empty()) {
      text += fmt::format(" : Threshold {:.2f}", result.labels->threshold);
      line["threshold"] = result.labels->threshold;
    }
    for (const PrecisionAt& at : result.labels->precision_at) line[fmt::format("precision_at_{}", at.k)] = at.precision;
  }
  reporter_.often(validations_, share_done(),
                  fmt::format("{} : {} {} : {} : {}", text, short_count(static_cast<double>(total.targets)),
                              kind_ == RunKind::tokens ? "targets" : "texts", short_time(took), verdict),
                  true);
  record_line(line);
  if (!std::isfinite(total.loss()) && !std::exchange(warned_of_loss_, true))
    reporter_.warn(fmt::format(
        "the validation loss{} is {}: the weights are damaged or training diverges, and no checkpoint of them will be "
        "the best; lower train.lr",
        at_step(state_.step), total.loss()));
}

void RunProgress::sync_records() {
  if (!metrics_) return;
  const MetricsMark mark = metrics_->sync();
  state_.metrics_bytes = mark.bytes;
  state_.metrics_checksum = mark.checksum;
}

}  // namespace capstan
