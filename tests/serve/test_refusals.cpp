// Requests that are refused, names and paths that are not known, and what a server needs to be told.
#include "run/inputs/input_text.hpp"
#include "serve/api.hpp"
#include "serve/served_runs.hpp"
#include "tests/support/texts.hpp"

namespace capstan::testing {

using nlohmann::json;

TEST_CASE("what is wrong with a request is said with the field") {
  const std::pair<json, const char*> wrong[] = {{{{"max_tokens", -3}}, "max_tokens"},
                                                {{{"max_tokens", 1.5}}, "max_tokens"},
                                                {{{"max_token", 3}}, "max_token"},
                                                {{{"n", 0}}, "n"},
                                                {{{"temperature", "hot"}}, "temperature"},
                                                {{{"top_p", 2}}, "top_p"},
                                                {{{"stop", {1}}}, "stop"},
                                                {{{"stop", ""}}, "stop"},
                                                {{{"logprobs", 99}}, "logprobs"},
                                                {{{"prompt", {1, -1}}}, "prompt"},
                                                {{{"prompt", json::object()}}, "prompt"},
                                                {{{"seed", -1}}, "seed"},
                                                {{{"suffix", "x"}}, "suffix"},
                                                {{{"stream", 1}}, "stream"},
                                                {{{"session", 1}}, "session"},
                                                {{{"session", {{"keep", "a/b"}}}}, "session.keep"},
                                                {{{"best_of", 2}}, "best_of"},
                                                {{{"presence_penalty", 3}}, "presence_penalty"},
                                                {{{"frequency_penalty", "1"}}, "frequency_penalty"},
                                                {{{"logit_bias", {1}}}, "logit_bias"},
                                                {{{"logit_bias", {{"a", 1}}}}, "logit_bias"},
                                                {{{"logit_bias", {{"999999", 1}}}}, "logit_bias"},
                                                {{{"logit_bias", {{"1", 101}}}}, "logit_bias"}};
  for (const auto& [fields, param] : wrong) {
    CAPTURE(fields.dump());
    const Response response = complete(shared_port(), fields);
    CHECK(response.status == 400);
    CHECK(response.json()["error"]["param"] == param);
    CHECK(response.json()["error"]["type"] == "invalid_request_error");
  }
  for (const std::string body : {"", "{", "[]", "1", "\xff", "{\"prompt\": \"\xff\"}", "null", "{\"model\": 1}"}) {
    CAPTURE(body);
    CHECK(ask(shared_port(), "POST", "/v1/completions", body).status == 400);
  }
  CHECK(ask(shared_port(), "POST", "/v1/completions", std::string(5000, '[')).status == 400);
  const Response without_model = post(shared_port(), "/v1/completions", {{"prompt", "a"}});
  CHECK(without_model.json()["error"]["param"] == "model");  // there are two
  CHECK(post(shared_port(), "/v1/completions", {{"model", "spam"}, {"prompt", "a"}}).status == 400);
  CHECK(post(shared_port(), "/v1/classify", {{"model", "aft-simple"}, {"input", "a"}}).status == 400);
  const Response several =
      post(shared_port(), "/v1/classify", {{"model", "spam"}, {"input", json::array({json::array({"a", "b"})})}});
  CHECK(several.status == 400);
  CHECK(several.body.find("input[0]: 2 texts where the model reads one text") != std::string::npos);
  CHECK(post(shared_port(), "/v1/classify", {{"model", "spam"}, {"input", "a"}, {"reject", 2}}).status == 400);
}

TEST_CASE("unknown paths, methods, models and sessions are refused with their status") {
  CHECK(ask(shared_port(), "GET", "/nothing").status == 404);
  const Response method = ask(shared_port(), "GET", "/v1/completions");
  CHECK(method.status == 405);
  CHECK(method.json()["error"]["message"] == "/v1/completions is for POST, not for GET");
  CHECK(post(shared_port(), "/v1/completions", {{"model", "gpt"}, {"prompt", "a"}}).status == 404);
  CHECK(ask(shared_port(), "GET", "/v1/models/gpt").status == 404);
  CHECK(ask(shared_port(), "GET", "/v1/models/aft-simple/x").status == 404);
  CHECK(complete(shared_port(), {{"prompt", "a"}, {"session", {{"from", "x"}}}}).status == 404);
  CHECK(ask(shared_port(), "POST", "/v1/completions", "{}", "Origin: http://evil\r\n").status == 403);
}

TEST_CASE("HEAD answers as GET does, without a body, and only POST takes one") {
  for (const std::string path : {"/health", "/", "/v1/models"}) {
    CAPTURE(path);
    Client client(shared_port());
    const Response head = client.ask("HEAD", path);
    CHECK(head.status == 200);
    CHECK_FALSE(contains(head.headers, "Content-Length: 0"));
    CHECK(client.ask("GET", path).status == 200);  // no body is in between
    CHECK(ask(shared_port(), "GET", path, "x").status == 400);
  }
  CHECK(ask(shared_port(), "HEAD", "/v1/completions").status == 405);
}

TEST_CASE("a server is asked by names that were given, and by addresses") {
  ServeOptions options = serve_options({"spam"});
  options.host_names = {"models.example", "gpu7"};
  const Serving serving(options);
  for (const std::string host : {"localhost", "localhost:8080", "LocalHost", "127.0.0.1", "10.0.0.7:80", "[::1]",
                                 "[::1]:8080", "models.example", "Models.Example:443", "gpu7"})
    CHECK_MESSAGE(ask(serving.port(), "GET", "/v1/models", "", "Host: " + host + "\r\n").status == 200, host);
  for (const std::string host : {"evil.example", "evil.example:8080", "localhost.evil.example", "models.example.evil",
                                 "gpu7.evil", "evil@localhost", "[evil]", "[", "[]", "a:b", "localhost:evil"}) {
    const Response refused = ask(serving.port(), "GET", "/v1/models", "", "Host: " + host + "\r\n");
    CHECK_MESSAGE(refused.status == 403, host);
    CHECK(contains(refused.body, "--host-name"));
  }
  // A page under a name that is made to mean this server is its own for a browser.
  const std::string same_page = "Host: evil.example\r\nOrigin: http://evil.example\r\n";
  CHECK(ask(serving.port(), "GET", "/v1/models", "", same_page).status == 403);
}

TEST_CASE("a name with a character that is none of a name is shown as it was given") {
  const Response coded = ask(shared_port(), "GET", "/v1/models/aft%00x");
  CHECK(coded.status == 404);
  CHECK(coded.json()["error"]["message"] == "there is no model \"aft\\u0000x\"; there are: aft-simple, spam");
  CHECK(ask(shared_port(), "GET", "/v1/models/%ff").status == 404);
  json request{{"prompt", "a"}};
  request[std::string("a\0b", 3)] = 1;
  CHECK(contains(complete(shared_port(), request).json()["error"]["message"], "unknown field"));
  CHECK(post(shared_port(), "/v1/completions", {{"model", std::string(100000, 'x')}}).body.size() < 500);
}

TEST_CASE("texts that no prompt could be are not tokenized") {
  const CompletionLimits limits;
  const std::string text(static_cast<size_t>(8 * limits.prompt_tokens) + 1, 'a');
  const auto wrong = [](const json& request, const char* path) {
    return complete(shared_port(), request, path).json()["error"]["param"];
  };
  CHECK(wrong({{"prompt", text}}, "/tokenize") == "prompt");
  const std::vector<int> ids(static_cast<size_t>(limits.prompt_tokens + limits.new_tokens) + 1, 1);
  CHECK(wrong({{"tokens", ids}}, "/detokenize") == "tokens");
  CHECK(wrong({{"prompt", ids}}, "/v1/completions") == "prompt");
}

TEST_CASE("a path without its slash is unknown, as one with a coded slash or letter is") {
  for (const std::string path :
       {"xhealth", "x", "xv1/models", "xhealth/", "*", "%2Fhealth", "/%68ealth", "/v1%2Fmodels", "//"}) {
    CAPTURE(path);
    CHECK(ask(shared_port(), "GET", path).status == 404);
  }
  CHECK(ask(shared_port(), "GET", "/health").status == 200);
}

TEST_CASE("a folder of a sweep is a model by its name, which paths may code") {
  namespace fs = std::filesystem;
  const std::string name = "lr=1e-2,words=[1 2] caf\u00e9%41";
  const fs::path link = fs::path(served_runs().folder("aft-simple")).parent_path() / name;
  fs::create_directory_symlink(served_runs().folder("aft-simple"), link);
  ServeOptions options;
  options.runs = {link.string()};
  {
    const Serving serving(options);
    CHECK(ask(serving.port(), "GET", "/v1/models").json()["data"][0]["id"] == name);
    CHECK(post(serving.port(), "/v1/completions", {{"model", name}, {"prompt", "a"}}).json()["model"] == name);
    const std::string coded = "/v1/models/lr%3D1e-2,words=%5b1%202%5D%20caf%C3%A9%2541";
    CHECK(ask(serving.port(), "GET", coded).json()["id"] == name);
    CHECK(ask(serving.port(), "GET", "/v1/models/lr%3D1e-2%").status == 404);
    CHECK(ask(serving.port(), "GET", "/v1/models/%00%GG%").status == 404);
  }
  fs::rename(link, link.parent_path() / "two\nlines");
  options.runs = {(link.parent_path() / "two\nlines").string()};
  CHECK_THROWS_WITH_AS(Server{options}, doctest::Contains("without control characters"), Error);
  fs::remove(link.parent_path() / "two\nlines");
}

TEST_CASE("a host name is a name: what no request could have is refused") {
  for (const std::string name : {"*", "*.example", "a b", "", "models.example:80", "http://models.example"}) {
    CAPTURE(name);
    ServeOptions options = serve_options({"spam"});
    options.host_names = {name};
    CHECK_THROWS_WITH_AS(Server{options}, doctest::Contains("expected a name such as models.example"), ConfigError);
  }
}

TEST_CASE("an absolute address is answered as its path is, and its host counts") {
  const auto status = [](const std::string& address) {
    return ask(shared_port(), "GET", address, "", "Host: evil.example\r\n").status;
  };
  CHECK(status("http://localhost/v1/models") == 200);
  CHECK(status("HTTP://127.0.0.1:80/v1/models?a=b") == 200);
  CHECK(status("http://localhost") == 200);
  CHECK(status("http://localhost?a") == 404);
  CHECK(status("http://localhost/nothing") == 404);
  CHECK(status("http://evil.example/v1/models") == 403);
  CHECK(ask(shared_port(), "GET", "http://evil.example/health").status == 403);
  CHECK(ask(shared_port(), "GET", "ftp://localhost/health").status == 404);
}

TEST_CASE("a body that is packed is refused in words") {
  const std::string packed("\x1f\x8b\x08\0\0", 5);
  const Response refused = ask(shared_port(), "POST", "/v1/completions", packed, "Content-Encoding: gzip\r\n");
  CHECK(refused.status == 400);
  CHECK(contains(refused.body, "gzip"));
}

TEST_CASE("a run folder may end in a slash") {
  for (const std::string end : {"/", "//", "/."}) {
    ServeOptions options;
    options.runs = {served_runs().folder("spam") + end};
    const Serving serving(options);
    CHECK(ask(serving.port(), "GET", "/v1/models").json()["data"][0]["id"] == "spam");
  }
}

TEST_CASE("a token is asked for, except by health and the page") {
  ServeOptions options = serve_options({"spam"});
  options.token = "secret";
  const Serving serving(options);
  CHECK(ask(serving.port(), "GET", "/health").status == 200);
  CHECK(ask(serving.port(), "GET", "/").status == 200);
  for (const std::string header : {"", "Authorization: Bearer secre\r\n", "Authorization: Bearer secrets\r\n",
                                   "Authorization: Bearer \r\n", "Authorization: secret\r\n"})
    CHECK(ask(serving.port(), "GET", "/v1/models", "", header).status == 401);
  CHECK(ask(serving.port(), "GET", "/v1/models", "", "Authorization: Bearer secret\r\n").status == 200);
}

}  // namespace capstan::testing
