#include "run/report/ngram_view.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "run/report/html.hpp"

namespace capstan {
namespace {

constexpr size_t most_shown = 12, few_shown = 5, many_classes = 20, wanted = 20;
constexpr size_t votes = 3;  // texts that vote for a name

bool has(const std::vector<NgramCount>& counts, uint32_t bucket) {
  return std::any_of(counts.begin(), counts.end(), [=](const NgramCount& entry) { return entry.bucket() == bucket; });
}

/// Where the characters of a text begin, and its end.
std::vector<size_t> borders(const std::string& text) {
  std::vector<size_t> all;
  for (size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) all.push_back(i);
  all.push_back(text.size());
  return all;
}

/// A place where holds() begins to be true between `no`, where it is false, and `yes`, where it is true.
template <class Holds>
size_t turning_point(size_t no, size_t yes, const Holds& holds) {
  while (no + 1 != yes && yes + 1 != no) {
    const size_t middle = (no + yes) / 2;
    (holds(middle) ? yes : no) = middle;
  }
  return yes;
}

}  // namespace

std::string ngram_name(const Model& model, const std::string& text, uint32_t bucket) {
  const TextNgrams all = model.text_ngrams(text);
  const bool of_words = has(all.words, bucket);
  if (!of_words && !has(all.characters, bucket)) return "";
  const auto found = [&](const std::string& part) {
    const TextNgrams ngrams = model.text_ngrams(part);
    return has(of_words ? ngrams.words : ngrams.characters, bucket);
  };
  const std::vector<size_t> at = borders(text);
  if (at.size() < 2) return "";
  const size_t end = turning_point(0, at.size() - 1, [&](size_t i) { return found(text.substr(0, at[i])); });
  const size_t begin = turning_point(end, 0, [&](size_t i) { return found(text.substr(at[i], at[end] - at[i])); });
  std::string name = text.substr(at[begin], at[end] - at[begin]);
  // A neighbour takes an edge away.
  const auto edge = [&](bool start) {
    const bool there = !found(start ? (of_words ? "x " : "x") + name : name + (of_words ? " x" : "x"));
    if (!of_words) return there ? "_" : "\u00b7";
    return !there ? "" : start ? "^ " : " $";
  };
  const std::string before = edge(true), after = edge(false);
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return before + name + after;
}

std::vector<ClassNgrams> ngram_view(const SavedRun& run, const LabelledTexts& training) {
  const Model& model = run.model->model();
  const auto weights = model.largest_weights(wanted);
  std::map<uint32_t, std::map<std::string, size_t>> names;  // bucket -> name -> votes
  std::map<uint32_t, size_t> open;                          // bucket -> votes that are missing
  for (const auto& of_class : weights)
    for (const BucketWeight& weight : of_class) open[weight.bucket] = votes;
  for (int64_t i = 0; i < training.size() && !open.empty(); ++i) {
    const std::string text = training.text(i);
    const TextNgrams ngrams = model.text_ngrams(text);
    for (const auto* const counts : {&ngrams.words, &ngrams.characters})
      for (const NgramCount& entry : *counts) {
        const auto missing = open.find(entry.bucket());
        if (missing == open.end()) continue;
        ++names[entry.bucket()][ngram_name(model, text, entry.bucket())];
        if (--missing->second == 0) open.erase(missing);
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
