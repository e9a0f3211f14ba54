// A request passes refuse() with its head (names, origin, token, path), then waits for a reading thread in one of two
// workers, then for the computing thread. /health, /metrics and the page are answered on the network's thread. Models
// are replaced as a whole by reload(), and requests keep those that they began with.
#include "serve/server.hpp"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "core/io/json.hpp"
#include "core/io/log.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/strings/utf8.hpp"
#include "serve/routes.hpp"
#include "serve/worker.hpp"

namespace capstan {

/// page.html, as serve/CMakeLists.txt puts it into the program.
extern const char* const serve_page;

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// All bodies that wait to be parsed have at most so many bytes, or as many as a single one may have if that is more.
constexpr size_t default_waiting_bytes = 64 << 20;
constexpr size_t bytes_beside_body = 1024;  // what a request takes besides its body, about
constexpr size_t large_bytes = 64 << 10;    // a request with more takes a while to parse
/// All answers that are being computed may have so many bytes together.
constexpr int64_t answers_bytes = 256 << 20;

HttpLimits http_limits(const ServeOptions& options) {
  HttpLimits limits = options.http;
  limits.client_share = options.client_share;
  return limits;
}

Worker::Limits waiting_limits(const ServeOptions& options) {
  const size_t of_one = options.http.body_bytes + bytes_beside_body, of_all = std::max(default_waiting_bytes, of_one);
  return {of_all, std::max(of_one, static_cast<size_t>(static_cast<double>(of_all) * options.client_share))};
}

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// Whether a request calls the server by one of its own names. A page of another site can let its own name lead to the
/// server's address (DNS rebinding), and a browser would then take it for a page of the server.
bool is_host_of(const ServeOptions& options, const std::string& host) {
  const bool bracketed = !host.empty() && host.front() == '[';
  const size_t colon = bracketed ? host.find("]:") : host.rfind(':');
  const size_t end = colon == std::string::npos ? host.size() : colon + (bracketed ? 1 : 0);
  if (const std::string port = host.substr(std::min(end + 1, host.size()));
      !std::all_of(port.begin(), port.end(), [](unsigned char c) { return std::isdigit(c) != 0; }))
    return false;
  const std::string name = lowered(host.substr(0, end));
  if (name.empty() || name == "localhost" || name == lowered(options.host)) return true;
  if (bracketed) return is_ip_address(name.substr(1, name.size() - 2));
  return is_ip_address(name) || std::any_of(options.host_names.begin(), options.host_names.end(),
                                            [&](const std::string& own) { return lowered(own) == name; });
}

/// Whether two secrets are equal, in a time that tells nothing of where they differ.
bool same_secret(const std::string& given, const std::string& secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < given.size(); ++i)
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(secret[i % secret.size()]);
  return difference == 0;
}

void log_answer(const std::string& client, const std::string& request, int status, double seconds) {
  log_debug(fmt::format("{} {} {} in {:.3f} s", client, request.empty() ? "(no request)" : request, status, seconds));
}

/// Throws ConfigError for a host name with more than the name: no request would have it.
ServeOptions checked(ServeOptions options) {
  for (const std::string& given : options.host_names) {
    std::string name = given.substr(given.find("://") == std::string::npos ? 0 : given.find("://") + 3);
    name = name.substr(0, name.find_first_of("/:?#"));
    if (name != given || name.empty())
      throw ConfigError(
          fmt::format("--host-name {}: expected a name such as models.example, without http://, port "
                      "and path{}",
                      given, name.empty() ? "" : "; give --host-name " + name));
  }
  return options;
}

/// Can a folder's name be a model's? Any that JSON and lines of a log can hold, such as "lr=1e-2,seed=2" of a sweep.
bool is_model_name(const std::string& name) {
  return !name.empty() && is_utf8(name) &&
         std::none_of(name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; });
}

}  // namespace

