// A text has the same bits alone and in any company, and from a session.
#include <random>

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
  options.max_tokens = 1 + below(90);
  options.sampling.seed = below(1000);
  options.sampling.temperature = static_cast<double>(below(3)) / 2;
  options.sampling.top_p = below(2) == 0 ? 1 : 0.9;
  options.sampling.min_p = below(2) == 0 ? 0 : 0.05;
  options.sampling.top_k = below(2) == 0 ? 0 : 5;
  options.sampling.repetition_penalty = below(3) == 0 ? 1.2 : 1;
  options.sampling.frequency_penalty = below(3) == 0 ? 0.7 : 0;
  options.sampling.presence_penalty = below(3) == 0 ? -0.5 : 0;
  json biases = json::object();
  if (below(4) == 0) biases = {{"3", 1.5}, {"5", -100}}, options.sampling.logit_bias = {{3, 1.5}, {5, -100}};
  if (below(4) == 0) options.stop = {"e "};
  return {{{"model", model},
           {"prompt", prompt},
           {"max_tokens", options.max_tokens},
           {"seed", options.sampling.seed},
           {"temperature", options.sampling.temperature},
           {"top_p", options.sampling.top_p},
           {"min_p", options.sampling.min_p},
           {"top_k", options.sampling.top_k},
           {"repetition_penalty", options.sampling.repetition_penalty},
           {"frequency_penalty", options.sampling.frequency_penalty},
           {"presence_penalty", options.sampling.presence_penalty},
           {"logit_bias", biases},
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
  alone.max_tokens = 20;
  alone.samples = 10;
  const auto expected = served_runs().run("aft-simple").generate("drum", alone);
  const json answer =
      post(serving.port(), "/v1/completions", {{"prompt", "drum"}, {"n", 10}, {"max_tokens", 20}, {"seed", 1}}).json();
  for (size_t i = 0; i < 10; ++i) CHECK(answer["choices"][i]["text"] == expected[i].text);
}

TEST_CASE("a session goes on with the text of one pass; it forks") {
  for (const std::string model :
       {"aft-simple", "aft-local", "fastformer", "gau", "flash", "attention", "windowed", "test-fading"}) {
    CAPTURE(model);
    const Serving serving(serve_options({model}));
    const auto write = [&](const std::string& prompt, const json& session) {
      const json request{{"prompt", prompt}, {"max_tokens", 25}, {"temperature", 0}, {"session", session}};
      return post(serving.port(), "/v1/completions", request).json()["choices"][0]["text"].get<std::string>();
    };
    const std::string begin = write("the tape", {{"keep", "a"}});
    const std::string next = write(" wire", {{"from", "a"}, {"keep", "b"}});
    CHECK(write(" wire", {{"from", "a"}, {"keep", "c"}}) == next);  // a is as it was
    const std::string whole = write("the tape" + begin + " wire", json::object());
    CHECK(next == whole);
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
