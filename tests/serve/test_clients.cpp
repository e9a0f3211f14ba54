// Clients that vanish, trickle, send too much or read nothing; limits; the end of a server.
#include <random>

#include "serve/served_runs.hpp"
#include "tests/support/damage.hpp"

namespace capstan::testing {
namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

std::string request_of(const json& body, const std::string& path = "/v1/completions") {
  const std::string text = body.dump();
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(text.size()) +
         "\r\n\r\n" + text;
}

/// A request for so many texts of a stream without an end.
json endless(int texts = 1, const std::string& model = "aft-simple") {
  return {{"prompt", "the"}, {"max_tokens", 1 << 29}, {"stream", true}, {"model", model}, {"n", texts}};
}

/// A server that writes texts without an end.
ServeOptions endless_options(int64_t slots = 4, const std::vector<std::string>& models = {"aft-simple"}) {
  ServeOptions options = serve_options(models);
  options.engine.slots = slots;
  options.completion.new_tokens = 1 << 30;
  return options;
}

/// Clients that have sent these bytes.
std::vector<std::unique_ptr<Client>> clients_of(const Serving& serving, int count, const std::string& bytes) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(std::make_unique<Client>(serving.port()));
    clients.back()->send(bytes);
  }
  return clients;
}

/// The head of a request with a body of so many bytes.
std::string head_of(size_t bytes) {
  return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
}

