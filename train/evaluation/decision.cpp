// The search for factors: for one class at a time, texts are sorted by the factor from which they get the class, and
// one walk along them tries all factors with counts that change text by text. Whether a rule is worth having is decided
// on texts that it was not found with (gains_by_rule). tests/train/test_decision.cpp.
#include "train/evaluation/decision.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/math.hpp"
#include "core/base/stop.hpp"

namespace capstan {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double label_share = 0.5;  // of a text's count; its probabilities have the rest
constexpr double largest_log_factor = 12, min_gain = 1e-9;
constexpr int max_rounds = 4;  // over all classes

/// How far text i counts as one of class c.
double class_share(const HeldOutPredictions& held_out, int64_t i, int64_t c) {
  return (held_out.truth(i) == c ? label_share : 0) +
         (1 - label_share) * static_cast<double>(held_out.probabilities(i)[c]);
}

/// Finds the factors with the highest F1 of class `label` or, of label -1, the highest mean of all F1, one class after
/// the other.
class FactorSearch {
 public:
  FactorSearch(const HeldOutPredictions& held_out, int64_t label)
      : held_out_(held_out),
        classes_(held_out.classes()),
        label_(label),
        logs_(static_cast<size_t>(classes_), 0),
        right_(logs_.size()),
        given_(logs_.size()),
        actual_(logs_.size()),
        ranks_(static_cast<size_t>(held_out.size())) {
    for (int64_t i = 0; i < held_out.size(); ++i) {
      rank(i);
      for (int64_t c = 0; c < classes_; ++c) actual_[static_cast<size_t>(c)] += count(i, c);
      give(i, ranks_[static_cast<size_t>(i)].first, 1);
    }
  }

  DecisionRule run() {
    for (int round = 0; round < max_rounds; ++round) {
      bool better = false;
      for (int64_t c = 0; c < classes_; ++c)
        if (label_ < 0 || c == label_) better = improve(c) || better;
      if (!better || label_ >= 0) break;
    }
    DecisionRule rule;
    for (const double log : logs_) rule.push_back(math::exp(log));
    return rule;
  }

 private:
  /// The best two classes of a text.
  struct Ranks {
    int32_t first = -1, second = -1;
  };

  double score(int64_t i, int64_t c) const {
    return math::log(std::max(static_cast<double>(held_out_.probabilities(i)[c]), 1e-30)) +
           logs_[static_cast<size_t>(c)];
  }
  double count(int64_t i, int64_t c) const { return class_share(held_out_, i, c); }
  void rank(int64_t i) {
    Ranks& ranks = ranks_[static_cast<size_t>(i)];
    ranks = {};
    double first = -infinity, second = -infinity;
    for (int64_t c = 0; c < classes_; ++c) {
      const double at = score(i, c);
      if (at > first) {
        ranks.second = std::exchange(ranks.first, static_cast<int32_t>(c));
        second = std::exchange(first, at);
      } else if (at > second) {
        ranks.second = static_cast<int32_t>(c);
        second = at;
      }
    }
  }
  /// Counts that text i is given class c, or with `sign` -1 that it is no longer.
  void give(int64_t i, int64_t c, double sign) {
    right_[static_cast<size_t>(c)] += sign * count(i, c);
    given_[static_cast<size_t>(c)] += sign;
  }
  double f1(int64_t c) const {
    const auto at = static_cast<size_t>(c);
    return 2 * right_[at] / std::max(given_[at] + actual_[at], 1e-12);
  }
  int64_t best_other(int64_t i, int64_t c) const {
    const Ranks& ranks = ranks_[static_cast<size_t>(i)];
    return ranks.first == c ? ranks.second : ranks.first;
  }

  /// Chooses the factor of class c anew; returns false where its old one is as good. At first no text has class c; then
  /// texts get it one by one, in the order of the factors that this takes.
  bool improve(int64_t c) {
    stop_point();
    const int64_t count = held_out_.size();
    double& log = logs_[static_cast<size_t>(c)];
    std::vector<double> least(static_cast<size_t>(count));  // the logarithm of the factor from which text i gets c
    for (int64_t i = 0; i < count; ++i)
      least[static_cast<size_t>(i)] = score(i, best_other(i, c)) - (score(i, c) - log);
    std::vector<int64_t> order(least.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return least[static_cast<size_t>(a)] < least[static_cast<size_t>(b)];
    });
    double sum = 0;
    for (int64_t k = 0; k < classes_; ++k) sum += label_ < 0 || k == label_ ? f1(k) : 0;
    const double before = sum;
    const auto change = [&](int64_t i, int64_t from, int64_t to) {
      for (const int64_t k : {from, to}) sum -= label_ < 0 || k == label_ ? f1(k) : 0;
      give(i, from, -1);
      give(i, to, 1);
      for (const int64_t k : {from, to}) sum += label_ < 0 || k == label_ ? f1(k) : 0;
    };
    for (int64_t i = 0; i < count; ++i)
      if (ranks_[static_cast<size_t>(i)].first == c) change(i, c, best_other(i, c));
    double best = before, chosen = log;
    for (size_t at = 0; at <= order.size(); ++at) {
      const double low = at == 0 ? -largest_log_factor : least[static_cast<size_t>(order[at - 1])];
      const double high = at == order.size() ? largest_log_factor : least[static_cast<size_t>(order[at])];
      if (const double middle = (low + high) / 2;
          high > low && std::abs(middle) <= largest_log_factor && sum > best + min_gain) {
        best = sum;
        chosen = middle;
      }
      if (at < order.size()) change(order[at], best_other(order[at], c), c);
    }
    const bool better = chosen != log;
    log = chosen;
    for (int64_t i = 0; i < count; ++i) {  // all texts have class c now, and get what the chosen factor gives them
      rank(i);
      const int64_t given = ranks_[static_cast<size_t>(i)].first;
      if (given != c) change(i, c, given);
    }
    return better;
  }

