// A text has the same bits alone and in any company, and from a session.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "core/io/hash.hpp"
#include "core/machine/parallel.hpp"
#include "serve/served_runs.hpp"

namespace capstan::testing {
namespace {

using nlohmann::json;

struct Wanted {
  json request;
  std::string text;
};

/// A request of random knobs and the text that generate writes for it.
Wanted wanted(const std::string& model, std::mt19937& random) {
  const auto below = [&](int64_t bound) { return static_cast<int64_t>(random() % static_cast<uint64_t>(bound)); };
  static const std::string prose = "the tape turns a drum and wire runs out slow ";
  std::string prompt;
  const int64_t length = below(8) == 0 ? 500 + below(900) : below(90);
  for (int64_t i = 0; i < length; ++i) prompt += prose[static_cast<size_t>(below(static_cast<int64_t>(prose.size())))];
  CompletionOptions options;
  options.tokens = 1 + below(90);
  options.sampling.seed = below(1000);
  options.sampling.temperature = static_cast<double>(below(3)) / 2;
  options.sampling.top_p = below(2) == 0 ? 1 : 0.9;
  options.sampling.min_p = below(2) == 0 ? 0 : 0.05;
  options.sampling.top_k = below(2) == 0 ? 0 : 5;
  options.sampling.repetition_penalty = below(3) == 0 ? 1.2 : 1;
  if (below(4) == 0) options.stop = {"e "};
  return {{{"model", model},
           {"prompt", prompt},
           {"max_tokens", options.tokens},
           {"seed", options.sampling.seed},
           {"temperature", options.sampling.temperature},
           {"top_p", options.sampling.top_p},
           {"min_p", options.sampling.min_p},
           {"top_k", options.sampling.top_k},
           {"repetition_penalty", options.sampling.repetition_penalty},
           {"stop", options.stop}},
          served_runs().run(model).generate(prompt, options).front().text};
}

/// How many of the requests, sent at random times by several clients, have another text than alone.
int64_t different(int port, const std::vector<Wanted>& all) {
  std::atomic<size_t> next = 0;
  std::atomic<int64_t> wrong = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 12; ++i)
    clients.emplace_back([&] {
      Client client(port);
      for (size_t at = next++; at < all.size(); at = next++) {
        json request = all[at].request;
        const bool streams = at % 2 == 0;
        request["stream"] = streams;
        const Response response = client.ask("POST", "/v1/completions", request.dump());
        const std::string text = response.status != 200 ? response.body
                                 : streams              ? streamed(response).text
                                                        : response.json()["choices"][0]["text"].get<std::string>();
        if (text == all[at].text) continue;
        ++wrong;
        MESSAGE(request.dump() << "\n" << text << "\ninstead of\n" << all[at].text);
      }
    });
  for (std::thread& client : clients) client.join();
  return wrong;
}

void check_company(int requests, unsigned seed) {
  const std::vector<std::string> systems = {"aft-simple", "aft-local", "aft-conv", "fastformer", "gau",
                                            "flash",      "attention", "windowed", "test-fading"};
  std::mt19937 random(seed);
  std::vector<Wanted> all;
  for (int i = 0; i < requests; ++i) all.push_back(wanted(systems[static_cast<size_t>(i) % systems.size()], random));
  for (const int64_t threads : {1, 2}) {
    CAPTURE(threads);
    ServeOptions options = serve_options(systems);
    options.threads = threads;
    options.engine.slots = 5;
    const Serving serving(options);
    CHECK(different(serving.port(), all) == 0);
  }
  set_threads(0);
}

}  // namespace

TEST_CASE("random requests in random company have the bits of generate alone, on one and two threads") {
  check_company(160, 1);
}

TEST_CASE("long: a thousand random requests in random company have the bits of generate alone" * doctest::skip()) {
  check_company(1000, 2);
}

TEST_CASE("many samples need no more slots than there are") {
  ServeOptions options = serve_options({"aft-simple"});
  options.engine.slots = 3;
  const Serving serving(options);
  CompletionOptions alone;
  alone.tokens = 20;
  alone.samples = 10;
  const auto expected = served_runs().run("aft-simple").generate("drum", alone);
  const json answer =
      post(serving.port(), "/v1/completions", {{"prompt", "drum"}, {"n", 10}, {"max_tokens", 20}, {"seed", 1}}).json();
  for (size_t i = 0; i < 10; ++i) CHECK(answer["choices"][i]["text"] == expected[i].text);
}

