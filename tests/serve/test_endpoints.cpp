// What each path answers.
#include <cstring>

#include "core/strings/base64.hpp"
#include "run/inputs/input_text.hpp"
#include "serve/api.hpp"
#include "serve/served_runs.hpp"
#include "tests/support/texts.hpp"

namespace capstan::testing {
namespace {

using nlohmann::json;

std::string generated(const std::string& model, const std::string& prompt, int64_t tokens, int64_t seed) {
  CompletionOptions options;
  options.max_tokens = tokens;
  options.sampling.seed = seed;
  return served_runs().run(model).generate(prompt, options).front().text;
}

}  // namespace

TEST_CASE("health, models and the page are answered") {
  CHECK(ask(shared_port(), "GET", "/health").status == 200);
  const json models = ask(shared_port(), "GET", "/v1/models").json();
  REQUIRE(models["data"].size() == 2);
  CHECK(models["data"][0]["id"] == "aft-simple");
  CHECK(models["data"][0]["mixers"] == json::array({"aft-simple"}));
  CHECK(models["data"][0]["state_bytes"]["256"] == models["data"][0]["state_bytes"]["8192"]);
  CHECK(models["data"][1]["classes"].size() == 2);
  CHECK(ask(shared_port(), "GET", "/v1/models/spam").json()["type"] == "linear-classifier");
  const Response page = ask(shared_port(), "GET", "/");
  CHECK(page.body.find("<!doctype html>") == 0);
  CHECK(page.headers.find("Content-Security-Policy") != std::string::npos);
}

TEST_CASE("the page asks for nothing but this server's paths, and what its script looks for is in it") {
  const std::string page = ask(shared_port(), "GET", "/").body;
  for (const std::string outside :
       {"http:", "https:", "//cdn", " src=", " href=", "@import", "url(", "import(", "eval("}) {
    CAPTURE(outside);
    CHECK_FALSE(contains(page, outside));
  }
  const size_t script = page.find("<script>");
  REQUIRE(script != std::string::npos);
  int found = 0;
  for (size_t at = script; (at = page.find("at(\"", at)) != std::string::npos; ++at, ++found) {
    const std::string id = page.substr(at + 4, page.find('"', at + 4) - at - 4);
    CAPTURE(id);
    CHECK(page.find("id=\"" + id + "\"") < script);
  }
  CHECK(found > 20);
  for (size_t at = script; (at = page.find("\"/", at)) != std::string::npos; ++at) {
    const std::string path = page.substr(at + 1, page.find('"', at + 1) - at - 1);
    CAPTURE(path);
    CHECK(ask(shared_port(), "GET", path).status != 404);
  }
}

TEST_CASE("a completion has the text that generate writes, at once and as a stream") {
  json request{{"prompt", "the tape"}, {"max_tokens", 40}, {"seed", 3}};
  const std::string expected = generated("aft-simple", "the tape", 40, 3);
  const json whole = complete(shared_port(), request).json();
  CHECK(whole["object"] == "text_completion");
  CHECK(whole["choices"][0]["text"] == expected);
  CHECK(whole["choices"][0]["finish_reason"] == "length");
  CHECK(whole["usage"]["completion_tokens"] == 40);
  request["stream"] = true;
  request["stream_options"] = {{"include_usage", true}};
  const Streamed pieces = streamed(complete(shared_port(), request));
  CHECK(pieces.text == expected);
  CHECK(pieces.end == "length");
  CHECK(pieces.usage == whole["usage"]);
  CHECK(pieces.done);
}

TEST_CASE("several prompts and samples are numbered, and samples are those of generate") {
  CompletionOptions options;
  options.max_tokens = 12;
  options.samples = 3;
  options.sampling.seed = 5;
  const auto expected = served_runs().run("aft-simple").generate("wire", options);
  const json answer =
      complete(shared_port(), {{"prompt", {"the", "wire"}}, {"n", 3}, {"max_tokens", 12}, {"seed", 5}}).json();
  REQUIRE(answer["choices"].size() == 6);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(answer["choices"][3 + i]["index"] == 3 + i);
    CHECK(answer["choices"][3 + i]["text"] == expected[i].text);
  }
}

