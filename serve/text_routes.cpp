#include <algorithm>
#include <cmath>

#include "core/io/json.hpp"
#include "core/strings/base64.hpp"
#include "core/strings/join.hpp"
#include "run/predictions/predictions.hpp"
#include "run/predictions/text_vectors.hpp"
#include "serve/call.hpp"

namespace capstan {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// Texts of one request that are computed together: what is written waits for no more.
constexpr size_t texts_at_a_time = 8;
constexpr size_t most_ngrams = 20;  // of an explanation

/// Answers when body(texts), which adds to the list, is done for all texts, some at a time.
void for_texts(const Call& call, std::vector<InputText> texts,
               std::function<void(const std::vector<InputText>& some, ordered_json& list)> body,
               std::function<ordered_json(ordered_json list)> answer) {
  answer_later(call,
               [texts = std::move(texts), body = std::move(body), answer = std::move(answer), next = size_t{0},
                list = ordered_json::array()]() mutable -> std::optional<HttpAnswer> {
                 const auto at = [&](size_t i) { return texts.begin() + static_cast<std::ptrdiff_t>(i); };
                 const size_t end = std::min(texts.size(), next + texts_at_a_time);
                 body({at(next), at(end)}, list);
                 next = end;
                 if (end < texts.size()) return {};
                 return json_answer(answer(std::move(list)));
               });
}

/// The n-grams that say most about a label: [{"ngram", "weight"}].
ordered_json ngrams_json(const TextExplanation& explanation, size_t column) {
  std::vector<std::pair<double, std::string>> ngrams;
  for (const TextExplanation::Ngram& ngram : explanation.ngrams) ngrams.emplace_back(ngram.logits[column], ngram.name);
  const size_t shown = std::min(most_ngrams, ngrams.size());
  std::partial_sort(ngrams.begin(), ngrams.begin() + static_cast<std::ptrdiff_t>(shown), ngrams.end(),
                    [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < shown; ++i) list.push_back({{"ngram", ngrams[i].second}, {"weight", ngrams[i].first}});
  return list;
}

ordered_json label_json(const SavedRun& run, const InputText& text, const Prediction& said, bool explain) {
  ordered_json labels = ordered_json::array(), explanation = ordered_json::object();
  const TextExplanation reasons = explain ? explanation_of(run, text) : TextExplanation();
  for (const Guess& label : said.labels) {
    labels.push_back(label.text);
    const auto column = std::find(run.classes.begin(), run.classes.end(), label.text) - run.classes.begin();
    if (explain) explanation[label.text] = ngrams_json(reasons, static_cast<size_t>(column));
  }
  ordered_json one{{"label", labels.empty() ? ordered_json(nullptr) : labels.front()},
                   {"labels", std::move(labels)},
                   {"probs", said.probabilities},
                   {"num_classes", run.classes.size()}};
  if (explain) one["explanation"] = std::move(explanation);
  return one;
}

}  // namespace

void embed(const Call& call) {
  const json body = body_of(call.request);
  const RequestFields fields(body, {"model", "input", "encoding_format", "dimensions", "user"});
  const std::shared_ptr<Engine> engine = engine_of(body, call.context.models);
  const int64_t width = engine->run().model->stack().config().width;
  const std::string format = fields.text("encoding_format", "float");
  if (format != "float" && format != "base64") fields.refuse("encoding_format", "expected float or base64");
  if (fields.whole("dimensions", width, 1, 1 << 30) != width)
    fields.refuse("dimensions", fmt::format("the vectors of this model have {} elements", width));
  const auto add = [engine, base64 = format == "base64"](const std::vector<InputText>& texts, ordered_json& list) {
    for (const std::vector<float>& vector : vectors_of(engine->run(), texts)) {
      ordered_json embedding = vector;
      if (base64) embedding = to_base64({reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float)});
      list.push_back({{"object", "embedding"}, {"index", list.size()}, {"embedding", std::move(embedding)}});
    }
  };
  for_texts(call, input_texts(fields, call.context.options.completion, false), add, [engine](ordered_json list) {
    return ordered_json{{"object", "list"},
                        {"data", std::move(list)},
                        {"model", engine->name()},
                        {"usage", {{"prompt_tokens", 0}, {"total_tokens", 0}}}};
  });
}

void classify(const Call& call) {
  const json body = body_of(call.request);
  const RequestFields fields(body, {"model", "input", "explain", "user"});
  const std::shared_ptr<Engine> engine = engine_of(body, call.context.models);
  engine->run().model->that_predicts(Predicts::classes);
  const bool explain = fields.flag("explain", false);
  if (explain && !facts_of(engine->run().config.model).reads_texts)
    fields.refuse("explain", "only the decisions of a linear-classifier can be explained by n-grams");
  const auto add = [engine, explain](const std::vector<InputText>& texts, ordered_json& list) {
    const std::vector<Prediction> said = predictions_of(engine->run(), texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      ordered_json one = label_json(engine->run(), texts[i], said[i], explain);
      one["index"] = list.size();
      list.push_back(std::move(one));
    }
  };
  for_texts(call, input_texts(fields, call.context.options.completion, true), add, [engine](ordered_json list) {
    return ordered_json{
        {"object", "list"}, {"model", engine->name()}, {"classes", engine->run().classes}, {"data", std::move(list)}};
  });
}

}  // namespace capstan
