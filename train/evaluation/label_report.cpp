// A probability counts at its level, the number of the 99 thresholds that it reaches; the counts at a threshold are
// sums over the levels from there. So one pass over the texts has the figures of all thresholds, and reports of ranks
// add up as integers. tests/train/test_label_report.cpp.
#include "train/evaluation/label_report.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/base/error.hpp"
#include "core/base/stop.hpp"

namespace capstan {
namespace {

constexpr std::array<int64_t, 3> all_ranks = {1, 3, 5};

double threshold_of(int level) { return level / 100.0; }

double quotient(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

/// How many of the thresholds a probability reaches, at most `last`.
int level_of(float probability, int last) {
  if (!(probability > 0)) return 0;  // NaN reaches none either
  int level = std::clamp(static_cast<int>(std::clamp(probability, 0.0F, 1.0F) * 100), 0, last);
  while (level < last && reaches(probability, threshold_of(level + 1))) ++level;
  while (level > 0 && !reaches(probability, threshold_of(level))) --level;
  return level;
}

/// The first `most` labels by probability, of equal ones the first.
std::vector<int64_t> likeliest(const float* probabilities, int64_t labels, size_t most) {
  std::vector<int64_t> best;
  for (int64_t c = 0; c < labels; ++c) {
    size_t place = best.size();
    while (place > 0 && probabilities[c] > probabilities[best[place - 1]]) --place;
    if (place == most) continue;
    best.insert(best.begin() + static_cast<std::ptrdiff_t>(place), c);
    if (best.size() > most) best.pop_back();
  }
  return best;
}

}  // namespace

double LabelCounts::precision() const { return quotient(right, predicted); }
double LabelCounts::recall() const { return quotient(right, actual); }
double LabelCounts::f1() const { return quotient(2 * right, predicted + actual); }

double LabelFigures::macro_f1() const {
  double sum = 0;
  for (const LabelCounts& label : of_label) sum += label.f1();
  return sum / static_cast<double>(std::max<size_t>(of_label.size(), 1));
}

double LabelFigures::accuracy() const { return quotient(exact, texts); }

LabelReport::LabelReport(int64_t labels, std::vector<double> thresholds)
    : labels_(labels),
      thresholds_(std::move(thresholds)),
      counts_(static_cast<size_t>(2 * labels * levels) + levels + 1 + all_ranks.size() + 1) {
  check(labels > 0, "label report: {} labels", labels);
  check(thresholds_.empty() || thresholds_.size() == static_cast<size_t>(labels),
        "label report: {} thresholds of {} labels", thresholds_.size(), labels);
}

int64_t LabelReport::texts() const { return counts_.back(); }

void LabelReport::add(const float* probabilities, const int32_t* truth) {
  int max_absent = 0, min_present = levels - 1;  // levels
  for (int64_t c = 0; c < labels_; ++c) {
    const int level = thresholds_.empty() ? level_of(probabilities[c], levels - 1)
                      : reaches(probabilities[c], thresholds_[static_cast<size_t>(c)]) ? levels / 2
                                                                                       : 0;
    const bool has_it = truth[c] != 0;
    ++counts_[place(c, has_it, level)];
    if (has_it)
      min_present = std::min(min_present, level);
    else
      max_absent = std::max(max_absent, level);
  }
  if (max_absent < min_present) {  // exact at the thresholds between them
    ++counts_[tail(static_cast<size_t>(max_absent) + 1)];
    --counts_[tail(static_cast<size_t>(min_present) + 1)];
  }
  const std::vector<int64_t> best = likeliest(probabilities, labels_, all_ranks.back());
  for (size_t i = 0; i < all_ranks.size(); ++i)
    for (size_t place = 0; place < std::min(best.size(), static_cast<size_t>(all_ranks[i])); ++place)
      if (truth[best[place]] != 0) ++counts_[tail(levels + 1 + i)];
  ++counts_.back();
}

LabelCounts LabelReport::of_label(int64_t label, int level) const {
  LabelCounts counts;
  for (int at = 0; at < levels; ++at) {
    counts.actual += count(label, true, at);
    if (at < level) continue;
    counts.right += count(label, true, at);
    counts.predicted += count(label, true, at) + count(label, false, at);
  }
  return counts;
}

double LabelReport::best_threshold() const {
  std::array<int64_t, levels> right{}, predicted{};  // of each level alone; below they become those of it and all above
  int64_t actual = 0;
  for (int64_t c = 0; c < labels_; ++c)
    for (int level = 0; level < levels; ++level) {
      const auto at = static_cast<size_t>(level);
      right[at] += count(c, true, level);
      predicted[at] += count(c, true, level) + count(c, false, level);
      actual += count(c, true, level);
    }
  for (size_t level = levels - 1; level > 0; --level) {
    right[level - 1] += right[level];
    predicted[level - 1] += predicted[level];
  }
  int best = levels / 2;
  const auto f1 = [&](int level) {
    const auto at = static_cast<size_t>(level);
    return LabelCounts{right[at], predicted[at], actual}.f1();
  };
  for (int distance = 1; distance < levels / 2; ++distance)
    for (const int level : {levels / 2 - distance, levels / 2 + distance})
      if (f1(level) > f1(best)) best = level;
  return threshold_of(best);
}

std::vector<double> LabelReport::best_thresholds() const {
  constexpr double texts_of_all = 10;
  const auto common = static_cast<int>(std::lround(100 * best_threshold()));
  std::vector<LabelCounts> counts_of_all(levels);
  for (int level = 1; level < levels; ++level) counts_of_all[static_cast<size_t>(level)] = at(threshold_of(level)).all;
  const double share = texts_of_all / static_cast<double>(std::max<int64_t>(counts_of_all.back().actual, 1));
  std::vector<double> best;
  for (int64_t label = 0; label < labels_; ++label) {
    stop_point();
    best.push_back(threshold_of(common));
    double highest = 0;
    for (int distance = 0; distance < levels; ++distance)
      for (const int level : {common - distance, common + distance}) {
        if (level < 1 || level >= levels) continue;
        const LabelCounts own = of_label(label, level), &others = counts_of_all[static_cast<size_t>(level)];
        const double cases = static_cast<double>(own.predicted + own.actual) +
                             share * static_cast<double>(others.predicted + others.actual);
        const double f1 = (static_cast<double>(own.right) + share * static_cast<double>(others.right)) / cases;
        if (!(f1 > highest)) continue;
        highest = f1;
        best.back() = threshold_of(level);
      }
  }
  return best;
}

LabelFigures LabelReport::at(double threshold) const {
  const auto level = static_cast<int>(std::lround(100 * threshold));
  check(level > 0 && level < levels && threshold_of(level) == threshold,
        "label report: the threshold {} is none of 0.01, 0.02, ... 0.99", threshold);
  LabelFigures figures;
  figures.threshold = threshold;
  figures.thresholds = thresholds_;
  figures.texts = texts();
  for (int64_t c = 0; c < labels_; ++c) {
    figures.of_label.push_back(of_label(c, level));
    figures.all.right += figures.of_label.back().right;
    figures.all.predicted += figures.of_label.back().predicted;
    figures.all.actual += figures.of_label.back().actual;
  }
  for (size_t i = 0; i < all_ranks.size(); ++i)
    if (const int64_t k = all_ranks[i]; k <= labels_)
      figures.precision_at.push_back({k, quotient(counts_[tail(levels + 1 + i)], k * texts())});
  for (int at = 0; at <= level; ++at) figures.exact += counts_[tail(static_cast<size_t>(at))];
  return figures;
}

std::string LabelReport::bytes() const {
  return {reinterpret_cast<const char*>(counts_.data()), counts_.size() * sizeof(int64_t)};
}

void LabelReport::add(std::string_view bytes) {
  check(bytes.size() == counts_.size() * sizeof(int64_t), "label report: {} bytes of counts instead of {}",
        bytes.size(), counts_.size() * sizeof(int64_t));
  std::vector<int64_t> other(counts_.size());
  std::memcpy(other.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other[i];
}

}  // namespace capstan