  const HeldOutPredictions& held_out_;
  int64_t classes_, label_;
  std::vector<double> logs_;                    // of the factors
  std::vector<double> right_, given_, actual_;  // by class: F1_c = 2 right_c / (given_c + actual_c)
  std::vector<Ranks> ranks_;                    // by text
};

/// The counts of the classes for decisions that are given, F1_c = 2 right_c / (given_c + actual_c), and how much each
/// text contributes to an F1.
class ClassCounts {
 public:
  ClassCounts(const HeldOutPredictions& held_out, std::vector<int64_t> given)
      : held_out_(held_out),
        given_(std::move(given)),
        right_(static_cast<size_t>(held_out.classes()), 0),
        all_(right_) {
    for (int64_t i = 0; i < held_out.size(); ++i)
      for (int64_t c = 0; c < held_out.classes(); ++c) {
        const double share = class_share(held_out, i, c), gets = gets_it(i, c);
        right_[static_cast<size_t>(c)] += share * gets;
        all_[static_cast<size_t>(c)] += share + gets;
      }
  }
  double f1(int64_t c) const { return 2 * right_[static_cast<size_t>(c)] / given_and_actual(c); }
  /// The derivative of f1(c) by the weight of text i: (2 right_ic - F1_c (given_ic + actual_ic)) / (given_c +
  /// actual_c).
  double influence(int64_t i, int64_t c) const {
    const double share = class_share(held_out_, i, c), gets = gets_it(i, c);
    return (2 * share * gets - f1(c) * (share + gets)) / given_and_actual(c);
  }

 private:
  double gets_it(int64_t i, int64_t c) const { return given_[static_cast<size_t>(i)] == c ? 1 : 0; }
  double given_and_actual(int64_t c) const { return std::max(all_[static_cast<size_t>(c)], 1e-12); }

  const HeldOutPredictions& held_out_;
  std::vector<int64_t> given_;       // by text
  std::vector<double> right_, all_;  // by class
};

/// The class that each text is given by the rule that was found on the other half of the texts. Texts of a class go to
/// the halves in turn.
std::vector<int64_t> decided_by_other_half(const HeldOutPredictions& held_out, int64_t label) {
  const int64_t classes = held_out.classes();
  std::vector<size_t> half_of, seen(static_cast<size_t>(classes), 0);
  HeldOutPredictions halves[] = {HeldOutPredictions(classes), HeldOutPredictions(classes)};
  for (int64_t i = 0; i < held_out.size(); ++i) {
    half_of.push_back(seen[static_cast<size_t>(held_out.truth(i))]++ % 2);
    halves[half_of.back()].add(held_out.probabilities(i), held_out.truth(i));
  }
  const DecisionRule rules[] = {FactorSearch(halves[1], label).run(), FactorSearch(halves[0], label).run()};
  std::vector<int64_t> given;
  for (int64_t i = 0; i < held_out.size(); ++i)
    given.push_back(decide(rules[half_of[static_cast<size_t>(i)]], held_out.probabilities(i), classes));
  return given;
}

/// By how much a rule has a higher F1 of the class, or mean of all (label -1), than the likeliest class, with the
/// standard error of the difference: the root of the sum of the squares of what each text contributes to it (the delta
/// method, paired). On the texts that a rule was found with, it would always seem better.
FoundRule gain_of_rules(const HeldOutPredictions& held_out, int64_t label) {
  std::vector<int64_t> likeliest;
  for (int64_t i = 0; i < held_out.size(); ++i)
    likeliest.push_back(decide({}, held_out.probabilities(i), held_out.classes()));
  const ClassCounts ruled(held_out, decided_by_other_half(held_out, label)), plain(held_out, std::move(likeliest));
  const int64_t begin = std::max<int64_t>(label, 0), end = label < 0 ? held_out.classes() : label + 1;
  double gain = 0, variance = 0;
  for (int64_t c = begin; c < end; ++c) gain += ruled.f1(c) - plain.f1(c);
  for (int64_t i = 0; i < held_out.size(); ++i) {
    double influence = 0;
    for (int64_t c = begin; c < end; ++c) influence += ruled.influence(i, c) - plain.influence(i, c);
    variance += influence * influence;
  }
  return {{}, gain, std::sqrt(variance)};
}

