// POST /v1/embeddings, /v1/classify and /v1/fill-mask. Texts of a request are computed a few at a time, by turns with
// steps of texts that are written (Scheduler). tests/serve/test_endpoints.cpp holds the answers.
#include <algorithm>
#include <cstring>

#include "core/io/json.hpp"
#include "core/strings/base64.hpp"
#include "core/strings/strings.hpp"
#include "run/predictions/predictions.hpp"
#include "serve/call.hpp"
#include "serve/tokens/token_lists.hpp"

namespace capstan {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// How many texts of a request are computed together. Texts that are being written wait for no more than these.
constexpr size_t texts_at_a_time = 8;
constexpr size_t max_ngrams = 20;      // in an explanation of one label
constexpr int64_t element_bytes = 22;  // a number with its comma, in JSON

/// What marks a blank, as in capstan predict.
const std::string& mask_mark() {
  static const std::string mark = PredictOptions().blank;
  return mark;
}

/// A list of answers about texts, as the text of JSON, since values would take ten times the memory.
class JsonList {
 public:
  void add(const ordered_json& value) {
    if (count_++ > 0) text_ += ',';
    text_ += text_of(value);
  }
  size_t count() const { return count_; }
  std::string text() const { return '[' + text_ + ']'; }
  /// The object with this list as `data`.
  HttpAnswer in(const ordered_json& object) const {
    std::string json = text_of(object);
    json.back() = ',';
    return {200, json + "\"data\":" + text() + "}"};
  }

 private:
  std::string text_;
  size_t count_ = 0;
};

/// Calls body(texts, list), which adds to the list, for a few texts at a time, and then answers with answer(list).
/// `bytes`: the most that the answer about a text may have.
void for_texts(const Call& call, std::vector<InputText> texts, int64_t bytes, const char* param,
               std::function<void(const std::vector<InputText>& texts_now, JsonList& list)> body,
               std::function<HttpAnswer(const JsonList& list)> answer) {
  std::shared_ptr<void> places =
      enter(call, {1, static_cast<int64_t>(texts.size()) * bytes}, param, "the number of texts");
  answer_later(call, std::move(places),
               [texts = std::move(texts), body = std::move(body), answer = std::move(answer), next = size_t{0},
                list = JsonList()]() mutable -> std::optional<HttpAnswer> {
                 const auto at = [&](size_t i) { return texts.begin() + static_cast<std::ptrdiff_t>(i); };
                 const size_t end = std::min(texts.size(), next + texts_at_a_time);
                 body({at(next), at(end)}, list);
                 next = end;
                 if (end < texts.size()) return {};
                 return answer(list);
               });
}

/// The n-grams that say most about a label: [{"ngram", "weight"}].
ordered_json ngrams_json(const TextExplanation& explanation, size_t column) {
  ordered_json list = ordered_json::array();
  for (const auto& [weight, name] : strongest_ngrams(explanation, column, max_ngrams))
    list.push_back({{"ngram", name}, {"weight", weight}});
  return list;
}

/// The answer about one text: the likeliest of its labels, all of them, and the probabilities of all classes.
ordered_json label_json(const SavedRun& run, const InputText& text, const Prediction& prediction, bool explain) {
  ordered_json labels = ordered_json::array(), explanation = ordered_json::object();
  const TextExplanation reasons = explain ? explanation_of(run, text) : TextExplanation();
  for (const Guess& label : prediction.labels) {
    labels.push_back(label.text);
    const auto column = std::find(run.classes.begin(), run.classes.end(), label.text) - run.classes.begin();
    if (explain) explanation[label.text] = ngrams_json(reasons, static_cast<size_t>(column));
  }
  const auto likeliest = std::max_element(prediction.labels.begin(), prediction.labels.end(),
                                          [](const Guess& a, const Guess& b) { return a.probability < b.probability; });
  ordered_json answer{{"label", labels.empty() ? ordered_json(nullptr) : ordered_json(likeliest->text)},
                      {"labels", std::move(labels)},
                      {"probs", prediction.probabilities},
                      {"num_classes", run.classes.size()}};
  if (explain) answer["explanation"] = std::move(explanation);
  return answer;
}

/// The guesses of a blank as pipelines of Hugging Face give them; `at`: where it is in the text.
ordered_json guesses_json(const std::string& text, size_t at, const std::vector<Guess>& guesses) {
  const bool spaced = at == 0 || std::strchr(" \t\n", text[at - 1]) != nullptr;
  ordered_json list = ordered_json::array();
  for (const Guess& guess : guesses)
    list.push_back({{"score", guess.probability},
                    {"token", guess.token},
                    {"token_str", guess.text},
                    {"sequence", text.substr(0, at) + (spaced ? "" : guess.space) + guess.text +
                                     text.substr(at + mask_mark().size())}});
  return list;
}

/// Where the blanks of a text are; throws ApiError without one.
std::vector<size_t> blanks_of(const InputText& text) {
  std::vector<size_t> places;
  for (size_t at = 0; (at = text.text.find(mask_mark(), at)) != std::string::npos; at += mask_mark().size())
    places.push_back(at);
  if (places.empty())
    throw ApiError(
        400, fmt::format("{}: there is no {} in the text: write it where a token is missing", text.place, mask_mark()),
        "inputs");
  return places;
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
  const auto read = std::make_shared<int64_t>(0);
  const auto add = [engine, read, base64 = format == "base64"](const std::vector<InputText>& texts, JsonList& list) {
    int64_t tokens = 0;
    for (const std::vector<float>& vector : vectors_of(engine->run(), texts, &tokens)) {
      ordered_json embedding = vector;
      if (base64) embedding = to_base64({reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float)});
      list.add({{"object", "embedding"}, {"index", list.count()}, {"embedding", std::move(embedding)}});
    }
    *read += tokens;
  };
  const int64_t bytes = 64 + width * (format == "base64" ? 6 : element_bytes);
  for_texts(call, input_texts(fields, call.context.options.completion, false), bytes, "input", add,
            [engine, read](const JsonList& list) {
              return list.in({{"object", "list"},
                              {"model", engine->name()},
                              {"usage", {{"prompt_tokens", *read}, {"total_tokens", *read}}}});
            });
}

