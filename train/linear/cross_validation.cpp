#include "train/linear/cross_validation.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/stop.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

/// Shares of TF-IDF and of ratios in the sum.
constexpr double shares[][2] = {{1, 0}, {1, 0.5}, {1, 1}, {0.5, 1}, {0, 1}};

/// Passes over entries that cross-validation may take; it holds out fewer folds of larger data.
constexpr double most_work = 1.5e8;
constexpr int64_t most_scores = 30'000'000;  // of held-out rows

/// By the cross entropy of held-out rows of CR and MPQA. With larger costs, texts of rare n-grams have a presence far
/// above 1.
constexpr double presence_cost = 0.02;
constexpr SvmKind presence_kind{false, presence_cost};  // solve_presence() takes as long

/// The same as work_of while a fold is held out.
double held_out_work_of(const NgramRows& rows, const SvmKind& kind) {
  const auto folds = static_cast<double>(folds_of(rows));
  return (folds - 1) / folds * work_of(kind);
}

}  // namespace

int64_t folds_of(const NgramRows& rows) { return std::min(rows.config().folds, rows.rows()); }

int64_t held_out_folds(const NgramRows& rows) {
  const double work = static_cast<double>(rows.entries() + rows.rows()) * static_cast<double>(problem_count(rows));
  return std::clamp(static_cast<int64_t>(most_work / work), int64_t{1}, folds_of(rows));
}

double cross_validation_work(const NgramRows& rows) {
  double of_fold = 0;
  for (const SvmKind& kind : svm_kinds) of_fold += held_out_work_of(rows, kind);
  return static_cast<double>(held_out_folds(rows)) *
         (static_cast<double>(problem_count(rows)) * of_fold + held_out_work_of(rows, presence_kind));
}

SvmSolution solve_presence(const NgramRows& rows, std::vector<int64_t> learnt, uint64_t seed) {
  SvmProblem problem{std::move(learnt), 0, presence_cost, false, random_key(seed, "order of rows")};
  problem.presence = true;
  return solve_svm(rows, problem);
}

HeldOut::HeldOut(const NgramRows& rows, uint64_t seed)
    : rows_(rows), seed_(seed), problems_(problem_count(rows)), shares_(logits_of_shares(rows)) {
  const std::vector<int64_t> fold = folds_of(rows, folds_of(rows));
  const int64_t used = held_out_folds(rows);
  const int64_t most_rows = std::max<int64_t>(100, most_scores / (problems_ * svm_kind_count) / used);
  parts_.resize(static_cast<size_t>(used));
  for (int64_t row = 0; row < rows.rows(); ++row)
    for (int64_t part = 0; part < used; ++part) {
      Part& p = parts_[static_cast<size_t>(part)];
      if (fold[static_cast<size_t>(row)] != part)
        p.learnt.push_back(row);
      else if (static_cast<int64_t>(p.held_out.size()) < most_rows)
        p.held_out.push_back(row);
    }
  for (Part& part : parts_) {
    part.unknown.assign(static_cast<size_t>(problems_ * svm_kind_count), 0);
    part.scores.assign(part.held_out.size() * part.unknown.size(), 0);
    part.presence.assign(part.held_out.size(), 0);
  }
}

void HeldOut::solve(Progress* progress) {
  const int64_t scores = svm_kind_count * problems_, parts = static_cast<int64_t>(parts_.size());
  const auto score = [&](const Part& part, const SvmSolution& solved, float* out, int64_t step) {
    for (size_t i = 0; i < part.held_out.size(); ++i) {
      stop_point();
      out[static_cast<int64_t>(i) * step] = solved.score(rows_, part.held_out[i]);
    }
  };
  parallel_units(parts * (scores + 1), [&](int64_t unit) {
    const int64_t of_part = unit % (scores + 1), kind = of_part / problems_;
    Part& part = parts_[static_cast<size_t>(unit / (scores + 1))];
    if (part.learnt.empty()) return;
    if (of_part == scores) {
      score(part, solve_presence(rows_, part.learnt, seed_), part.presence.data(), 1);
    } else {
      const SvmSolution solved =
          solve_svm(rows_, {part.learnt, positive_class(rows_, of_part % problems_), svm_kinds[kind].cost,
                            svm_kinds[kind].ratios, random_key(seed_, "order of rows")});
      score(part, solved, part.scores.data() + of_part, scores);
      part.unknown[static_cast<size_t>(of_part)] = solved.score_of_unknown(rows_);
    }
    if (progress != nullptr)
      progress->add(held_out_work_of(rows_, of_part == scores ? presence_kind : svm_kinds[kind]));
  });
}

