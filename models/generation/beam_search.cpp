// beam_search(), for completions of pairs. Row i of the decode state and of the logits is that of the
// i-th open text; the row after them follows the likeliest token only, so that the result is never worse than greedy
// text. tests/models/test_beam_search.cpp compares with all texts.
#include "models/generation/beam_search.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/math.hpp"
#include "models/generation/sampling.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

/// An open text (`beam`: its row) with one more token, and the log probability of the whole.
struct Candidate {
  double log_probability;
  size_t beam;
  int32_t token;
};

/// Ties are broken by place, so that results do not depend on sorting.
bool likelier(const Candidate& a, const Candidate& b) {
  if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
  return a.beam != b.beam ? a.beam < b.beam : a.token < b.token;
}

/// One search: the open texts, each a row of the state, and the best texts that have ended.
class BeamSearch {
 public:
  BeamSearch(const Model& model, const std::vector<int32_t>& prompt, const GenerateOptions& options)
      : model_(model), options_(options), state_(model.make_state(1, options.weights)) {
    check(options.stop_token && options.beam > 0 && options.max_tokens > 0 && std::isfinite(options.length_penalty),
          "beam search: width {}, max_tokens {} and length_penalty {} must be positive and finite", options.beam,
          options.max_tokens, options.length_penalty);
    if (prompt.empty()) throw Error("beam search: the prompt is empty: give at least one token to continue");
    logits_ = model.prefill(Ids(Shape{1, static_cast<int64_t>(prompt.size())}, prompt), state_);
  }

  std::vector<Hypothesis> run() {
    std::vector<Hypothesis> open{{}};
    std::optional<Hypothesis> greedy = Hypothesis{};
    size_t greedy_row = 0;
    for (int64_t step = 1; step <= options_.max_tokens && (!open.empty() || greedy); ++step) {
      const bool no_more_room = !has_room();
      std::vector<size_t> rows;
      std::vector<int32_t> tokens;
      std::vector<Hypothesis> next;
      for (const Candidate& c : best_candidates(open)) {
        Hypothesis longer = extended(open[c.beam], c.token, c.log_probability, step);
        if (longer.finished || no_more_room) {
          finish(std::move(longer));
        } else {
          next.push_back(std::move(longer));
          rows.push_back(c.beam);
          tokens.push_back(c.token);
        }
        if (static_cast<int64_t>(next.size()) == options_.beam) break;
      }
      if (greedy) {
        const Candidate c = likeliest(greedy_row, greedy->log_probability);
        *greedy = extended(*greedy, c.token, c.log_probability, step);
        if (greedy->finished || no_more_room) {
          finish(std::move(*greedy));
          greedy.reset();
        } else {
          rows.push_back(greedy_row);
          tokens.push_back(c.token);
        }
      }
      open = std::move(next);
      if (no_more_room || !can_improve(open, greedy, step)) return std::move(finished_);
      greedy_row = open.size();
      read(rows, tokens);
    }
    // The logits are those of the last read(), with a row for each open text and for the greedy one after them.
    if (greedy) open.push_back(std::move(*greedy));
    for (size_t row = 0; row < open.size(); ++row) finish(ended(open[row], row));
    return std::move(finished_);
  }

 private:
  /// Can the token that is chosen now be read?
  bool has_room() const { return !model_.position_limit() || state_.positions.front() < *model_.position_limit(); }

  double score(double log_probability, int64_t length) const {
    return log_probability / math::pow(static_cast<double>(length), options_.length_penalty);
  }

  Hypothesis extended(const Hypothesis& text, int32_t token, double log_probability, int64_t step) const {
    Hypothesis longer = text;
    longer.finished = token == *options_.stop_token;
    if (!longer.finished) longer.tokens.push_back(token);
    longer.log_probability = log_probability;
    longer.score = score(log_probability, step);
    return longer;
  }

  /// A text of max_tokens, followed by the stop token if that is the likeliest next token.
  Hypothesis ended(const Hypothesis& text, size_t row) const {
    const Candidate c = likeliest(row, text.log_probability);
    return c.token == *options_.stop_token ? extended(text, c.token, c.log_probability, options_.max_tokens + 1) : text;
  }