TEST_CASE("a text ends before a stop string") {
  const std::string whole = generated("aft-simple", "the", 60, 1);
  const std::string stop = whole.substr(10, 3);
  const json answer =
      complete(shared_port(), {{"prompt", "the"}, {"max_tokens", 60}, {"seed", 1}, {"stop", stop}}).json();
  CHECK(answer["choices"][0]["text"] == whole.substr(0, whole.find(stop)));
  CHECK(answer["choices"][0]["finish_reason"] == "stop");
}

TEST_CASE("echo with logprobs scores the prompt as score does") {
  const std::string text = "the tape turns a drum and wire";
  const json answer =
      complete(shared_port(), {{"prompt", text}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 2}}).json();
  const json& logprobs = answer["choices"][0]["logprobs"];
  CHECK(answer["choices"][0]["text"] == text);
  REQUIRE(logprobs["tokens"].size() == text.size());
  CHECK(logprobs["text_offset"][4] == 4);
  CHECK(logprobs["top_logprobs"][3].size() >= 2);
  double sum = 0;
  for (const json& value : logprobs["token_logprobs"]) sum += value.is_number() ? value.get<double>() : 0;
  const TextScore score = served_runs().run("aft-simple").score({text}).front();
  CHECK(sum == doctest::Approx(score.log_probability).epsilon(1e-5));
}

namespace {

/// The bytes of the character that is number `offset`; the size of the text where there are not so many.
size_t byte_of(const std::string& text, int64_t offset) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80 && offset-- == 0) break;
  return at;
}

/// Tokens that are text, but do not begin where their offset says.
int misplaced(const json& choice) {
  const std::string text = choice["text"];
  const json& lists = choice["logprobs"];
  int wrong = 0;
  for (size_t i = 0; i < lists["tokens"].size(); ++i) {
    const std::string token = lists["tokens"][i];
    if (token.rfind("bytes:", 0) == 0 || token == "\ufffd") continue;
    if (text.compare(byte_of(text, lists["text_offset"][i]), token.size(), token) != 0) ++wrong;
  }
  return wrong;
}

json scored(int port, const std::string& model, const json& prompt, int tokens = 0, int seed = 1) {
  json request{{"prompt", prompt}, {"max_tokens", tokens}, {"seed", seed}, {"echo", true}, {"logprobs", 0}};
  request["model"] = model;
  return post(port, "/v1/completions", request).json()["choices"][0];
}

}  // namespace

TEST_CASE("text_offset is where a token begins, after unknown words, blanks and bytes that are no character") {
  const Serving serving(serve_options({"words", "bytes", "aft-simple"}));
  const json words = scored(serving.port(), "words", "the giraffe  big drum\n\nsome drum", 4);
  CHECK(words["logprobs"]["text_offset"].get<std::vector<int>>().size() >= 7);

  CHECK(words["text"].get<std::string>().rfind("the <unk> <unk> drum\n\n", 0) == 0);  // the text of the tokens
  CHECK(misplaced(words) == 0);
  CHECK(misplaced(scored(serving.port(), "aft-simple", "the \u00e9\U0001F600 tape")) == 0);
  const json bytes = scored(serving.port(), "bytes", {0xC3, 'a', 0xF0, 0x9F, 0x98, 0x80, 'b', 0x80, 'c', 0xE2, 0x82});
  CHECK(bytes["text"] == "\ufffda\U0001F600b\ufffdc\ufffd");
  CHECK(bytes["logprobs"]["text_offset"] == json({0, 1, 2, 2, 2, 2, 3, 4, 5, 6, 6}));
  for (int seed = 1; seed < 6; ++seed)  // a model that has learned little writes bytes of all kinds
    CHECK(misplaced(scored(serving.port(), "bytes", "\u00e9\U0001F600a", 60, seed)) == 0);
}

