// The width is chosen so that training reads about tokens_per_parameter tokens for each parameter (after Hoffmann et
// al. 2022, arXiv 2203.15556, with a smaller number, since n-grams are in tables), by times that two pilots have
// measured. tests/run/test_plan.cpp gives pilots of known times.
#include "run/training/plan.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "core/base/error.hpp"
#include "core/strings/quantities.hpp"
#include "run/setup/run_model.hpp"
#include "train/loop/run_length.hpp"
#include "train/records/reporter.hpp"

namespace capstan {
namespace {

/// Tokens read in training for each parameter that a token is multiplied by. The recipes for enwiki_xml and for
/// tinyshakespeare, whose sizes were tried by hand, have 3.2 and 2.4; without n-grams Hoffmann et al. 2022 have 20.
constexpr double tokens_per_parameter = 3;
constexpr double max_passes = 10, max_parameters_per_token = 4;
constexpr int64_t width_step = 16, min_width = 64, max_width = 2048, default_width = 192;  // default: the first pilot's
constexpr int64_t min_buckets = 1 << 14, max_buckets = 1 << 22;
constexpr double buckets_per_token = 0.8;
/// A plan that takes less than this share of the time says so.
constexpr double well_used = 0.9;

bool has_fresh_tables(const RunConfig& config) {
  const ModelConfig* const model = find_model(config.model);
  return model != nullptr && !model->ngram_embedding.orders.empty() && model->ngram_embedding.fresh_each_epoch;
}

/// Width of the blocks; -1 without blocks: no size is open.
int64_t width_of(const RunConfig& config) {
  const ModelConfig* const model = find_model(config.model);
  return model != nullptr ? model->width : -1;
}

int64_t steps_of_epoch(const RunConfig& config, const DataSource& data) {
  const int64_t batches = data.training().batches_per_epoch(0), each = config.train.accumulate;
  return std::max<int64_t>(1, (batches + each - 1) / each);
}

/// Steps between evaluations; 0: none. An evaluation says little when tables were emptied shortly before: with tables
/// that are emptied at every epoch, evaluations fall on the ends of epochs and, at even distances, between them.
int64_t interval_of_evaluations(const RunConfig& config, const DataSource& data, int64_t steps_per_epoch) {
  const std::unique_ptr<BatchSource> valid = data.has(Split::valid) ? data.validation() : nullptr;
  const int64_t every = evaluation_interval(data.training(), valid.get(), config.train);
  if (every <= 0 || !has_fresh_tables(config)) return every;
  return every >= steps_per_epoch ? every / steps_per_epoch * steps_per_epoch
                                  : steps_per_epoch / (steps_per_epoch / every);
}

/// The power of two that is nearest to a share of the tokens of the text.
int64_t buckets_for(double tokens) {
  const double power = std::round(std::log2(std::max(tokens * buckets_per_token, 1.0)));
  return std::clamp(static_cast<int64_t>(std::exp2(std::min(power, 40.0))), min_buckets, max_buckets);
}

/// The dropout for a number of passes over the text: 0 for one, 0.08 for three, 0.15 for eight.
double dropout_for(double passes) {
  return std::round(100 * std::clamp(0.05 * std::log2(std::max(passes, 1.0)), 0.0, 0.3)) / 100;
}

/// The decay of Muon's matrices that was left open, or null.
MuonConfig* open_decay(TrainConfig& train) {
  MuonConfig* const muon = std::get_if<MuonConfig>(&train.optimizer);
  return muon != nullptr && !muon->weight_decay ? muon : nullptr;
}

/// Weights forget what they were within 1 / (lr decay) steps. This is three quarters of a pass, as Wang and Aitchison
/// 2024 (arXiv 2405.13698) find that passes are what counts: of 0.1, 0.3, 0.6, 1.2 and 2.4 the best for passes of 113
/// steps was 1.2, and for passes of 454 steps 0.3 was ahead of 0.1 (lr 0.01; docs/notes/training.md).
/// The rate is that of the weights that learn fastest.
double decay_for(const TrainConfig& train, int64_t steps_per_epoch) {
  constexpr double lives_per_pass = 1.36, least = 0.1, most = 1.5;
  double lr = train.lr;
  for (const RateRule& rule : train.lr_scale) lr = std::max(lr, rule.factor * train.lr);
  const double decay = lives_per_pass / std::max(lr * static_cast<double>(steps_per_epoch), 1e-9);
  return std::round(100 * std::clamp(decay, least, most)) / 100;
}

/// Makes the plan of plan(): times a first width and the one that it suggests, and chooses by both. Time that pilots
/// take is part of train.minutes.
class Planner {
 public:
  Planner(const RunConfig& config, const DataSource& data, double seconds, const Pilot& pilot, const Fits& fits)
      : open_(config),
        data_(data),
        seconds_(seconds),
        pilot_(pilot),
        fits_(fits),
        steps_per_epoch_(steps_of_epoch(config, data)),
        valid_every_(interval_of_evaluations(config, data, steps_per_epoch_)) {
    const BatchSource& training = data.training();
    const BatchExtent batch = training.batches_per_epoch(0) > 0 ? training.extent(0, 0) : BatchExtent{1, 1};
    text_ = static_cast<double>(training.examples_per_epoch()) * static_cast<double>(batch.columns);
    columns_ = batch.columns;
  }

