#include "run/report/ngram_view.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "run/report/html.hpp"

namespace capstan {
namespace {

constexpr size_t most_shown = 12, few_shown = 5, many_classes = 20, wanted = 20;
constexpr size_t votes = 3;  // texts that vote for a name

}  // namespace

std::vector<ClassNgrams> ngram_view(const SavedRun& run, const LabelledTexts& training) {
  const Model& model = run.model->model();
  const auto weights = model.largest_weights(wanted);
  std::map<uint32_t, std::map<std::string, size_t>> names;  // bucket -> name -> votes
  std::map<uint32_t, size_t> open;                          // bucket -> votes that are missing
  for (const auto& of_class : weights)
    for (const BucketWeight& weight : of_class) open[weight.bucket] = votes;
  const auto wanted_still = [&](uint32_t bucket) { return open.count(bucket) > 0; };
  for (int64_t i = 0; i < training.size() && !open.empty(); ++i) {
    const NamedNgrams found = model.named_ngrams(training.text(i), wanted_still);
    std::set<uint32_t> voted;  // a text has one vote
    for (const auto* const ngrams : {&found.words, &found.characters})
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
      if (likeliest != of_bucket.end() && classes.back().ngrams.size() < most_shown)
        classes.back().ngrams.push_back({likeliest->first, weight.weight});
    }
  }
  return classes;
}

std::string ngrams_html(const std::vector<ClassNgrams>& classes) {
  if (classes.empty()) return "";
  std::string out =
      "<p class=\"hint\">What one occurrence adds to the logit of the class, before a text's n-grams are scaled to "
      "unit "
      "norm; in n-grams of characters, _ is the edge of a word and \u00b7 where it goes on; ^ and $ are the ends of a "
      "text.</p><dl class=\"ngrams\">";
  for (const ClassNgrams& of : classes) {
    out += fmt::format("<div><dt>{}</dt>", escaped_short(of.name));
    for (size_t i = 0; i < std::min(of.ngrams.size(), classes.size() > many_classes ? few_shown : most_shown); ++i) {
      const NgramWeight& ngram = of.ngrams[i];
      out += fmt::format("<dd style=\"--share:{:.3f}\"><span>{}</span> {:.2f}</dd>",
                         ngram.weight / of.ngrams.front().weight, escaped_short(ngram.name), ngram.weight);
    }
    out += "</div>";
  }
  return out + "</dl>\n";
}

}  // namespace capstan