TEST_CASE("a session goes on with the text of one pass; it forks, is saved, and restored by another server") {
  for (const std::string model :
       {"aft-simple", "aft-local", "fastformer", "gau", "flash", "attention", "windowed", "test-fading"}) {
    CAPTURE(model);
    const Serving serving(serve_options({model})), other(serve_options({model}));
    const auto write = [&](int port, const std::string& prompt, const json& session) {
      return post(port, "/v1/completions",
                  {{"prompt", prompt}, {"max_tokens", 25}, {"temperature", 0}, {"session", session}})
          .json()["choices"][0]["text"]
          .get<std::string>();
    };
    const std::string begin = write(serving.port(), "the tape", {{"keep", "a"}});
    const std::string next = write(serving.port(), " wire", {{"from", "a"}, {"keep", "b"}});
    CHECK(write(serving.port(), " wire", {{"from", "a"}, {"keep", "c"}}) == next);  // a is as it was
    const std::string whole = write(serving.port(), "the tape" + begin + " wire", json::object());
    CHECK(next == whole);
    const Response saved = ask(serving.port(), "GET", "/v1/models/" + model + "/sessions/a");
    REQUIRE(saved.status == 200);
    CHECK(ask(other.port(), "PUT", "/v1/models/" + model + "/sessions/z", saved.body).status == 200);
    CHECK(write(other.port(), " wire", {{"from", "z"}}) == next);
    for (size_t at : {size_t{3}, size_t{40}, saved.body.size() / 2, saved.body.size() - 1}) {
      std::string damaged = saved.body;
      damaged[at] = static_cast<char>(damaged[at] ^ 1);
      CHECK(ask(other.port(), "PUT", "/v1/models/" + model + "/sessions/y", damaged).status == 400);
      CHECK(ask(other.port(), "PUT", "/v1/models/" + model + "/sessions/y", saved.body.substr(0, at)).status == 400);
    }
  }
  const Serving strange(serve_options({"gau"})), own(serve_options({"flash"}));
  post(own.port(), "/v1/completions", {{"prompt", "a"}, {"session", {{"keep", "a"}}}});
  const std::string bytes = ask(own.port(), "GET", "/v1/models/flash/sessions/a").body;
  CHECK(ask(strange.port(), "PUT", "/v1/models/gau/sessions/a", bytes).json()["error"]["message"] ==
        "state: these bytes are of a model with other weights");
}

TEST_CASE("a session with a right hash and tokens that there are not is refused") {
  const Serving serving(serve_options({"aft-simple"}));
  post(serving.port(), "/v1/completions", {{"prompt", "the tape"}, {"session", {{"keep", "a"}}}});
  const std::string path = "/v1/models/aft-simple/sessions/a", saved = ask(serving.port(), "GET", path).body;
  const std::string content = saved.substr(0, saved.size() - 32);
  REQUIRE(content + hash_hex(content) == saved);
  // After format, sizes and identity: the place where the text begins, and its tokens.
  const size_t tokens = content.find('\n') + 1 + 8 + 32 + 8 + 8;
  for (const int32_t wrong : {-1, 1 << 30}) {
    std::string forged = content;
    std::memcpy(&forged[tokens], &wrong, sizeof(wrong));
    const Response refused = ask(serving.port(), "PUT", path, forged + hash_hex(forged));
    CHECK(refused.status == 400);
    CHECK(refused.body.find("tokens that this model does not have") != std::string::npos);
  }
  CHECK(ask(serving.port(), "PUT", path, content + hash_hex(content)).status == 200);
}

TEST_CASE("a session with a right hash and values that are no numbers is the client's fault") {
  const Serving serving(serve_options({"aft-simple"}));
  post(serving.port(), "/v1/completions", {{"prompt", "the tape"}, {"session", {{"keep", "a"}}}});
  const std::string path = "/v1/models/aft-simple/sessions/a", saved = ask(serving.port(), "GET", path).body;
  for (const float wrong : {std::nanf(""), std::numeric_limits<float>::infinity(), 1e38F}) {
    std::string forged = saved.substr(0, saved.size() - 32);
    for (size_t at = 1; at <= 8; ++at) std::memcpy(&forged[forged.size() - at * sizeof(wrong)], &wrong, sizeof(wrong));
    const Response put = ask(serving.port(), "PUT", path, forged + hash_hex(forged));
    CHECK(put.status == (std::isnan(wrong) ? 400 : 200));
    const Response next = post(serving.port(), "/v1/completions", {{"prompt", "a"}, {"session", {{"from", "a"}}}});
    CHECK_MESSAGE(next.status < 500, next.body);
  }
}

TEST_CASE("sessions used longest ago make room for others") {
  ServeOptions options = serve_options({"aft-simple"});
  options.engine.session_bytes = 20000;  // a few
  const Serving serving(options);
  const auto write = [&](const json& session) {
    return post(serving.port(), "/v1/completions", {{"prompt", "a"}, {"session", session}}).status;
  };
  for (int i = 0; i < 10; ++i) {
    CHECK(write({{"keep", "s" + std::to_string(i)}}) == 200);
    CHECK(write({{"from", "s0"}}) == 200);  // is in use
  }
  CHECK(write({{"from", "s9"}}) == 200);
  CHECK(write({{"from", "s1"}}) == 404);
}

}  // namespace capstan::testing
