// Finds the names of n-grams by hashing the training texts again, since a model keeps their hashes alone.
// tests/cli/runs/test_report.cpp.
#include "run/report/ngram_view.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "models/linear_classifier.hpp"
#include "nn/layers/text_ngrams.hpp"

namespace capstan {
namespace {

// N-grams that are shown of a class, and those whose names are looked for: more, since some are not found.
constexpr size_t max_shown = 12, wanted = 20;
constexpr size_t votes = 3;  // texts that vote for the name of a bucket

}  // namespace

std::vector<ClassNgrams> ngram_view(const SavedRun& run, const LabelledTexts& training) {
  const LinearClassifier& model = run.model->model().linear_classifier();
  const auto weights = model.largest_weights(wanted);
  std::map<uint32_t, std::map<std::string, size_t>> names;  // bucket -> name -> votes
  std::map<uint32_t, size_t> open;                          // bucket -> votes that are missing
  for (const auto& of_class : weights)
    for (const BucketWeight& weight : of_class) open[weight.bucket] = votes;
  const auto wanted_still = [&](uint32_t bucket) { return open.count(bucket) > 0; };
  for (int64_t i = 0; i < training.size() && !open.empty(); ++i) {
    const NamedNgrams of_text =
        named_ngrams(training.text(i), orders_of(model.config()), bits_of(model.buckets()), wanted_still);
    std::set<uint32_t> voted;  // a text has one vote for each bucket
    for (const auto* const ngrams : {&of_text.words, &of_text.characters})
      for (const NamedNgram& ngram : *ngrams) {
        if (!voted.insert(ngram.bucket).second) continue;
        ++names[ngram.bucket][ngram.name];
        if (--open[ngram.bucket] == 0) open.erase(ngram.bucket);
      }
  }
  std::vector<ClassNgrams> classes;
  for (size_t c = 0; c < weights.size(); ++c) {
    classes.push_back({run.classes[c], {}});
    for (const BucketWeight& weight : weights[c]) {
      const auto& of_bucket = names[weight.bucket];
      const auto likeliest = std::max_element(of_bucket.begin(), of_bucket.end(),
                                              [](const auto& a, const auto& b) { return a.second < b.second; });
      if (likeliest != of_bucket.end() && classes.back().ngrams.size() < max_shown)
        classes.back().ngrams.push_back({likeliest->first, weight.weight});
    }
  }
  return classes;
}

}  // namespace capstan