  RunPlan make() {
    const bool open_width = width_of(open_) == 0;
    const std::vector<Size> widths = open_width ? sizes() : std::vector<Size>();
    int64_t width = open_width ? widths.front().width : width_of(open_);
    for (const Size& size : widths)
      if (size.width <= default_width) width = size.width;
    RunConfig config = with_sizes(width, 1);
    if (!fits_(config)) return {config, false, {}};
    PilotTimes times = time(config);
    if (open_width) {
      // Only the second pilot shows what a step takes besides its operations, so that the choice may change after it.
      if (const Size second = best_of(widths); second.width != width) time(with_sizes(second.width, 1));
      const Size chosen = best_of(widths);
      width = chosen.width;
      times = predicted(chosen.flops);
    }
    config = with_sizes(width, steps_for(times));
    const bool cut = memory_cuts_ && width == widths.back().width;
    return {config, cut, report(config, times)};
  }

 private:
  PilotTimes time(const RunConfig& config) {
    const Stopwatch watch;
    const PilotTimes times = pilot_(config);
    seconds_ -= watch.seconds();
    if (const std::optional<double> operations = flops(config)) piloted_.push_back({*operations, times});
    return times;
  }

  /// Times of a model that needs so many operations per token. A step takes a time for each of them and a time for what
  /// does not depend on the width, such as the tables of n-grams: both from the two pilots.
  PilotTimes predicted(double operations) const {
    const auto& [last_operations, last] = piloted_.back();
    double slower = operations / last_operations;
    if (piloted_.size() > 1) {
      const auto& [first_operations, first] = piloted_.front();
      const double each = (last.step - first.step) / (last_operations - first_operations);
      const double rest = last.step - each * last_operations;
      if (each > 0 && rest > 0) slower = (rest + each * operations) / last.step;
    }
    return {last.step * slower, last.evaluation * slower, last.save};
  }

  double passes_of(int64_t steps) const { return static_cast<double>(steps) / static_cast<double>(steps_per_epoch_); }

  /// The configuration with what it leaves open, for so many steps.
  RunConfig with_sizes(int64_t width, int64_t steps) const {
    RunConfig config = open_;
    TrainConfig& train = config.train;
    train.steps = steps;
    train.valid_every = valid_every_;
    train.schedule.warmup_steps = std::min(train.schedule.warmup_steps, std::max<int64_t>(1, steps / 10));
    if (MuonConfig* const muon = open_decay(train)) muon->weight_decay = decay_for(train, steps_per_epoch_);
    if (find_model(config.model) == nullptr) return config;
    ModelConfig& model = model_of(config);
    if (model.width == 0) model.width = width;
    if (!model.dropout) model.dropout = dropout_for(passes_of(steps));
    if (model.ngram_embedding.buckets == 0) {
      model.ngram_embedding.buckets = buckets_for(text_);
      while (model.ngram_embedding.buckets > min_buckets && !fits_(config)) model.ngram_embedding.buckets /= 2;
    }
    return config;
  }

  /// FLOPs per token. None for a width that other settings do not allow, such as the number of heads.
  std::optional<double> flops(const RunConfig& config) const {
    try {
      const RunModel model(config, model_vocabulary(config, data_.tokenizer()), 1, ParamMemory::none);
      return model.summary(columns_).training_flops();
    } catch (const Error&) {
      return std::nullopt;
    } catch (const std::invalid_argument&) {
      return std::nullopt;
    }
  }

  /// A width with which the model can be made.
  struct Size {
    int64_t width;
    double flops;  // per token
  };
  /// The narrowest, and all wider ones up to the first that does not fit or has too many parameters for the text.
  std::vector<Size> sizes() {
    std::vector<Size> all;
    for (int64_t width = min_width; width <= max_width; width += width_step) {
      const RunConfig config = with_sizes(width, 1);
      const std::optional<double> needed = flops(config);
      if (!needed) continue;
      if (!all.empty() && *needed / 6 > max_parameters_per_token * text_) break;
      memory_cuts_ = !all.empty() && !fits_(config);
      if (memory_cuts_) break;
      all.push_back({width, *needed});
    }
    if (all.empty())
      throw ConfigError(
          fmt::format("model.width: no width from {} to {} in steps of {} goes with the other settings of "
                      "the model; give one",
                      min_width, max_width, width_step));
    return all;
  }

  /// Steps that fit into the time, with evaluations and checkpoints, and are not more than the text or train.epochs
  /// allow.
  double allowed_steps(const PilotTimes& times) const {
    const auto share = [](double seconds, int64_t every) {
      return every > 0 ? seconds / static_cast<double>(every) : 0;
    };
    const double each = times.step + share(times.evaluation, valid_every_) + share(times.save, open_.train.save_every);
    const auto epoch = static_cast<double>(steps_per_epoch_);
    double most = width_of(open_) == 0 ? max_passes * epoch : 1e15;
    if (open_.train.epochs > 0) most = std::min(most, static_cast<double>(open_.train.epochs) * epoch);
    return std::clamp((seconds_ - times.evaluation - times.save) / each, 1.0, most);
  }

