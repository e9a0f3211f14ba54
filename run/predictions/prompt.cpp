// tests/cli/runs/test_predictions.cpp.
#include "run/predictions/prompt.hpp"

#include "data/batches/text_example.hpp"

namespace capstan {

std::vector<int32_t> prompt_of(const SavedRun& run, std::string_view text, const std::string& place) {
  const SourceFacts facts = facts_of(run.config.data);
  std::vector<int32_t> prompt = encode_text({text}, *run.tokenizer, facts.text, place);
  if (const auto start = start_token(run)) prompt.insert(prompt.begin(), *start);
  if (facts.has_pairs) prompt.push_back(*end_of_document(run) + 1);
  return prompt;
}

}  // namespace capstan