/// The factor of class goal.label with which it has the recall, or the precision, of goal.at_least on these texts, and
/// as much as there is then of the other; no rule where none has. Texts get the class one by one, in the order of the
/// factors that this takes.
DecisionRule factor_for(const HeldOutPredictions& held_out, const DecisionGoal& goal) {
  const int64_t classes = held_out.classes();
  std::vector<std::pair<double, bool>> texts;  // the logarithm of the factor from which it gets the class; has it?
  int64_t all = 0;
  for (int64_t i = 0; i < held_out.size(); ++i) {
    const float* const p = held_out.probabilities(i);
    double other = 0;
    for (int64_t c = 0; c < classes; ++c)
      if (c != goal.label) other = std::max(other, static_cast<double>(p[c]));
    const double own = static_cast<double>(p[goal.label]);
    texts.emplace_back(math::log(std::max(other, 1e-30)) - math::log(std::max(own, 1e-30)),
                       held_out.truth(i) == goal.label);
    all += texts.back().second ? 1 : 0;
  }
  std::sort(texts.begin(), texts.end());
  std::optional<double> chosen;
  int64_t right = 0;
  for (size_t at = 0; at < texts.size(); ++at) {
    right += texts[at].second ? 1 : 0;
    const double next = at + 1 < texts.size() ? texts[at + 1].first : largest_log_factor;
    if (next <= texts[at].first) continue;
    const bool wants_recall = goal.kind == DecisionGoal::Kind::recall;
    const double of = static_cast<double>(wants_recall ? all : static_cast<int64_t>(at) + 1);
    if (static_cast<double>(right) < goal.at_least * of) continue;
    chosen = (texts[at].first + next) / 2;
    if (wants_recall) break;
  }
  if (!chosen) return {};
  DecisionRule rule(static_cast<size_t>(classes), 1);
  rule[static_cast<size_t>(goal.label)] = math::exp(std::clamp(*chosen, -largest_log_factor, largest_log_factor));
  return rule;
}

}  // namespace

int64_t decide(const DecisionRule& rule, const float* probabilities, int64_t classes) {
  if (rule.empty()) return std::max_element(probabilities, probabilities + classes) - probabilities;
  int64_t best = 0;
  double highest = -infinity;
  for (int64_t c = 0; c < classes; ++c) {
    double value = 0;
    if (static_cast<int64_t>(rule.size()) == classes)
      value = rule[static_cast<size_t>(c)] * static_cast<double>(probabilities[c]);
    else
      for (int64_t truth = 0; truth < classes; ++truth)
        value -= rule[static_cast<size_t>(truth * classes + c)] * static_cast<double>(probabilities[truth]);
    if (!(value > highest)) continue;
    highest = value;
    best = c;
  }
  return best;
}

void HeldOutPredictions::add(const float* probabilities, int64_t truth) {
  probabilities_.insert(probabilities_.end(), probabilities, probabilities + classes_);
  truths_.push_back(static_cast<int32_t>(truth));
}

std::string HeldOutPredictions::bytes() const {
  std::string result(reinterpret_cast<const char*>(truths_.data()), truths_.size() * sizeof(int32_t));
  result.append(reinterpret_cast<const char*>(probabilities_.data()), probabilities_.size() * sizeof(float));
  return result;
}

void HeldOutPredictions::add(std::string_view bytes) {
  const size_t each = sizeof(int32_t) + static_cast<size_t>(classes_) * sizeof(float), count = bytes.size() / each;
  check(bytes.size() % each == 0, "held-out predictions: {} bytes are no multiple of {}", bytes.size(), each);
  const size_t texts = truths_.size();
  truths_.resize(texts + count);
  probabilities_.resize((texts + count) * static_cast<size_t>(classes_));
  std::memcpy(truths_.data() + texts, bytes.data(), count * sizeof(int32_t));
  std::memcpy(probabilities_.data() + texts * static_cast<size_t>(classes_), bytes.data() + count * sizeof(int32_t),
              bytes.size() - count * sizeof(int32_t));
}

void HeldOutPredictions::sort() {
  std::vector<int64_t> order(truths_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    if (truth(a) != truth(b)) return truth(a) < truth(b);
    return std::lexicographical_compare(probabilities(a), probabilities(a) + classes_, probabilities(b),
                                        probabilities(b) + classes_);
  });
  HeldOutPredictions sorted(classes_);
  for (const int64_t i : order) sorted.add(probabilities(i), truth(i));
  *this = std::move(sorted);
}

FoundRule best_rule(const HeldOutPredictions& held_out, const DecisionGoal& goal) {
  using Kind = DecisionGoal::Kind;
  if (!goal.finds_rule() || held_out.size() == 0) return {goal.rule};
  if (goal.kind == Kind::recall || goal.kind == Kind::precision) return {factor_for(held_out, goal)};
  const int64_t label = goal.kind == Kind::f1 ? goal.label : -1;
  FoundRule found = gain_of_rules(held_out, label);
  if (found.gain > found.gain_error) found.rule = FactorSearch(held_out, label).run();
  return found;
}

}  // namespace capstan
