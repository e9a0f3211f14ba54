#include "run/report/model_html.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "run/report/html.hpp"

namespace capstan {
namespace {

/// A word on one line: line ends are shown as a symbol.
std::string on_one_line(const std::string& word) {
  std::string out;
  for (const char c : word) out += c == '\n' ? std::string("\xE2\x86\xB5") : std::string(1, c);  // U+21B5
  return out;
}

/// The text; the more of the head's weight a word has, the darker it is.
std::string words_html(const std::vector<std::string>& words, const std::vector<float>& weights, size_t head) {
  const float most = std::max(1e-9F, *std::max_element(weights.begin(), weights.end()));
  std::string out = fmt::format("<p class=\"words\"><b>head {}</b> ", head + 1);
  for (size_t i = 0; i < words.size(); ++i)
    out += fmt::format("<span style=\"--share:{:.3f}\" title=\"{:.2f} %\">{}</span>", weights[i] / most,
                       100 * weights[i], escaped(on_one_line(words[i])));
  return out + fmt::format("<small>strongest: {:.1f} %</small></p>\n", 100 * most);
}

std::string layer_html(const LayerView& layer, const std::vector<std::string>& words, bool open) {
  std::string out = fmt::format("<details{}><summary>{}</summary>", open ? " open" : "", escaped(layer.name));
  if (!layer.position_bias.empty()) {
    out += "<p class=\"sub\">position bias</p>";
    out += to_html(layer.position_bias, "w, added to the key of source s for target t (the logarithm of a factor)");
  }
  for (const WeightsView& weights : layer.weights) {
    out += fmt::format("<p class=\"sub\">{}</p>", escaped(weights.name));
    for (size_t head = 0; head < weights.words.size(); ++head) out += words_html(words, weights.words[head], head);
    out += to_html(weights.maps, "weight of source s for target t, tokens of the text above");
  }
  if (layer.heads_left_out > 0)
    out += fmt::format("<p><small>{} more heads left out</small></p>", layer.heads_left_out);
  return out + "</details>\n";
}

}  // namespace

std::string model_html(const ModelView& view) {
  if (view.layers.empty()) return "";
  std::string out;
  const bool shows_text = std::any_of(view.layers.begin(), view.layers.end(),
                                      [](const LayerView& layer) { return !layer.weights.empty(); });
  if (shows_text) {
    out += "<p class=\"hint\">The text that the weights are of:</p><blockquote>";
    for (const std::string& word : view.words) out += escaped(word);
    out += "</blockquote>\n";
  }
  for (size_t i = 0; i < view.layers.size(); ++i) out += layer_html(view.layers[i], view.words, i == 0);
  if (view.layers_left_out > 0)
    out += fmt::format("<p><small>{} more layers left out</small></p>\n", view.layers_left_out);
  return out;
}

}  // namespace capstan