void classify(const Call& call) {
  const json body = body_of(call.request);
  const RequestFields fields(body, {"model", "input", "explain", "user"});
  const std::shared_ptr<Engine> engine = engine_of(body, call.context.models);
  check_predicts(*engine, Predicts::classes);
  const bool explain = fields.flag("explain", false);
  if (explain && !facts_of(engine->run().config.model).reads_texts)
    fields.refuse("explain", "only the decisions of a linear-classifier can be explained by n-grams");
  const auto add = [engine, explain](const std::vector<InputText>& texts, JsonList& list) {
    const std::vector<Prediction> predictions = predictions_of(engine->run(), texts);
    for (size_t i = 0; i < texts.size(); ++i) {
      ordered_json answer = label_json(engine->run(), texts[i], predictions[i], explain);
      answer["index"] = list.count();
      list.add(answer);
    }
  };
  int64_t bytes = 128;
  for (const std::string& label : engine->run().classes)
    bytes += element_bytes + json_bytes(label) + (explain ? json_bytes(label) + max_ngrams * 64 : 0);
  for_texts(call, input_texts(fields, call.context.options.completion, true), bytes, "input", add,
            [engine](const JsonList& list) {
              return list.in({{"object", "list"}, {"model", engine->name()}, {"classes", engine->run().classes}});
            });
}

void fill_mask(const Call& call) {
  const json body = body_of(call.request);
  const RequestFields fields(body, {"model", "inputs", "parameters", "options", "user"});
  const std::shared_ptr<Engine> engine = engine_of(body, call.context.models);
  check_predicts(*engine, Predicts::hidden_tokens);
  static const json none = json::object();
  const json* const given = fields.find("parameters");
  PredictOptions options;
  options.top_k = RequestFields(given != nullptr ? *given : none, {"top_k"}, "parameters").whole("top_k", 5, 1, 1000);
  std::vector<InputText> texts = input_texts(fields, call.context.options.completion, false, "inputs");
  int64_t bytes = 0;  // of the longest answer about a text
  for (const InputText& text : texts)
    bytes =
        std::max(bytes, static_cast<int64_t>(blanks_of(text).size()) * options.top_k * (json_bytes(text.text) + 128));
  const auto add = [engine, options](const std::vector<InputText>& texts_now, JsonList& list) {
    const std::vector<Prediction> predictions = predictions_of(engine->run(), texts_now, options);
    for (size_t i = 0; i < texts_now.size(); ++i) {
      const std::vector<size_t> places = blanks_of(texts_now[i]);
      ordered_json blanks = ordered_json::array();
      for (size_t b = 0; b < places.size(); ++b)
        blanks.push_back(guesses_json(texts_now[i].text, places[b], predictions[i].blanks[b]));
      list.add(places.size() == 1 ? blanks.front() : blanks);
    }
  };
  const bool several = fields.find("inputs")->is_array();
  for_texts(call, std::move(texts), bytes, "inputs", add, [several](const JsonList& list) {
    const std::string json = list.text();
    return HttpAnswer{200, several ? json : json.substr(1, json.size() - 2)};  // one text: without the brackets
  });
}

}  // namespace capstan