class Server::State {
 public:
  explicit State(const ServeOptions& options)
      : options_(checked(options)),
        models_(open_models(true)),
        http_(options.host, static_cast<int>(options.port), http_limits(options),
              {[this](const HttpRequest& head) { return refuse(head); },
               [this](HttpRequest request, std::shared_ptr<HttpReply> reply) { answer(std::move(request), reply); },
               [](int status, const std::string& why) { return error_answer(ApiError(status, why)); }, log_answer}),
        scheduler_(limits()),
        reader_(waiting_limits(options)),
        reader_of_large_(waiting_limits(options)) {}
  ~State() {
    draining_ = true;
    stop();
    if (drainer_.joinable()) drainer_.join();
    if (loader_.joinable()) loader_.join();
  }

  int port() const { return http_.port(); }
  int64_t taken() const { return scheduler_.taken(); }
  Models models() const {
    const std::lock_guard lock(mutex_);
    return models_;
  }
  void run() {
    http_.run();
    done_ = true;
    scheduler_.stop();
  }
  void stop() {
    done_ = true;
    scheduler_.stop();
    http_.stop();
  }
  void drain();
  void reload();

 private:
  /// `first`: when the server starts, before models_ is there; the settings of the process are then made, too.
  Models open_models(bool first);
  Scheduler::Limits limits() const {
    const auto share = [&](int64_t total) {
      return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(total) * options_.client_share));
    };
    const int64_t places = options_.engine.slots + options_.queue;
    return {{places, answers_bytes}, {share(places), share(answers_bytes)}};
  }
  std::optional<HttpAnswer> refuse(const HttpRequest& head) const;
  void answer(HttpRequest request, const std::shared_ptr<HttpReply>& reply);

  const ServeOptions options_;
  mutable std::mutex mutex_;  // guards metrics_ and models_
  std::map<std::string, std::shared_ptr<ServeMetrics>> metrics_;
  Models models_;
  std::atomic<bool> draining_ = false, done_ = false, loading_ = false;
  std::thread drainer_, loader_;
  HttpServer http_;  // is destroyed after the scheduler and the readers, which may still answer
  Scheduler scheduler_;
  Worker reader_, reader_of_large_;  // two, so that requests which take long to parse do not delay others
};

Models Server::State::open_models(bool first) {
  Models models;
  for (const std::string& where : options_.runs) {
    SavedRun run = open_run(where);
    const std::string name = fs::absolute(run.folder).lexically_normal().filename().string();
    if (!is_model_name(name))
      throw ConfigError(
          fmt::format("{}: the folder's name is the model's, and must be UTF-8 without control characters: rename it, "
                      "or give a link to it",
                      where));
    if (first && models.empty()) {
      set_threads(static_cast<int>(options_.threads > 0 ? options_.threads : run.config.threads));
      use_kernels(run.config.train);
    }
    for (const auto& other : models)
      if (other->name() == name) throw ConfigError(fmt::format("{}: another run has the name {}, too", where, name));
    EngineOptions engine = options_.engine;
    engine.cache_bytes /= static_cast<int64_t>(options_.runs.size());
    std::shared_ptr<ServeMetrics> metrics;
    {
      const std::lock_guard lock(mutex_);
      auto& known = metrics_[name];
      if (known == nullptr) known = std::make_shared<ServeMetrics>();
      metrics = known;
    }
    models.push_back(std::make_shared<Engine>(std::move(run), name, engine, std::move(metrics)));
  }
  if (first) reserve_product_memory();
  return models;
}

void Server::State::reload() {
  if (loading_.exchange(true)) return;
  if (loader_.joinable()) loader_.join();
  loader_ = std::thread([this] {
    try {
      Models models = open_models(false);
      const std::lock_guard lock(mutex_);
      models_ = std::move(models);
      log_info("the models have been opened anew");
    } catch (const std::exception& error) {
      log_error(fmt::format("the models stay as they were: {}", error.what()));
    }
    loading_ = false;
  });
}