  /// Keeps the `width` best different ones.
  void finish(Hypothesis text) {
    for (const Hypothesis& known : finished_)
      if (known.tokens == text.tokens && known.finished == text.finished) return;
    const auto place = std::find_if(finished_.begin(), finished_.end(),
                                    [&](const Hypothesis& known) { return known.score < text.score; });
    finished_.insert(place, std::move(text));
    if (static_cast<int64_t>(finished_.size()) > options_.beam) finished_.pop_back();
  }

  /// Can an open text, or the greedy one, still come to a better score than the worst result? Its log probability can
  /// only fall, but may be divided by more as it gets longer.
  bool can_improve(const std::vector<Hypothesis>& open, const std::optional<Hypothesis>& greedy, int64_t step) const {
    if (static_cast<int64_t>(finished_.size()) < options_.beam) return true;
    const int64_t longest =
        options_.length_penalty > 0 ? options_.max_tokens + 1 : std::min(step + 1, options_.max_tokens);
    double best = greedy ? score(greedy->log_probability, longest) : -HUGE_VAL;
    for (const Hypothesis& text : open) best = std::max(best, score(text.log_probability, longest));
    return best > finished_.back().score;
  }

  /// Row `row` of the logits as log probabilities; banned tokens have none.
  std::vector<double> log_probabilities(size_t row) const {
    const int64_t size = model_.vocabulary();
    const real* const logits = logits_.data() + static_cast<int64_t>(row) * size;
    std::vector<double> values(logits, logits + size);
    const double total = log_total(logits, size);
    if (!std::isfinite(total))
      throw NotFinite("a logit is not finite: the model's weights are damaged or its training diverged");
    for (double& value : values) value -= total;
    for (const int32_t token : options_.banned) values.at(static_cast<size_t>(token)) = -HUGE_VAL;
    return values;
  }

  Candidate likeliest(size_t row, double before) const {
    const std::vector<double> values = log_probabilities(row);
    const auto best = std::max_element(values.begin(), values.end());
    return {before + *best, row, static_cast<int32_t>(best - values.begin())};
  }

  /// The best 2 * width candidates, enough for `width` texts that continue even if half of them end here.
  std::vector<Candidate> best_candidates(const std::vector<Hypothesis>& open) const {
    const auto wanted = static_cast<size_t>(2 * options_.beam);
    std::vector<Candidate> candidates;
    for (size_t row = 0; row < open.size(); ++row) {
      const std::vector<double> values = log_probabilities(row);
      std::vector<Candidate> of_text;
      for (size_t token = 0; token < values.size(); ++token)
        if (values[token] > -HUGE_VAL)
          of_text.push_back({open[row].log_probability + values[token], row, static_cast<int32_t>(token)});
      const size_t kept = std::min(wanted, of_text.size());
      std::partial_sort(of_text.begin(), of_text.begin() + static_cast<long>(kept), of_text.end(), likelier);
      candidates.insert(candidates.end(), of_text.begin(), of_text.begin() + static_cast<long>(kept));
    }
    std::sort(candidates.begin(), candidates.end(), likelier);
    candidates.resize(std::min(wanted, candidates.size()));
    return candidates;
  }

  /// Goes on with these rows of the state, each with its token.
  void read(const std::vector<size_t>& rows, const std::vector<int32_t>& tokens) {
    state_.select(std::vector<int64_t>(rows.begin(), rows.end()));
    logits_ = model_.step(Ids(Shape{static_cast<int64_t>(tokens.size())}, tokens), state_);
  }

  const Model& model_;
  const GenerateOptions& options_;
  DecodeState state_;
  Array logits_;  // rows of the open texts, then of the greedy text
  std::vector<Hypothesis> finished_;
};

}  // namespace

std::vector<Hypothesis> beam_search(const Model& model, const std::vector<int32_t>& prompt,
                                    const GenerateOptions& options) {
  return BeamSearch(model, prompt, options).run();
}

}  // namespace capstan::CAPSTAN_PRECISION
