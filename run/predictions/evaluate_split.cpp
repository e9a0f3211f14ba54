// Evaluates a split with the model of a run: losses, decisions, pairs, and the first text that is not finite.
// tests/cli/runs/test_eval.cpp, test_decisions.cpp and test_multi_label.cpp.
#include <cmath>

#include <fmt/core.h>

#include "core/autograd/tape.hpp"
#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/strings/printable.hpp"
#include "models/linear_classifier.hpp"
#include "run/inputs/input_text.hpp"
#include "run/predictions/eval_report.hpp"
#include "run/setup/run_data.hpp"
#include "run/setup/saved_run.hpp"
#include "train/evaluation/classifier_evaluation.hpp"
#include "train/evaluation/metrics.hpp"

namespace capstan {
namespace {

/// The name of a text that has no place, for messages: its first words.
std::string named(Split split, const std::string& text) {
  constexpr size_t shown = 60;  // columns
  const std::string line = printable_line(text);
  const std::string_view begin = first_columns(line, shown);
  return fmt::format("{} split, text \"{}{}\"", to_string(split), begin, begin.size() < line.size() ? "..." : "");
}

/// Throws Error that names the first text of a split for which the model computes what is not finite.
[[noreturn]] void refuse_not_finite(const SavedRun& run, const LabelledTexts& texts, Split split) {
  for (int64_t i = 0; i < texts.size(); ++i) {
    const Array logits = run.model->model().linear_classifier().text_logits({texts.text(i)});
    require_finite(logits.data(), logits.size(), named(split, texts.text(i)));
  }
  throw_not_finite(fmt::format("{} split", to_string(split)), NAN);
}

[[noreturn]] void refuse_not_finite(const SavedRun& run, const BatchSource& batches, Split split) {
  const TapePause no_tape;
  const int64_t vocabulary = run.tokenizer->vocabulary_size();
  for (int64_t index = 0; index < batches.batches_per_epoch(0); ++index) {
    const Batch batch = batches.batch(0, index);
    for (int64_t row = 0; row < batch.tokens.dim(0); ++row) {
      const Batch single = rows_of(batch, row, row + 1);
      std::vector<int32_t> tokens;
      for (int64_t t = 0; t < single.tokens.size(); ++t)
        if (single.segment_ids[t] != 0 && single.tokens[t] < vocabulary) tokens.push_back(single.tokens[t]);
      const TaskLoss loss = run.model->model().loss(single, Context::evaluation(single));
      require_finite(static_cast<double>(loss.sum.value().item()), named(split, run.tokenizer->decode(tokens)));
    }
  }
  throw_not_finite(fmt::format("{} split", to_string(split)), NAN);
}

/// Takes what a classifier was found to decide.
void take(EvalReport& report, ClassifierEvaluation found) {
  report.total = found.total;
  report.classification = std::move(found.report);
  report.plain = std::move(found.plain);
  report.ranked = std::move(found.ranked);
  report.labels = std::move(found.labels);
}

void add_goal(EvalReport& report, const SavedRun& run, const DataSource& data) {
  if (metric_of(run.config.train.monitor).of != Metric::Of::one_label) return;
  report.goal = decision_goal(run.config, data).value_or(DecisionGoal());
}

}  // namespace

EvalReport evaluate_split(const SavedRun& run, const DataSource& data, Split split, const PredictOptions& completions,
                          const AdaptOptions& adapting) {
  require_split(split, run.config, data);
  EvalReport report;
  report.split = to_string(split);
  report.classes = run.classes;
  const std::vector<std::string> unseen = split == Split::test ? data.unseen_classes() : std::vector<std::string>();
  report.classes.insert(report.classes.end(), unseen.begin(), unseen.end());
  const auto further = static_cast<int64_t>(unseen.size());
  const ModelFacts facts = facts_of(run.config.model);
  const Model& model = run.model->model();
  if (facts.reads_texts) {
    LabelledTexts texts = data.texts(split);
    Progress progress(log_info, "evaluating", static_cast<double>(texts.size()), in_texts);
    progress.begin("evaluating");
    texts.report_to(progress);
    take(report, evaluate_classifier(model, texts, run.rule, further));
    add_goal(report, run, data);
    if (!std::isfinite(report.total.loss())) refuse_not_finite(run, texts, split);
    return report;
  }
  const auto split_batches = data.evaluation(split);
  Progress progress(log_info, "evaluating", static_cast<double>(split_batches->batches_per_epoch(0)), in_shares);
  const WatchedBatches source(*split_batches, progress);
  if (!facts.classifies()) {
    report.predicts_tokens = true;
    report.total = evaluate(model, source, 0);
  } else if (model.label_columns() > 0) {
    const bool each = run.state && !run.state->rule.empty();  // label has a threshold of its own
    LabelReport labels(model.label_columns(), each ? run.thresholds : std::vector<double>{});
    report.ranked.emplace(model.label_columns(), split_batches->examples_per_epoch());
    report.total = evaluate(model, source, 0, nullptr, {&labels, nullptr, &*report.ranked});
    report.labels = labels.at(each ? default_threshold : run.thresholds.front());
    report.total.correct = report.labels->exact;
  } else {
    take(report, evaluate_classifier(model, source, run.rule, further));
  }
  if (facts.classifies()) add_goal(report, run, data);
  if (!std::isfinite(report.total.loss())) refuse_not_finite(run, *split_batches, split);
  if (facts_of(run.config.data).has_pairs && split != Split::train)
    report.pairs = evaluate_pairs(run, data.evaluation_pairs(split), completions);
  if (facts.predicts == Predicts::next_token) report.text = data.text_size(split);  // each of its tokens is scored
  if (adapting.any()) report.adapted = evaluate_adapted(run, data, split, adapting);
  return report;
}

}  // namespace capstan
