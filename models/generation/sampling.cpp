// The Sampler: penalties, cuts by top_k, top_p and min_p, and the draw. tests/models/test_generate.cpp.
#include "models/generation/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/math.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// The settings, after checking them.
const SamplingConfig& checked(const SamplingConfig& c) {
  check(c.temperature >= 0 && std::isfinite(c.temperature), "generate: temperature {} is not a number >= 0",
        c.temperature);
  check(c.top_k >= 0, "generate: top_k {} is negative", c.top_k);
  check(c.top_p >= 0 && c.top_p <= 1, "generate: top_p {} is outside 0 ... 1", c.top_p);
  check(c.min_p >= 0 && c.min_p <= 1, "generate: min_p {} is outside 0 ... 1", c.min_p);
  check(c.repetition_penalty > 0 && std::isfinite(c.repetition_penalty),
        "generate: repetition_penalty {} is not a number > 0", c.repetition_penalty);
  for (const double added : {c.frequency_penalty, c.presence_penalty})
    check(std::isfinite(added), "generate: a penalty of {} is not a finite number", added);
  return c;
}

}  // namespace

Sampler::Sampler(const SamplingConfig& config, int64_t vocabulary, const std::vector<int32_t>& banned, int64_t stream)
    : config_(checked(config)),
      random_(random_key(static_cast<uint64_t>(config.seed),
                         stream == 0 ? std::string("generate") : fmt::format("generate/{}", stream))),
      seen_(static_cast<size_t>(vocabulary), false),
      banned_(banned) {
  for (const int32_t token : banned_)
    check(token >= 0 && token < vocabulary, "generate: banned token {} is outside the vocabulary of {}", token,
          vocabulary);
  for (const auto& [token, bias] : config.logit_bias)
    if (token < 0 || token >= vocabulary || !std::isfinite(bias))
      throw ConfigError(fmt::format("logit_bias: {} for token {}: expected finite numbers for tokens of 0 to {}", bias,
                                    token, vocabulary - 1));
  check(static_cast<int64_t>(banned_.size()) < vocabulary, "generate: all {} tokens are banned", vocabulary);
}

void Sampler::see(int32_t token) { seen_.at(static_cast<size_t>(token)) = true; }

void Sampler::write(int32_t token) {
  see(token);
  ++written_[token];
}

std::vector<double> Sampler::penalised(const Array& logits) const {
  check(logits.size() == static_cast<int64_t>(seen_.size()), "generate: {} logits for a vocabulary of {}",
        logits.size(), seen_.size());
  std::vector<double> out(logits.data(), logits.data() + logits.size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!std::isfinite(out[i]))
      throw NotFinite(fmt::format(
          "the logit of token {} is {}: the model's weights are damaged or its training diverged", i, out[i]));
    if (seen_[i]) out[i] = out[i] > 0 ? out[i] / config_.repetition_penalty : out[i] * config_.repetition_penalty;
  }
  for (const auto& [token, count] : written_)
    out[static_cast<size_t>(token)] -=
        config_.frequency_penalty * static_cast<double>(count) + config_.presence_penalty;
  for (const auto& [token, bias] : config_.logit_bias) out[static_cast<size_t>(token)] += bias;
  for (const int32_t token : banned_) out[static_cast<size_t>(token)] = -std::numeric_limits<double>::infinity();
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
  size_t sorted = 0;  // the likeliest come first; further ones are rarely needed
  const auto sort_to = [&](size_t count) {
    const auto at = [&](size_t i) { return order.begin() + static_cast<long>(i); };
    std::partial_sort(at(sorted), at(count), order.end(), likelier);
    sorted = count;
  };
  const size_t kept = config_.top_k > 0 ? std::min(order.size(), static_cast<size_t>(config_.top_k)) : order.size();
  if (kept < order.size()) sort_to(kept);

  // Differences from the largest score, which overflow at no temperature: the likeliest token has likelihood 1.
  const double top = *std::max_element(scores.begin(), scores.end());
  const auto likelihood = [&](size_t i) {
    return math::exp((scores[static_cast<size_t>(order[i])] - top) / config_.temperature);
  };
  double total = 0;
  for (size_t i = 0; i < kept; ++i) total += likelihood(i);
  const bool has_cuts = config_.top_p < 1 || config_.min_p > 0;
  const double share = random_.uniform();  // of the probability in front of the token that is drawn
  std::vector<double> cumulative;
  for (size_t i = 0; i < kept; ++i) {
    if (i == sorted) sort_to(std::min(kept, std::max<size_t>(32, 4 * sorted)));
    const double own = likelihood(i);
    if (i > 0 && own < config_.min_p) break;
    cumulative.push_back(i > 0 ? cumulative.back() + own : own);
    if (cumulative.back() >= config_.top_p * total || (!has_cuts && cumulative.back() > share * total)) break;
  }
  const double mass = has_cuts ? cumulative.back() : total;
  const auto place = std::upper_bound(cumulative.begin(), cumulative.end() - 1, share * mass);
  return order[static_cast<size_t>(place - cumulative.begin())];
}

double log_total(const real* logits, int64_t vocabulary) {
  const double top = static_cast<double>(*std::max_element(logits, logits + vocabulary));
  double total = 0;
  for (int64_t i = 0; i < vocabulary; ++i) total += math::exp(static_cast<double>(logits[i]) - top);
  return top + math::log(total);
}

double log_probability(const Array& logits, int32_t token) {
  return static_cast<double>(logits.data()[token]) - log_total(logits.data(), logits.size());
}

std::vector<int32_t> likeliest_tokens(const real* logits, int64_t vocabulary, int64_t count) {
  if (count <= 0) return {};
  std::vector<int32_t> order(static_cast<size_t>(vocabulary));
  std::iota(order.begin(), order.end(), 0);
  const auto kept = static_cast<std::ptrdiff_t>(std::min(vocabulary, count));
  std::partial_sort(order.begin(), order.begin() + kept, order.end(),
                    [&](int32_t a, int32_t b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); });
  order.resize(static_cast<size_t>(kept));
  return order;
}

}  // namespace capstan::CAPSTAN_PRECISION
