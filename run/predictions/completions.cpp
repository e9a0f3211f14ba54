// Prepares prompts and writes completions, for generate and the server. Both must write the same text for a request:
// tests/serve/test_endpoints.cpp and test_company.cpp.
#include "run/predictions/completions.hpp"

#include <algorithm>
#include <utility>

#include "core/io/log.hpp"

namespace capstan {

std::string StopFilter::push(const std::string& text) {
  pending_ += text;
  for (const std::string& stop : stops_) {
    const size_t at = pending_.find(stop);
    if (at == std::string::npos) continue;
    done_ = true;
    return std::exchange(pending_, "").substr(0, at);
  }
  size_t keep = 0;
  for (const std::string& stop : stops_)
    for (size_t length = std::min(stop.size() - 1, pending_.size()); length > keep; --length)
      if (pending_.compare(pending_.size() - length, length, stop, 0, length) == 0) keep = length;
  const std::string shown = pending_.substr(0, pending_.size() - keep);
  pending_.erase(0, shown.size());
  return shown;
}

std::string StopFilter::finish() { return std::exchange(pending_, ""); }

namespace {

/// Keeps the last tokens of a long text where the model has no position limit: it would read a text of any length, in a
/// time that grows with its square. A source of pairs is refused instead, since its beginning matters as much as its
/// end.
void bound_prompt(const SavedRun& run, std::vector<int32_t>& tokens, const std::string& place) {
  const SourceFacts facts = facts_of(run.config.data);
  const auto most = static_cast<size_t>(std::max<int64_t>(1 << 14, 4 * facts.longest));  // tokens
  if (run.model->position_limit() || tokens.size() <= most) return;
  if (facts.has_pairs)
    throw Error(
        fmt::format("{}: the source has {} tokens; at most {} are read: shorten it", place, tokens.size(), most));
  log_info(fmt::format("{}: of {} tokens, the last {} are read", place, tokens.size(), most));
  tokens.erase(tokens.begin(), tokens.end() - static_cast<std::ptrdiff_t>(most));
}

/// The tokens that are read of a text which is continued: prompt_of(), or a start token where that is empty.
std::vector<int32_t> tokens_to_continue(const SavedRun& run, const InputText& text) {
  std::vector<int32_t> tokens = prompt_of(run, text.text, text.place);
  bound_prompt(run, tokens, text.place);
  if (tokens.empty()) tokens.push_back(run.tokenizer->start_token());  // a model predicts only after a token
  return tokens;
}

}  // namespace

GenerateOptions generation_of(const SavedRun& run, GenerateOptions options) {
  const bool pairs = facts_of(run.config.data).has_pairs;
  options.slide = options.slide && !pairs;  // a target is not written without its source
  options.stop_token = end_of_document(run);
  if (const auto unknown = run.tokenizer->unknown_token()) options.banned.push_back(*unknown);
  if (pairs) options.banned.push_back(*options.stop_token + 1);  // the separator
  options.on_slide = [&run] {
    const int64_t positions = *run.model->position_limit();
    log_info(fmt::format("the model has only {} positions: from here on it reads the last {} to {} tokens of the text",
                         positions, std::max<int64_t>(1, positions / 2), positions));
  };
  return options;
}

std::vector<Completion> completions_of(const SavedRun& run, const InputText& text, const CompletionOptions& options) {
  const Model& model = run.model->that_predicts(Predicts::next_token);
  const std::vector<int32_t> tokens = tokens_to_continue(run, text);
  std::vector<Prompt> prompts;
  std::vector<SampleText> samples;
  for (int64_t i = 0; i < options.samples; ++i) {
    prompts.push_back({tokens, i});
    samples.emplace_back(run, options.stop, tokens.back(), options.invalid);
  }
  std::vector<Completion> completions(samples.size());
  const auto add = [&](size_t sample, const std::string& piece) {
    completions[sample].text += piece;
    return !options.on_piece || options.on_piece(static_cast<int64_t>(sample), piece);
  };
  GenerateOptions generation = generation_of(run, options);
  generation.on_token = [&](int64_t index, int32_t token) {
    const auto sample = static_cast<size_t>(index);
    return add(sample, samples[sample].push(token)) && !samples[sample].done();
  };
  std::vector<Generated> results;
  try {
    results = generate_together(model, prompts, generation);
  } catch (const NotFinite& error) {
    throw NotFinite(fmt::format("{}: {}", text.place, error.what()));
  }
  for (size_t i = 0; i < samples.size(); ++i) {
    completions[i].end = results[i].end;
    add(i, samples[i].finish());
  }
  return completions;
}

void print_completions(const SavedRun& run, const InputText& prompt, CompletionOptions options, std::ostream& out) {
  const std::string given = prompt.text + (facts_of(run.config.data).has_pairs ? "\t" : "");
  if (options.samples > 1) {
    bool first = true;
    options.on_piece = [&](int64_t, std::string_view) { return out.good(); };
    for (const Completion& completion : completions_of(run, prompt, options)) {
      out << (first ? "" : "---\n") << given << completion.text << std::endl;
      first = false;
    }
    return;
  }
  out << given;
  options.on_piece = [&](int64_t, std::string_view piece) { return (out << piece << std::flush).good(); };
  const Completion only = completions_of(run, prompt, options).front();
  out << std::endl;
  if (only.end == GenerateEnd::stop_token) log_info("the document ends here");
  if (only.end == GenerateEnd::window) log_info("stopped at the model's last position");
}

}  // namespace capstan