SvmMix HeldOut::best() const {
  std::vector<SvmMix> mixes;
  for (int plain = 0; plain < svm_kind_count; ++plain)
    for (int ratios = 0; ratios < svm_kind_count; ++ratios) {
      if (svm_kinds[plain].ratios || !svm_kinds[ratios].ratios) continue;
      for (const auto& share : shares) mixes.push_back({plain, ratios, share[0], share[1], 1, 0});
    }
  parallel_units(static_cast<int64_t>(mixes.size()), [&](int64_t i) { choose_factor(mixes[static_cast<size_t>(i)]); });
  return *std::min_element(mixes.begin(), mixes.end(),
                           [](const SvmMix& a, const SvmMix& b) { return a.loss < b.loss; });
}

void HeldOut::choose_factor(SvmMix& mix) const {
  int64_t count = 0;
  for (const Part& part : parts_) count += static_cast<int64_t>(part.held_out.size());
  const int rounds = rows_.weighs_classes() ? 3 : 1;
  for (int round = 0; round < rounds; ++round) {
    const auto [factor, loss] = best_factor(count, [&](double tried) {
      mix.factor = tried;
      return sums_of(mix);
    });
    mix.factor = factor;
    mix.loss = loss;
    if (!rows_.weighs_classes()) return;
    SvmMix without = mix;
    without.offsets.clear();
    mix.offsets = offsets_of(rows_, [&](const RowVisit& take) { visit(without, take); });
    mix.loss = sums_of(mix).of_rows.loss_sum;
  }
}

std::vector<double> HeldOut::logits_of(const Part& part, size_t held_out, const SvmMix& mix) const {
  const auto problems = static_cast<size_t>(problems_);
  std::vector<double> logits(static_cast<size_t>(rows_.classes()));
  const float* const scores = part.scores.data() + held_out * part.unknown.size();
  const double absence = 1 - static_cast<double>(part.presence[held_out]);
  for (size_t p = 0; p < problems; ++p) {
    const size_t plain = static_cast<size_t>(mix.plain) * problems + p,
                 ratios = static_cast<size_t>(mix.ratios) * problems + p,
                 column = static_cast<size_t>(positive_class(rows_, static_cast<int64_t>(p)));
    const auto mixed = [&](const float* of) {
      return mix.plain_share * static_cast<double>(of[plain]) + mix.ratios_share * static_cast<double>(of[ratios]);
    };
    logits[column] = mix.factor * (mixed(scores) - absence * mixed(part.unknown.data())) + absence * shares_[column];
    if (!mix.offsets.empty()) logits[column] += (1 - absence) * mix.offsets[column];
  }
  if (rows_.is_binary()) logits[0] = -logits[1];
  return logits;
}

void HeldOut::add(const Part& part, const SvmMix& mix, LogitSums& sums) const {
  for (size_t i = 0; i < part.held_out.size(); ++i) {
    stop_point();
    const int64_t row = part.held_out[i];
    sums.add(logits_of(part, i, mix), rows_.labels(row), rows_.multi_label(), rows_.relative_weight(row));
  }
}

void HeldOut::visit(const SvmMix& mix, const RowVisit& take) const {
  for (const Part& part : parts_)
    for (size_t i = 0; i < part.held_out.size(); ++i) {
      stop_point();
      const int64_t row = part.held_out[i];
      take(logits_of(part, i, mix), rows_.labels(row), rows_.relative_weight(row));
    }
}

LogitSums HeldOut::sums_of(const SvmMix& mix) const {
  LogitSums total;
  for (const Part& part : parts_) add(part, mix, total);
  return total;
}

Evaluation HeldOut::evaluate(const SvmMix& mix) const { return sums_of(mix).of_rows; }

LabelReport HeldOut::label_report(const SvmMix& mix, std::vector<double> thresholds) const {
  LabelReport report(rows_.classes(), std::move(thresholds));
  visit(mix, [&](const std::vector<double>& logits, const RowLabels& labels, double) {
    report.add(probabilities_of(logits, true).data(), flags_of(labels, logits.size()).data());
  });
  return report;
}

HeldOutPredictions HeldOut::predictions(const SvmMix& mix) const {
  HeldOutPredictions all(rows_.classes());
  visit(mix, [&](const std::vector<double>& logits, const RowLabels& labels, double) {
    all.add(probabilities_of(logits, false).data(), labels.front());
  });
  return all;
}

std::vector<double> HeldOut::accuracies(const SvmMix& mix) const {
  std::vector<double> all;
  for (const Part& part : parts_) {
    if (part.held_out.empty()) continue;
    LogitSums sums;
    add(part, mix, sums);
    all.push_back(sums.of_rows.accuracy());
  }
  return all;
}

}  // namespace capstan