void Server::State::drain() {
  if (draining_.exchange(true)) return;
  http_.close_idle();
  drainer_ = std::thread([this] {
    const auto until = Clock::now() + std::chrono::milliseconds(static_cast<int64_t>(1000 * options_.drain_seconds));
    const auto wait_while = [&](const auto& open) {
      while (!done_ && open() && Clock::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    };
    wait_while([this] { return scheduler_.taken() > 0 || !reader_.idle() || !reader_of_large_.idle(); });
    http_.finish();
    wait_while([] { return true; });  // until run() has returned
    http_.stop();
  });
}

std::optional<HttpAnswer> Server::State::refuse(const HttpRequest& head) const {
  try {
    if (!is_host_of(options_, head.host))
      throw ApiError(403, fmt::format("this server is not asked by the name {}: if it should be, start it with "
                                      "--host-name and this name",
                                      json_excerpt(head.host)));
    check_route(head);
    // A page of another site may make a browser send requests, but the browser then says in Origin where they are from.
    const size_t scheme = head.origin.find("://");
    if (!head.origin.empty() && (scheme == std::string::npos || head.origin.substr(scheme + 3) != head.host))
      throw ApiError(403, "this request is from a page of another site");
    if (options_.token.empty() || is_open_route(head)) return {};
    constexpr std::string_view bearer = "bearer ";
    const bool has_token = lowered(head.authorization.substr(0, bearer.size())) == bearer;
    const size_t token = head.authorization.find_first_not_of(' ', bearer.size());
    if (!has_token || token == std::string::npos || !same_secret(head.authorization.substr(token), options_.token))
      throw ApiError(401, "the header Authorization: Bearer TOKEN is missing, or has another token");
    return {};
  } catch (const ApiError& error) {
    if (error.status() != 405) return error_answer(error);
    HttpAnswer answer = error_answer(ApiError(405, error.what()));
    answer.headers.emplace_back("Allow", error.param());
    return answer;
  }
}

void Server::State::answer(HttpRequest request, const std::shared_ptr<HttpReply>& reply) {
  try {
    if (draining_) throw ApiError(503, "the server is about to end");
    if (request.path == "/health") return reply->send({200, R"({"status":"ok"})"});
    if (request.path == "/")
      return reply->send({200,
                          serve_page,
                          "text/html; charset=utf-8",
                          {{"Content-Security-Policy",
                            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src "
                            "'self'; frame-ancestors 'none'; base-uri 'none'"},
                           {"X-Content-Type-Options", "nosniff"}}});
    if (request.path == "/metrics") {
      const std::lock_guard lock(mutex_);
      return reply->send({200, prometheus_text(metrics_), "text/plain; version=0.0.4"});
    }
    const size_t bytes = request.body.size() + bytes_beside_body;
    const auto shared = std::make_shared<HttpRequest>(std::move(request));
    const auto work = [this, shared, reply] {
      if (!reply->gone()) answer_route(*shared, reply, {models(), scheduler_, options_});
    };
    if (!(bytes > large_bytes ? reader_of_large_ : reader_).add(shared->client, work, bytes))
      throw ApiError(429, "too many requests wait: try again later");
  } catch (const ApiError& error) {
    reply->send(error_answer(error));
  }
}

Server::Server(const ServeOptions& options) : state_(std::make_unique<State>(options)) {}
Server::~Server() = default;
int Server::port() const { return state_->port(); }
int64_t Server::taken() const { return state_->taken(); }
std::vector<std::string> Server::models() const {
  std::vector<std::string> names;
  for (const auto& model : state_->models()) names.push_back(model->name());
  return names;
}
void Server::run() { state_->run(); }
void Server::drain() { state_->drain(); }
void Server::stop() { state_->stop(); }
void Server::reload() { state_->reload(); }

}  // namespace capstan