/// Whether so many texts are written or wait, soon.
bool becomes(const Serving& serving, int64_t count, double seconds = 5) {
  for (const auto begin = Clock::now(); seconds_since(begin) < seconds;) {
    if (serving.server.taken() == count) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace

TEST_CASE("a client that leaves frees its slot at once, and health is answered meanwhile") {
  const Serving serving(endless_options());
  json request = endless(4);
  {
    Client streaming(serving.port());
    streaming.send(request_of(request));
    CHECK(streaming.receive().find("200 OK") != std::string::npos);
    CHECK(becomes(serving, 4));
    double slowest = 0;
    for (int i = 0; i < 20; ++i) {
      const auto begin = Clock::now();
      CHECK(ask(serving.port(), "GET", "/health").status == 200);
      slowest = std::max(slowest, seconds_since(begin));
    }
    MESSAGE("slowest /health: " << slowest << " s");
    CHECK(slowest < 0.5);  // other work may have the cores
  }
  CHECK(becomes(serving, 0));
  request["stream"] = false;
  request["max_tokens"] = 1 << 20;  // an answer of a gigabyte would be refused
  {
    Client waiting(serving.port());
    waiting.send(request_of(request));
    CHECK(becomes(serving, 4));
  }
  CHECK(becomes(serving, 0));
}

TEST_CASE("queue and share of a client are limited by 429 with retry-after") {
  ServeOptions options = endless_options(2);
  options.queue = 2;
  const Serving serving(options);
  std::vector<std::unique_ptr<Client>> clients = clients_of(serving, 4, request_of(endless()));
  CHECK(becomes(serving, 4));
  Response refused;
  for (int i = 0; i < 100 && refused.status != 429; ++i)
    refused = post(serving.port(), "/v1/completions", {{"prompt", "a"}, {"n", 2}});
  CHECK(refused.status == 429);
  CHECK(refused.headers.find("Retry-After: 1") != std::string::npos);
  const Response never = post(serving.port(), "/v1/completions", {{"prompt", "a"}, {"n", 5}});
  CHECK(never.status == 400);
  CHECK(never.json()["error"]["param"] == "n");
  clients.clear();
  CHECK(becomes(serving, 0));
  CHECK(post(serving.port(), "/v1/completions", {{"prompt", "a"}}).status == 200);
}

TEST_CASE("bodies and headers above the limit are refused, and the server goes on") {
  ServeOptions options = serve_options({"aft-simple"});
  options.http.body_bytes = 10000;
  options.http.header_bytes = 4096;
  const Serving serving(options);
  CHECK(ask(serving.port(), "POST", "/v1/completions", std::string(20000, 'x')).status == 413);
  CHECK(ask(serving.port(), "POST", "/v1/completions", std::string(3 << 20, 'x')).json()["error"]["code"] == 413);
  CHECK(ask(serving.port(), "GET", "/health", "", "X: " + std::string(8000, 'x') + "\r\n").status == 431);
  Client chunked(serving.port());
  chunked.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk = "1000\r\n" + std::string(4096, 'x') + "\r\n";
  for (int i = 0; i < 8; ++i) chunked.send(chunk);
  CHECK(chunked.response().status == 413);
  for (const std::string rubbish :
       {"nonsense\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n"}) {
    CAPTURE(rubbish);
    Client client(serving.port());
    client.send(rubbish);
    CHECK(client.response().status >= 400);
  }
  CHECK(ask(serving.port(), "GET", "/health").status == 200);
}

TEST_CASE("a body that the server's limit allows is read, however long") {
  ServeOptions options = serve_options({"aft-simple"});
  options.http.body_bytes = 80 << 20;
  const Serving serving(options);
  CHECK(ask(serving.port(), "POST", "/v1/completions", std::string(70 << 20, ' ')).status == 400);  // no JSON
}

TEST_CASE("a client that trickles is dropped after the idle time, and idle connections make room") {
  ServeOptions options = serve_options({"aft-simple"});
  options.http.idle_seconds = 0.5;
  options.http.connections = 20;
  const Serving serving(options);
  Client trickling(serving.port());
  const auto begin = Clock::now();
  bool open = true;
  for (int i = 0; i < 100 && open; ++i) {
    open = trickling.send("G");
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  CHECK_FALSE(open);
  CHECK(seconds_since(begin) < 2.5);
  const auto idle = clients_of(serving, 60, "");
  CHECK(ask(serving.port(), "GET", "/health").status == 200);
}

TEST_CASE("bodies on their way make room, the slowest of the address with most of them first, and are told") {
  ServeOptions options = serve_options({"aft-simple"});
  options.http.connections = 20;
  const Serving serving(options);
  const auto half_sent = clients_of(serving, 61, head_of(1000) + "{");
  CHECK(ask(serving.port(), "GET", "/health").status == 200);
  CHECK(post(serving.port(), "/v1/completions", {{"prompt", "a"}, {"max_tokens", 1}}).status == 200);
  CHECK(half_sent.front()->response().status == 503);
}

TEST_CASE("an address with many connections makes room for others and for itself") {
  ServeOptions options = serve_options({"aft-simple"});
  options.http.connections = 20;
  const Serving serving(options);
  Client other(serving.port(), 60, "127.0.0.2");
  CHECK(other.ask("GET", "/health").status == 200);
  const auto many = clients_of(serving, 40, "GET /health HTTP/1.1\r\n");
  CHECK(ask(serving.port(), "GET", "/health").status == 200);
  CHECK(other.ask("GET", "/health").status == 200);  // its connection has lasted, though it was idle longest
}

TEST_CASE("texts of other addresses do not wait for those of one that fills all slots") {
  for (const double share : {0.5, 1.0}) {
    CAPTURE(share);
    const Serving serving(endless_options(4, {"aft-simple", "windowed"}), share);
    std::vector<std::unique_ptr<Client>> greedy;
    for (const char* const model : {"aft-simple", "windowed"})
      for (const char* const address : {"127.0.0.2", "127.0.0.3"}) {
        greedy.push_back(std::make_unique<Client>(serving.port(), 60, address));
        greedy.back()->send(request_of(endless(30, model)));
        CHECK(greedy.back()->receive().find("200 OK") != std::string::npos);
      }
    std::atomic<bool> done = false;
    std::thread reads([&] {  // so that no stream is dropped
      std::string bytes(1 << 20, '\0');
      for (; !done; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
        for (const auto& client : greedy) ::recv(client->descriptor(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    });
    for (const char* const model : {"aft-simple", "windowed"})
      for (int i = 0; i < 3; ++i) {
        const auto begin = Clock::now();
        CHECK(post(serving.port(), "/v1/completions", {{"model", model}, {"prompt", "a"}, {"max_tokens", 1}}).status ==
              200);
        CHECK_MESSAGE(seconds_since(begin) < 1, model);
      }
    done = true;
    reads.join();
  }
}

TEST_CASE("an address alone takes all slots, and another has its share at once") {
  const Serving serving(endless_options(), 0.5);
  Client greedy(serving.port(), 60, "127.0.0.2");
  greedy.send(request_of(endless(8)));
  CHECK(greedy.receive().find("200 OK") != std::string::npos);  // its texts have all slots
  std::thread reads([&] {                                       // until it is shut down
    while (!greedy.receive().empty()) continue;
  });
  const auto begin = Clock::now();
  const json two{{"prompt", "a"}, {"n", 2}, {"max_tokens", 20}, {"stop", "\u0001"}};
  CHECK(post(serving.port(), "/v1/completions", two).status == 200);
  CHECK(seconds_since(begin) < 1);
  ::shutdown(greedy.descriptor(), SHUT_RDWR);
  reads.join();
}

TEST_CASE("the memory for bodies on their way is limited") {
  ServeOptions options = serve_options({"aft-simple"});
  options.http.body_bytes = 16 << 20;
  const Serving serving(options);
  const std::string body(15 << 20, ' ');
  const auto clients = clients_of(serving, 10, head_of(body.size() + 1) + body);  // 150 MB
  CHECK(clients.front()->response().status == 503);
  clients.back()->send(" ");
  CHECK(clients.back()->response().status == 400);  // whole, and no JSON
}

TEST_CASE("a request whose end another program could see elsewhere is refused, and nothing after it is read") {
  const Serving serving(serve_options({"aft-simple"}));
  for (const std::string head :
       {"Transfer-Encoding: xchunked", "Transfer-Encoding: identity", "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding: xchunked\r\nContent-Length: 0",
        "Content-Length: 5\r\nContent-Length: 5", "Content-Length: 5, 5", "Content-Length: +5", "Host: other"}) {
    CAPTURE(head);
    Client client(serving.port());
    client.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + head +
                "\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const Response refused = client.response();
    CHECK(refused.status == 400);
    CHECK(refused.json()["error"]["type"] == "invalid_request_error");
    CHECK(client.receive().empty());
  }
  Client without_host(serving.port()), old(serving.port());
  without_host.send("GET /health HTTP/1.1\r\n\r\n");
  CHECK(without_host.response().status == 400);
  old.send("GET /health HTTP/1.0\r\n\r\n");
  CHECK(old.response().status == 200);
}

TEST_CASE("damaged requests are refused, and leave nothing behind") {
  const Serving serving(serve_options({"aft-simple"}));
  const std::string valid[] = {
      request_of({{"prompt", "the tape"}, {"max_tokens", 2}, {"stop", {"a"}}, {"logprobs", 2}, {"echo", true}}),
      request_of({{"prompt", {1, 2}}, {"max_tokens", 1}, {"stream", true}, {"session", {{"keep", "a"}}}}),
      request_of({{"input", {"the"}}, {"encoding_format", "base64"}}, "/v1/embeddings"),
      "GET /v1/models/aft-simple HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{\"prompt\":\"a "
      "b\"}\r\n0\r\n\r\n"};
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    Client client(serving.port());
    client.send(damaged(valid[random() % std::size(valid)], random, "{[\"9:-,}"));
    if (random() % 4 == 0) continue;  // leaves at once
    ::shutdown(client.descriptor(), SHUT_WR);
    while (!client.receive().empty()) continue;
  }
  CHECK(becomes(serving, 0));
  CHECK(post(serving.port(), "/v1/completions", {{"prompt", "a"}}).status == 200);
}

TEST_CASE("requests may follow each other without waiting, on one connection") {
  const Serving serving(serve_options({"aft-simple"}));
  Client client(serving.port());
  const json request{{"prompt", "a"}, {"max_tokens", 3}};
  client.send(request_of(request) + request_of(request) + "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(client.response().json()["object"] == "text_completion");
  CHECK(client.response().json()["object"] == "text_completion");
  CHECK(client.response().json()["status"] == "ok");
}

TEST_CASE("a client that does not read its stream is dropped, and others are served") {
  ServeOptions options = endless_options();
  options.http.idle_seconds = 0.5;
  const Serving serving(options);
  json request = endless();
  request["logprobs"] = 20;
  Client lazy(serving.port());
  lazy.send(request_of(request));
  CHECK(becomes(serving, 1));
  CHECK(post(serving.port(), "/v1/completions", {{"prompt", "a"}}).status == 200);
  CHECK(becomes(serving, 0, 60));
}

TEST_CASE("draining answers what is under way and refuses what comes") {
  Serving serving(serve_options({"aft-simple"}));
  const int port = serving.port();
  json request = endless();
  request["max_tokens"] = 3000;
  Client streaming(port);
  streaming.send(request_of(request));
  CHECK(becomes(serving, 1));
  serving.server.drain();
  const Streamed all = streamed(streaming.response());
  CHECK(all.done);
  CHECK(all.end == "length");
  serving.wait();
  CHECK_FALSE(Client(port).connected());
}

TEST_CASE("draining does not wait for a request that has not come whole") {
  Serving serving(serve_options({"aft-simple"}));
  Client half(serving.port()), head(serving.port());
  half.send(head_of(1000) + "{");
  head.send("GET /hea");
  CHECK(ask(serving.port(), "GET", "/health").status == 200);
  const auto begin = Clock::now();
  serving.server.drain();
  serving.wait();
  CHECK(seconds_since(begin) < 10);  // drain_seconds is 30
  CHECK(half.response().status == 503);
}

TEST_CASE("what does not end in the time of draining, and what stop() meets, ends at once") {
  for (const bool drains : {true, false}) {
    ServeOptions options = endless_options();
    options.http.drain_seconds = 0.3;
    Serving serving(options);
    Client streaming(serving.port());
    streaming.send(request_of(endless()));
    CHECK(becomes(serving, 1));
    const auto begin = Clock::now();
    drains ? serving.server.drain() : serving.server.stop();
    serving.wait();
    CHECK(seconds_since(begin) < 2);
  }
}

}  // namespace capstan::testing
