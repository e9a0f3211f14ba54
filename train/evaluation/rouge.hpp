// ROUGE: how much of a reference text another one has. Lin 2004, "ROUGE: A Package for Automatic Evaluation of
// Summaries".
#pragma once

#include <string_view>

namespace capstan {

struct RougeScore {
  double precision = 0, recall = 0, f1 = 0;
};

/// The numbers of the Python package rouge-score without stemming: texts in lower case, words are runs of a-z and 0-9.
/// one, two: shared n-grams, each counted as often as both have it. longest: the longest common subsequence of all
/// words.
struct RougeScores {
  RougeScore one, two, longest;
};
RougeScores rouge(std::string_view reference, std::string_view prediction);

}  // namespace capstan
