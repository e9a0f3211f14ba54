// POST /v1/embeddings and /v1/classify. Texts of a request are computed a few at a time, by turns with steps of texts
// that are written (Scheduler). tests/serve/test_endpoints.cpp holds the answers.
#include <algorithm>

#include "core/base/stop.hpp"
#include "core/io/json.hpp"
#include "core/strings/base64.hpp"
#include "run/predictions/predictions.hpp"
#include "run/predictions/text_vectors.hpp"
#include "serve/call.hpp"

namespace capstan {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// How many texts of a request are computed together. Texts that are being written wait for no more than these.
constexpr size_t texts_at_a_time = 8;
constexpr size_t max_ngrams = 20;  // in an explanation of one label

/// Computes answers about texts, a few texts at a time, and then answers with `object`, whose `data` they are. They are
/// kept as text of JSON, since values would take ten times the memory.
struct TextWork {
  std::vector<InputText> texts;
  std::function<std::vector<ordered_json>(const std::vector<InputText>& texts)> answers;
  std::function<ordered_json()> object;  // called at the end
  std::shared_ptr<HttpReply> reply = {};
  std::shared_ptr<Room::Part> part = {};
  size_t next = 0;
  std::string data = {};

  /// True where there is more to do.
  bool advance() {
    if (reply->gone()) return false;
    HttpAnswer answer;
    try {
      compute();
      if (next < texts.size()) return true;
      answer.body = json_line(object());
      answer.body.back() = ',';
      answer.body += "\"data\":[" + data + "]}";
    } catch (const Stopped&) {
      throw;
    } catch (const std::exception& error) {
      answer = error_answer(error);
    }
    part.reset();  // first, since a client that has read the answer may ask again at once
    reply->send(std::move(answer));
    return false;
  }
  void compute() {
    const auto at = [&](size_t i) { return texts.begin() + static_cast<std::ptrdiff_t>(i); };
    const size_t size = data.size();
    for (ordered_json& answer : answers({at(next), at(std::min(texts.size(), next + texts_at_a_time))})) {
      answer["index"] = next++;
      data += (data.empty() ? "" : ",") + json_line(answer);
    }
    part->grow(static_cast<int64_t>(data.size() - size), max_answer_bytes, "input", "the number of texts");
  }
};

void answer_texts(const Call& call, TextWork work) {
  work.reply = call.reply;
  work.part = enter(call, 1);
  call.scheduler.add(call.request.client, [work = std::move(work)]() mutable { return work.advance(); });
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
    if (explain && label.text != no_class) explanation[label.text] = ngrams_json(reasons, static_cast<size_t>(column));
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

}  // namespace

void embed(const Call& call) {
  const json body = body_of(call.request);
  const RequestFields fields(body, "model input encoding_format user");
  const std::shared_ptr<Engine> engine = engine_of(body, call.models);
  const std::string format = fields.text("encoding_format", "float");
  if (format != "float" && format != "base64") fields.refuse("encoding_format", "expected float or base64");
  const bool base64 = format == "base64";
  const auto read = std::make_shared<int64_t>(0);
  const auto answers = [engine, read, base64](const std::vector<InputText>& texts) {
    std::vector<ordered_json> list;
    int64_t tokens = 0;
    for (const std::vector<float>& vector : vectors_of(engine->run(), texts, &tokens)) {
      ordered_json embedding = vector;
      if (base64) embedding = to_base64({reinterpret_cast<const char*>(vector.data()), vector.size() * sizeof(float)});
      list.push_back({{"object", "embedding"}, {"embedding", std::move(embedding)}});
    }
    *read += tokens;
    return list;
  };
  const auto object = [engine, read]() -> ordered_json {
    return {
        {"object", "list"}, {"model", engine->name()}, {"usage", {{"prompt_tokens", *read}, {"total_tokens", *read}}}};
  };
  answer_texts(call, {input_texts(fields, call.options.completion, false), answers, object});
}

void classify(const Call& call) {
  const json body = body_of(call.request);
  const RequestFields fields(body, "model input explain reject user");
  const std::shared_ptr<Engine> engine = engine_of(body, call.models);
  check_predicts(*engine, Predicts::classes);
  const bool explain = fields.flag("explain", false);
  if (explain && !facts_of(engine->run().config.model).reads_texts)
    fields.refuse("explain", "only the decisions of a linear-classifier can be explained by n-grams");
  PredictOptions options;
  options.reject = fields.number("reject", 0, 0, 1);
  read_from_client([&] { check_predictions(engine->run(), options); });
  const auto answers = [engine, explain, options](const std::vector<InputText>& texts) {
    const std::vector<Prediction> predictions = predictions_of(engine->run(), texts, options);
    std::vector<ordered_json> list;
    for (size_t i = 0; i < texts.size(); ++i)
      list.push_back(label_json(engine->run(), texts[i], predictions[i], explain));
    return list;
  };
  const auto object = [engine]() -> ordered_json {
    return {{"object", "list"}, {"model", engine->name()}, {"classes", engine->run().classes}};
  };
  answer_texts(call, {input_texts(fields, call.options.completion, true), answers, object});
}

}  // namespace capstan