  /// The allowed steps, without a last epoch that is not worth beginning.
  int64_t steps_for(const PilotTimes& times) const {
    const auto steps = static_cast<int64_t>(allowed_steps(times));
    const int64_t epoch = steps / steps_per_epoch_, rest = steps % steps_per_epoch_;
    return !has_fresh_tables(open_) || worth_beginning(epoch, rest, steps_per_epoch_) ? steps : steps - rest;
  }

  /// The size whose training would be nearest to tokens_per_parameter and use the time. An operation of the forward
  /// pass is one parameter and token, and training takes six FLOPs for it.
  Size best_of(const std::vector<Size>& sizes) const {
    const auto score = [&](const Size& size) {
      const PilotTimes times = predicted(size.flops);
      const int64_t steps = steps_for(times);
      // A run ends with an epoch; the time that is then left is lost. A tenth of it weighs as much as 1.8 times the
      // parameters.
      constexpr double weight = 6;
      const double lost = std::log(allowed_steps(times) / static_cast<double>(steps));
      return std::abs(std::log(passes_of(steps) * text_ / (tokens_per_parameter * size.flops / 6))) + weight * lost;
    };
    return *std::min_element(sizes.begin(), sizes.end(),
                             [&](const Size& a, const Size& b) { return score(a) < score(b); });
  }

  std::vector<std::string> report(const RunConfig& config, const PilotTimes& times) const {
    std::string sizes;
    if (const ModelConfig* const open = find_model(open_.model)) {
      const ModelConfig& model = model_of(config);
      if (open->width == 0) sizes += fmt::format("width {}, ", model.width);
      if (!open->dropout) sizes += fmt::format("dropout {:g}, ", *model.dropout);
      if (open->ngram_embedding.buckets == 0 && !model.ngram_embedding.orders.empty())
        sizes += fmt::format("{} buckets of n-grams, ", model.ngram_embedding.buckets);
    }
    if (const auto* const muon = std::get_if<MuonConfig>(&open_.train.optimizer);
        muon != nullptr && !muon->weight_decay)
      sizes += fmt::format("weight decay {:g}, ", *std::get<MuonConfig>(config.train.optimizer).weight_decay);
    const int64_t steps = config.train.steps, evaluations = 1 + (valid_every_ > 0 ? steps / valid_every_ : 0);
    const double seconds =
        static_cast<double>(steps) * times.step + static_cast<double>(evaluations) * times.evaluation + times.save;
    std::vector<std::string> lines{
        fmt::format("plan for {:g} min: {}{} steps, {:.3g} passes over {:.0f} tokens, in "
                    "about {}",
                    config.train.minutes, sizes, steps, passes_of(steps), text_, short_time(seconds))};
    if (seconds < well_used * seconds_ && open_.train.epochs == 0)
      lines.emplace_back(
          "the plan is shorter than the time: another epoch does not fit, or more passes over so little text would do "
          "harm; give more time or more text");
    return lines;
  }

  const RunConfig& open_;  // with what the plan has to choose left open
  const DataSource& data_;
  double seconds_;  // that are left for the run
  const Pilot& pilot_;
  const Fits& fits_;
  const int64_t steps_per_epoch_, valid_every_;
  std::vector<std::pair<double, PilotTimes>> piloted_;  // operations per token, and the times of that model
  int64_t columns_ = 1;
  bool memory_cuts_ = false;  // sizes(): the next one does not fit
  double text_ = 0;           // tokens of an epoch
};

}  // namespace

bool has_plan_to_make(const RunConfig& config) { return config.train.minutes > 0 && config.train.steps == 0; }

RunConfig with_plan_of(const RunConfig& saved, RunConfig config) {
  take_choices(saved.model, config.model);
  if (MuonConfig* const muon = open_decay(config.train))
    if (const auto* const chosen = std::get_if<MuonConfig>(&saved.train.optimizer))
      muon->weight_decay = chosen->weight_decay;
  if (saved.train.minutes <= 0 || saved.train.steps == 0) return config;
  if (config.train.minutes != saved.train.minutes)
    throw ConfigError(
        fmt::format("train.minutes: {} was planned for {:g} min: give --minutes {:g} to resume it, or another name",
                    folder_of(saved).string(), saved.train.minutes, saved.train.minutes));
  config.train.steps = saved.train.steps;
  int64_t& warmup = config.train.schedule.warmup_steps;
  warmup = std::min(warmup, std::max<int64_t>(1, config.train.steps / 10));
  if (!config.train.valid_every || has_fresh_tables(saved)) config.train.valid_every = saved.train.valid_every;
  return config;
}

RunPlan plan(const RunConfig& config, const DataSource& data, double seconds, const Pilot& pilot, const Fits& fits) {
  return Planner(config, data, seconds, pilot, fits).make();
}

}  // namespace capstan