TEST_CASE("the prompt's probabilities are the same for each of several texts") {
  json request{{"prompt", "the tape"}, {"max_tokens", 3}, {"echo", true}, {"logprobs", 2}, {"n", 3}};
  const json choices = complete(shared_port(), request).json()["choices"];
  REQUIRE(choices.size() == 3);
  for (const char* const list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
    for (size_t i = 1; i < 3; ++i) {
      CAPTURE(list);
      REQUIRE(choices[i]["logprobs"][list].size() == 11);
      for (size_t t = 0; t < 8; ++t) CHECK(choices[i]["logprobs"][list][t] == choices[0]["logprobs"][list][t]);
    }
  request["stream"] = true;  // has the same text, in the first event of each
  request["n"] = 1;
  CHECK(streamed(complete(shared_port(), request)).text.rfind("the tape", 0) == 0);
}

TEST_CASE("an answer that becomes too large is refused, with what to lower") {
  const std::string prompt(8000, 'a');
  const json prompts{prompt, prompt, prompt},
      large[] = {{{"prompt", prompt}, {"n", 128}, {"echo", true}, {"logprobs", 20}, {"max_tokens", 0}},
                 {{"prompt", "a"}, {"n", 128}, {"logprobs", 20}, {"max_tokens", 8192}},
                 {{"prompt", prompts}, {"n", 40}, {"echo", true}, {"logprobs", 20}, {"max_tokens", 0}}};
  for (const json& request : large) {
    const Response refused = complete(shared_port(), request);
    CHECK(refused.status == 400);
    check_contains(refused.json()["error"]["message"], {"n, ", "max_tokens", "logprobs", "the prompt"});
  }
  json stream{{"prompt", prompt}, {"echo", true}, {"logprobs", 20}, {"stream", true}};
  const Response refused = complete(shared_port(), stream);
  CHECK(refused.status == 400);
  CHECK(refused.json()["error"]["param"] == "echo");
  stream["prompt"] = prompt.substr(0, 1000);
  CHECK(streamed(complete(shared_port(), stream)).done);
  stream = {{"prompt", prompt}, {"n", 128}, {"echo", true}, {"stream", true}, {"max_tokens", 1}};
  CHECK(streamed(complete(shared_port(), stream)).done);
}

TEST_CASE("what the client sent wrong is 4xx; any other fault is the server's") {
  const Error file("/models/run/model.safetensors: cannot read it: No such file or directory");
  const struct {
    const std::exception& error;
    int status;
  } cases[] = {{ApiError(413, "too large"), 413},
               {ConfigError("top_k: a classifier has none"), 400},
               {TextError(0, Error("input[0]: not UTF-8")), 400},
               {TextError(0, NotFinite("input[0]: the weights are damaged")), 500},
               {NotFinite("the weights are damaged"), 500},
               {file, 500},
               {std::bad_alloc(), 500},
               {std::runtime_error("internal"), 500}};
  for (const auto& one : cases) CHECK_MESSAGE(status_of(one.error) == one.status, one.error.what());
  CHECK_THROWS_AS(read_from_client([&]() -> int { throw Error("body: not JSON"); }), ApiError);
}

TEST_CASE("a model whose results are not finite is the server's fault, not null") {
  const Serving serving(serve_options({"broken", "broken-classifier"}));
  const struct {
    const char *path, *model;
  } asked[] = {
      {"/v1/embeddings", "broken"}, {"/v1/embeddings", "broken-classifier"}, {"/v1/classify", "broken-classifier"}};
  for (const auto& one : asked) {
    const Response failed = post(serving.port(), one.path, {{"model", one.model}, {"input", {"the tape", "a tape"}}});
    CHECK_MESSAGE(failed.status == 500, one.path, " ", one.model, ": ", failed.body);
    CHECK(contains(failed.body, "its training diverged"));
  }
  for (const json& more :
       {json::object(), json{{"stream", true}}, json{{"echo", true}, {"logprobs", 1}, {"max_tokens", 0}}}) {
    json request{{"model", "broken"}, {"prompt", "the tape"}};
    request.update(more);
    CAPTURE(request.dump());
    const Response failed = post(serving.port(), "/v1/completions", request);
    CHECK(failed.status == 500);
    CHECK(failed.json()["error"]["type"] == "server_error");
    CHECK(contains(failed.body, "its training diverged"));
  }
}

TEST_CASE("the label of several is the likeliest one") {
  const Serving serving(serve_options({"topics"}));
  const json texts{"fine film", "fine clever film", "sad film", "sad dull film", "film"};
  const json answer = post(serving.port(), "/v1/classify", {{"input", texts}}).json();
  size_t several = 0;
  for (const json& one : answer["data"]) {
    if (one["labels"].size() > 1) ++several;
    std::map<std::string, double> probabilities;
    for (size_t i = 0; i < answer["classes"].size(); ++i) probabilities[answer["classes"][i]] = one["probs"][i];
    for (const json& label : one["labels"])
      CHECK(probabilities[one["label"]] >= probabilities[label.get<std::string>()]);
  }
  CHECK(several > 0);
}

TEST_CASE("tokens become a text again") {
  const json tokens =
      complete(shared_port(), {{"prompt", "a drum"}, {"add_special_tokens", false}}, "/tokenize").json();
  CHECK(tokens["count"] == 6);
  const json text = complete(shared_port(), {{"tokens", tokens["tokens"]}}, "/detokenize").json();
  CHECK(text["prompt"] == "a drum");
  const json from_ids =
      complete(shared_port(), {{"prompt", tokens["tokens"]}, {"max_tokens", 5}, {"echo", true}}).json();
  CHECK(from_ids["choices"][0]["text"].get<std::string>().rfind("a drum", 0) == 0);
}

TEST_CASE("the tokenizer is shown of a server with one model") {
  const Serving one(serve_options({"bytes"})), several(serve_options({"words", "bytes"}));
  CHECK(ask(one.port(), "GET", "/tokenizer_info").json()["tokenizer_class"] == "byte");
  CHECK(ask(several.port(), "GET", "/tokenizer_info").status == 400);
}

TEST_CASE("a classifier gives labels, probabilities and reasons") {
  const json request{{"model", "spam"}, {"input", {"a fine day", "sad night"}}, {"explain", true}};
  const json answer = post(shared_port(), "/v1/classify", request).json();
  REQUIRE(answer["data"].size() == 2);
  CHECK(answer["data"][0]["label"] == "good");
  CHECK(answer["data"][1]["label"] == "bad");
  CHECK(answer["data"][1]["probs"].size() == 2);
  CHECK(answer["data"][1]["explanation"]["bad"].size() > 0);
  const json none = post(shared_port(), "/v1/classify",
                         {{"model", "spam"}, {"input", "a fine day"}, {"explain", true}, {"reject", 1}})
                        .json();
  CHECK(none["data"][0]["label"] == "none");
  CHECK(none["data"][0]["probs"] == answer["data"][0]["probs"]);
}

TEST_CASE("embeddings are those of embed, as numbers and as bytes") {
  const std::vector<float> expected = served_runs().run("aft-simple").embed({"the drum"}).front();
  json request{{"input", "the drum"}};
  const json floats = complete(shared_port(), request, "/v1/embeddings").json();
  CHECK(floats["data"][0]["embedding"].get<std::vector<float>>() == expected);
  request["encoding_format"] = "base64";
  const json coded = complete(shared_port(), request, "/v1/embeddings").json();
  const std::string bytes = from_base64(coded["data"][0]["embedding"].get<std::string>());
  REQUIRE(bytes.size() == expected.size() * sizeof(float));
  CHECK(std::memcmp(bytes.data(), expected.data(), bytes.size()) == 0);
  CHECK(coded["usage"]["prompt_tokens"] == 8);
  CHECK(coded["usage"]["total_tokens"] == 8);
}

}  // namespace capstan::testing
