#include "models/generate.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

const SamplingConfig& checked(const SamplingConfig& c) {
  check(c.temperature >= 0 && std::isfinite(c.temperature), "generate: temperature {} is not a number >= 0",
        c.temperature);
  check(c.top_k >= 0, "generate: top_k {} is negative", c.top_k);
  check(c.top_p >= 0 && c.top_p <= 1, "generate: top_p {} is outside 0 ... 1", c.top_p);
  check(c.repetition_penalty > 0 && std::isfinite(c.repetition_penalty),
        "generate: repetition_penalty {} is not a number > 0", c.repetition_penalty);
  return c;
}

}  // namespace

Sampler::Sampler(const SamplingConfig& config, int64_t vocabulary)
    : config_(checked(config)),
      random_(random_key(static_cast<uint64_t>(config.seed), "generate")),
      seen_(static_cast<size_t>(vocabulary), false) {}

void Sampler::see(int32_t token) { seen_.at(static_cast<size_t>(token)) = true; }

std::vector<double> Sampler::penalised(const Array& logits) const {
  check(logits.size() == static_cast<int64_t>(seen_.size()), "generate: {} logits for a vocabulary of {}",
        logits.size(), seen_.size());
  std::vector<double> out(logits.data(), logits.data() + logits.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!std::isfinite(out[i]))
      throw Error(
          fmt::format("generate: the logit of token {} is {}: the model's weights are damaged or its training diverged",
                      i, out[i]));
    if (seen_[i]) out[i] = out[i] > 0 ? out[i] / config_.repetition_penalty : out[i] * config_.repetition_penalty;
  }
  return out;
}

int32_t Sampler::choose(const Array& logits) {
  const std::vector<double> scores = penalised(logits);
  if (config_.temperature == 0)
    return static_cast<int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());

  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](int32_t a, int32_t b) {
    const double x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  };
  const size_t kept = config_.top_k > 0 ? std::min(order.size(), static_cast<size_t>(config_.top_k)) : order.size();
  std::partial_sort(order.begin(), order.begin() + static_cast<long>(kept), order.end(), likelier);
  order.resize(kept);

  // Differences from the largest score, which overflow at no temperature.
  const double top = scores[static_cast<size_t>(order[0])];
  std::vector<double> cumulative;
  double total = 0;
  for (const int32_t token : order) {
    total += std::exp((scores[static_cast<size_t>(token)] - top) / config_.temperature);
    cumulative.push_back(total);
  }
  const auto reaching = std::lower_bound(cumulative.begin(), cumulative.end(), config_.top_p * total);
  const size_t last = std::min(cumulative.size() - 1, static_cast<size_t>(reaching - cumulative.begin()));
  const auto drawn = std::upper_bound(cumulative.begin(), cumulative.begin() + static_cast<long>(last),
                                      random_.uniform() * cumulative[last]);
  return order[static_cast<size_t>(drawn - cumulative.begin())];
}

namespace {

/// The model, its state and the text so far.
class Generation {
 public:
  Generation(const LanguageModel& model, const std::vector<int32_t>& prompt, const GenerateOptions& options)
      : model_(model),
        options_(options),
        sampler_(options.sampling, model.vocabulary()),
        state_(model.make_state(1, options.weights)),
        window_(prompt) {
    if (prompt.empty()) throw Error("generate: the prompt is empty: give at least one token to continue");
    for (const int32_t token : prompt) {
      if (token < 0 || token >= model.vocabulary())
        throw Error(
            fmt::format("generate: token {} of the prompt is outside the vocabulary of {}", token, model.vocabulary()));
      sampler_.see(token);
    }
    const auto limit = model.position_limit();
    if (limit && !options.slide && static_cast<int64_t>(prompt.size()) > *limit)
      throw Error(fmt::format(
          "generate: the prompt has {} tokens, but this model has {} positions: shorten it or let the window slide",
          prompt.size(), *limit));
  }

  Generated run() {
    Array logits = read_window();
    while (options_.max_tokens < 0 || static_cast<int64_t>(out_.tokens.size()) < options_.max_tokens) {
      const int32_t token = sampler_.choose(logits);
      if (options_.stop_token && token == *options_.stop_token) return finish(GenerateEnd::stop_token);
      out_.tokens.push_back(token);
      if (options_.on_token && !options_.on_token(token)) return finish(GenerateEnd::callback);
      if (static_cast<int64_t>(out_.tokens.size()) == options_.max_tokens) break;
      if (full() && !options_.slide) return finish(GenerateEnd::window);
      logits = read(token);
    }
    return finish(GenerateEnd::max_tokens);
  }

 private:
  bool full() const { return model_.position_limit() && state_.position >= *model_.position_limit(); }

  Generated finish(GenerateEnd end) {
    out_.end = end;
    return std::move(out_);
  }

  /// Reads the window from its beginning, or its last half if it does not fit.
  Array read_window() {
    const auto limit = model_.position_limit();
    if (limit && static_cast<int64_t>(window_.size()) > *limit) {
      window_.erase(window_.begin(), window_.end() - static_cast<long>(std::max<int64_t>(1, *limit / 2)));
      if (!out_.slid && options_.on_slide) options_.on_slide();
      out_.slid = true;
    }
    state_.reset();
    return model_.prefill(Ids(Shape{1, static_cast<int64_t>(window_.size())}, window_), state_);
  }

  Array read(int32_t token) {
    sampler_.see(token);
    if (model_.position_limit()) window_.push_back(token);  // only a model that slides reads it again
    if (full()) return read_window();
    return model_.step(Ids(Shape{1}, token), state_);
  }

  const LanguageModel& model_;
  const GenerateOptions& options_;
  Sampler sampler_;
  DecodeState state_;
  std::vector<int32_t> window_;  // tokens that `state_` has read
  Generated out_;
};

}  // namespace

Generated generate(const LanguageModel& model, const std::vector<int32_t>& prompt, const GenerateOptions& options) {
  return Generation(model, prompt, options).run();
}

}  // namespace capstan::CAPSTAN_PRECISION
