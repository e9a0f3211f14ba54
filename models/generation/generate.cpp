// The Sampler, and the loop over several prompts of one length: their texts share a decode state, a row each, until
// they end. Windows are read one text at a time, because a prefill rounds differently from steps and in company.
#include "models/generation/generate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/array/layout.hpp"
#include "core/base/error.hpp"
#include "core/base/math.hpp"
#include "core/machine/parallel.hpp"
#include "models/generation/written_text.hpp"

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
  check(static_cast<int64_t>(banned_.size()) < vocabulary, "generate: all {} tokens are banned", vocabulary);
}

void Sampler::see(int32_t token) { seen_.at(static_cast<size_t>(token)) = true; }

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
  const bool cut = config_.top_p < 1 || config_.min_p > 0;
  const double drawn = random_.uniform();
  std::vector<double> cumulative;
  for (size_t i = 0; i < kept; ++i) {
    if (i == sorted) sort_to(std::min(kept, std::max<size_t>(32, 4 * sorted)));
    const double own = likelihood(i);
    if (i > 0 && own < config_.min_p) break;
    cumulative.push_back(i > 0 ? cumulative.back() + own : own);
    if (cumulative.back() >= config_.top_p * total || (!cut && cumulative.back() > drawn * total)) break;
  }
  const double mass = cut ? cumulative.back() : total;
  const auto place = std::upper_bound(cumulative.begin(), cumulative.end() - 1, drawn * mass);
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

namespace {

/// The model, its state and the texts so far.
class Generation {
 public:
  Generation(const Model& model, const std::vector<Prompt>& prompts, const GenerateOptions& options)
      : model_(model),
        options_(options),
        state_(model.make_state(static_cast<int64_t>(prompts.size()), options.weights)),
        reader_(model.make_state(1, options.weights)),
        out_(prompts.size()) {
    reader_.share(state_);
    for (size_t i = 0; i < prompts.size(); ++i) {
      open_.push_back({i, WrittenText(model, prompts[i], options)});
      check(prompts[i].tokens.size() == prompts[0].tokens.size(),
            "generate: prompts of {} and {} tokens; give one length at a time", prompts[0].tokens.size(),
            prompts[i].tokens.size());
    }
  }

  std::vector<Generated> run() {
    if (options_.max_tokens == 0) return std::move(out_);
    for (Array logits = read();; logits = read()) {
      std::vector<int64_t> kept;
      std::vector<int32_t> tokens(open_.size());
      parallel_units(static_cast<int64_t>(open_.size()), [&](int64_t row) {
        const auto at = static_cast<size_t>(row);
        tokens[at] = open_[at].text.choose(logits.rows(row, row + 1));
      });
      for (size_t row = 0; row < open_.size(); ++row) {
        const auto at = static_cast<int64_t>(row);
        if (goes_on(open_[row], tokens[row], logits.rows(at, at + 1)))
          kept.push_back(at);
        else
          out_[open_[row].prompt] = std::move(open_[row].text.result());
      }
      if (kept.empty()) return std::move(out_);
      keep(kept);
    }
  }

 private:
  struct Open {
    size_t prompt;  // its index
    WrittenText text;
  };

  /// Adds the token to its text; false when the text ends here.
  bool goes_on(Open& open, int32_t token, const Array& logits) {
    const WrittenText::Added added = open.text.add(token, logits);
    if (added == WrittenText::Added::end) return false;
    if (options_.on_token && !options_.on_token(static_cast<int64_t>(open.prompt), token)) {
      open.text.result().end = GenerateEnd::callback;
      return false;
    }
    return added == WrittenText::Added::goes_on;
  }

  /// Goes on with the texts in these rows alone, whose states move up to the places of those that have ended.
  void keep(const std::vector<int64_t>& rows) {
    std::vector<Open> kept;
    for (size_t to = 0; to < rows.size(); ++to) {
      if (rows[to] != static_cast<int64_t>(to)) state_.copy(static_cast<int64_t>(to), state_, rows[to]);
      kept.push_back(std::move(open_[static_cast<size_t>(rows[to])]));
    }
    open_ = std::move(kept);
  }

  /// The logits after the texts: all take a step, or all have another window, because they have one length.
  Array read() {
    if (open_[0].text.read() == 0) return read_windows();
    std::vector<int32_t> tokens;
    for (Open& open : open_) {
      tokens.push_back(open.text.window().back());
      open.text.has_read(static_cast<int64_t>(open.text.window().size()));
    }
    return model_.step(Ids(Shape{static_cast<int64_t>(tokens.size())}, tokens), state_);
  }

  /// Reads the windows, each by itself, so that its bits do not depend on the others; equal ones once.
  Array read_windows() {
    if (open_[0].text.begin() > 0 && !slid_ && options_.on_slide) options_.on_slide();
    slid_ = open_[0].text.begin() > 0;
    DecodeState& reader = state_.batch() == 1 ? state_ : reader_;
    Array logits(Shape{static_cast<int64_t>(open_.size()), model_.vocabulary()}), window_logits;
    for (size_t row = 0; row < open_.size(); ++row) {
      WrittenText& text = open_[row].text;
      if (row == 0 || text.window() != open_[row - 1].text.window())
        window_logits = read_window(model_, text, reader);
      else
        text.has_read(static_cast<int64_t>(text.window().size()));
      state_.copy(static_cast<int64_t>(row), reader, 0);
      copy_row(logits, static_cast<int64_t>(row), window_logits, 0);
    }
    return logits;
  }

  const Model& model_;
  const GenerateOptions& options_;
  DecodeState state_;   // row i is that of open_[i]
  DecodeState reader_;  // of one text, to read windows
  std::vector<Open> open_;
  std::vector<Generated> out_;
  bool slid_ = false;
};

}  // namespace

int64_t window_begin(int64_t last, std::optional<int64_t> limit, std::optional<int64_t> overlap) {
  if (!limit || last < *limit) return 0;
  const int64_t step = *limit - overlap.value_or(std::max<int64_t>(1, *limit / 2) - 1);
  return ((last - *limit) / step + 1) * step;
}

std::vector<Generated> generate_together(const Model& model, const std::vector<Prompt>& prompts,
                                         const GenerateOptions& options) {
  return prompts.empty() ? std::vector<Generated>() : Generation(model, prompts, options).run();
}

Generated generate(const Model& model, const std::vector<int32_t>& prompt, const GenerateOptions& options) {
  return generate_together(model, {{prompt, 0}}, options).front();
}

}  // namespace capstan::CAPSTAN_PRECISION
