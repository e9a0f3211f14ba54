// Completes the sources of pairs, in groups of prompts of one length. Groups must not change results:
// tests/cli/runs/test_predictions.cpp and tests/serve/test_company.cpp.
#include <algorithm>
#include <exception>
#include <functional>
#include <map>

#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"
#include "models/generation/beam_search.hpp"
#include "models/generation/generate.hpp"
#include "run/inputs/input_text.hpp"
#include "run/predictions/completions.hpp"
#include "run/predictions/predictions.hpp"

namespace capstan {
namespace {

/// How a target is written after a prompt of this many tokens.
GenerateOptions generation_after(const SavedRun& run, size_t prompt, const PredictOptions& options) {
  GenerateOptions generation;
  generation.sampling.temperature = 0;
  generation.max_tokens = options.max_tokens;
  if (generation.max_tokens == 0)
    generation.max_tokens = std::max<int64_t>(1, facts_of(run.config.data).longest - static_cast<int64_t>(prompt));
  generation.log_probabilities = true;
  generation.beam = options.beam;
  generation.length_penalty = options.length_penalty;
  return generation_of(run, generation);
}

/// The best texts that beam search finds for a prompt, the best first.
std::vector<PairCompletion> search(const SavedRun& run, const std::vector<int32_t>& prompt,
                                   const PredictOptions& options) {
  std::vector<PairCompletion> best;
  for (Hypothesis& text : beam_search(run.model->that_predicts(Predicts::next_token), prompt,
                                      generation_after(run, prompt.size(), options))) {
    if (static_cast<int64_t>(best.size()) == options.top_k) break;
    best.push_back({run.tokenizer->decode(text.tokens), {}, text.log_probability, text.finished});
    best.back().tokens = std::move(text.tokens);
  }
  return best;
}

/// One text for each prompt, of which each token is the likeliest.
std::vector<PairCompletion> write_likeliest(const SavedRun& run, const std::vector<Prompt>& prompts,
                                            const PredictOptions& options) {
  const GenerateOptions generation = generation_after(run, prompts.front().tokens.size(), options);
  std::vector<PairCompletion> written;
  for (Generated& text : generate_together(run.model->that_predicts(Predicts::next_token), prompts, generation)) {
    written.push_back(
        {run.tokenizer->decode(text.tokens), {}, text.log_probability, text.end == GenerateEnd::stop_token});
    written.back().tokens = std::move(text.tokens);
  }
  return written;
}

/// Groups of at most `most` prompts, as their indices. Prompts of a group have the same length: generate_together()
/// takes them in step.
std::vector<std::vector<size_t>> groups_of(const std::vector<std::vector<int32_t>>& prompts, int64_t most) {
  std::map<size_t, std::vector<size_t>> by_length;
  for (size_t i = 0; i < prompts.size(); ++i) by_length[prompts[i].size()].push_back(i);
  std::vector<std::vector<size_t>> groups;
  for (const auto& [length, members] : by_length)
    for (size_t begin = 0; begin < members.size(); begin += static_cast<size_t>(most))
      groups.emplace_back(
          members.begin() + static_cast<long>(begin),
          members.begin() + static_cast<long>(std::min(members.size(), begin + static_cast<size_t>(most))));
  return groups;
}

/// The TextError for the first prompt of a group for which write(i) throws NotFinite. The prompts are written again one
/// by one, because an error of the group does not say whose it is.
std::exception_ptr first_not_finite(const std::vector<size_t>& group, const std::function<void(size_t)>& write) {
  for (const size_t i : group) {
    try {
      write(i);
    } catch (const NotFinite& error) {
      return std::make_exception_ptr(TextError(i, error));
    }
  }
  return std::make_exception_ptr(TextError(group.front(), NotFinite("a logit is not finite")));
}

}  // namespace

void refuse_options_without_pairs(const SavedRun& run, const PredictOptions& options) {
  if (facts_of(run.config.data).has_pairs) return;
  const PredictOptions usual;
  const std::pair<const char*, bool> given[] = {{"--beam", options.beam != usual.beam},
                                                {"--length-penalty", options.length_penalty != usual.length_penalty},
                                                {"--tokens", options.max_tokens != usual.max_tokens}};
  for (const auto& [option, is_given] : given)
    if (is_given)
      throw ConfigError(
          fmt::format("{}: is for runs with data.type: pairs, whose targets are written; the data of {} are of type "
                      "{}: leave it out",
                      option, run.config.name, type_of(run.config.data)));
}

void check_options(const PredictOptions& options) {
  if (options.top_k > options.beam)
    throw ConfigError(fmt::format("--top-k {}: only the texts of the beam are known; set --beam to {} or more",
                                  options.top_k, options.top_k));
}

std::vector<std::vector<PairCompletion>> complete(const SavedRun& run, const std::vector<std::vector<int32_t>>& prompts,
                                                  const PredictOptions& options) {
  check_options(options);
  std::vector<std::vector<PairCompletion>> completions(prompts.size());
  const std::vector<std::vector<size_t>> groups = groups_of(prompts, options.beam > 1 ? 1 : options.batch_size);
  std::vector<std::exception_ptr> errors(groups.size());
  parallel_units(static_cast<int64_t>(groups.size()), [&](int64_t unit) {
    const OneThread alone;
    const std::vector<size_t>& group = groups[static_cast<size_t>(unit)];
    try {
      if (options.beam > 1) {
        completions[group.front()] = search(run, prompts[group.front()], options);
        return;
      }
      std::vector<Prompt> together;
      for (const size_t i : group) together.push_back({prompts[i], 0});
      std::vector<PairCompletion> written = write_likeliest(run, together, options);
      for (size_t i = 0; i < group.size(); ++i) completions[group[i]] = {std::move(written[i])};
    } catch (const NotFinite&) {
      errors[static_cast<size_t>(unit)] = first_not_finite(group, [&](size_t i) {
        static_cast<void>(options.beam > 1 ? search(run, prompts[i], options)
                                           : write_likeliest(run, {{prompts[i], 0}}, options));
      });
    } catch (...) {
      errors[static_cast<size_t>(unit)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : errors)
    if (error != nullptr) std::rethrow_exception(error);
  return completions;
}

PairReport evaluate_pairs(const SavedRun& run, const std::vector<EvaluationPair>& pairs,
                          const PredictOptions& options) {
  constexpr size_t at_once = 4096, shown = 12;  // pairs whose completions are in memory; pairs that a report shows
  PairReport report;
  for (size_t begin = 0; begin < pairs.size(); begin += at_once) {
    std::vector<std::vector<int32_t>> prompts;
    for (size_t i = begin; i < std::min(pairs.size(), begin + at_once); ++i) prompts.push_back(pairs[i].prompt);
    const auto written = complete(run, prompts, options);
    for (size_t i = 0; i < written.size(); ++i) {
      const EvaluationPair& pair = pairs[begin + i];
      const PairCompletion& best = written[i].front();
      // Around the source are the token that starts a document and the one that ends a source.
      if (report.examples.size() < shown)
        report.examples.push_back(
            {run.tokenizer->decode({pair.prompt.begin() + 1, pair.prompt.end() - 1}), pair.text, best.text});
      ++report.pairs;
      report.exact_match += best.text == run.tokenizer->decode(pair.target) ? 1 : 0;
      report.log_probability += best.log_probability;
    }
  }
  const auto count = static_cast<double>(std::max<int64_t>(report.pairs, 1));
  report.exact_match /= count;
  report.log_probability /= count;
  return report;
}

}  // namespace capstan
