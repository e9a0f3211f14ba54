// A request passes refuse() with its head (names, origin, token, path), then waits for its turn on the computing
// thread. /health and the page are answered on the network's thread.
#include "serve/server.hpp"

#include <algorithm>
#include <cctype>
#include <limits>

#include "core/io/json.hpp"
#include "core/io/log.hpp"
#include "core/machine/parallel.hpp"
#include "core/products/blas_info.hpp"
#include "core/strings/printable.hpp"
#include "run/run.hpp"

namespace capstan {

/// page.html, as serve/CMakeLists.txt puts it into the program.
extern const char* const serve_page;

namespace {

namespace fs = std::filesystem;

/// All bodies that wait to be parsed have at most so many bytes, or as many as a single one may have if that is more.
constexpr int64_t default_waiting_bytes = 64 << 20;
constexpr int64_t bytes_beside_body = 1024;  // what a request takes besides its body, about
/// All answers that are being computed may have so many bytes together.
constexpr int64_t answers_bytes = 256 << 20;

/// What one client may have of `total`, but `least` in any case.
int64_t share_of(const ServeOptions& options, int64_t total, int64_t least = 1) {
  return std::max(least, static_cast<int64_t>(static_cast<double>(total) * options.client_share));
}

Room room_of_answers(const ServeOptions& options) {
  const int64_t places = options.engine.slots + options.queue;
  return {{places, answers_bytes}, {share_of(options, places), share_of(options, answers_bytes)}};
}

Room room_of_requests(const ServeOptions& options) {
  constexpr int64_t any = std::numeric_limits<int64_t>::max();
  const int64_t of_one = static_cast<int64_t>(options.http.body_bytes) + bytes_beside_body;
  const int64_t of_all = std::max(default_waiting_bytes, of_one);
  return {{any, of_all}, {any, share_of(options, of_all, of_one)}};
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

/// Throws ConfigError for a host name that no request would have.
ServeOptions checked(ServeOptions options) {
  for (const std::string& name : options.host_names)
    if (!is_plain_name(name))
      throw ConfigError(fmt::format(
          "--host-name {}: expected a name such as models.example, without http://, port, path and wildcards", name));
  return options;
}

/// The name of a run's folder, which is the model's. Throws ConfigError where JSON or lines of a log cannot hold it.
std::string model_name(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  std::string name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();  // "runs/m/" has none
  if (name.empty() || printable_line(name) != name)
    throw ConfigError(
        fmt::format("{}: the folder's name is the model's, and must be UTF-8 without control characters: rename it, "
                    "or give a link to it",
                    folder.string()));
  return name;
}

/// Opens the runs, and makes the settings of the process.
Models open_models(const ServeOptions& options) {
  Models models;
  EngineOptions engine = options.engine;
  engine.session_bytes /= static_cast<int64_t>(options.runs.size());
  engine.client_slots = share_of(options, engine.slots);
  for (const std::string& where : options.runs) {
    Run run = Run::open(where);
    const std::string name = model_name(run.folder);
    for (const auto& other : models)
      if (other->name() == name) throw ConfigError(fmt::format("{}: another run has the name {}, too", where, name));
    models.push_back(std::make_shared<Engine>(std::move(run), name, engine));
  }
  const RunConfig& first = models.front()->run().config;
  set_threads(static_cast<int>(options.threads > 0 ? options.threads : first.threads));
  use_kernels(first.train);
  reserve_product_memory();
  return models;
}

}  // namespace

Server::Server(const ServeOptions& options)
    : options_(checked(options)),
      models_(open_models(options_)),
      room_(room_of_answers(options)),
      unread_(room_of_requests(options)),
      http_(options.host, static_cast<int>(options.port), options.http,
            {[this](const HttpRequest& head) { return refuse(head); },
             [this](HttpRequest request, std::shared_ptr<HttpReply> reply) { answer(std::move(request), reply); },
             [](int status, const std::string& why) { return error_answer(ApiError(status, why)); }}) {}

Server::~Server() { stop(); }

void Server::run() {
  http_.run();
  scheduler_.stop();
}

void Server::stop() {
  scheduler_.stop();
  http_.stop();
}

std::optional<HttpAnswer> Server::refuse(const HttpRequest& head) const {
  try {
    check(head);
    return {};
  } catch (const ApiError& error) {
    return error_answer(error);
  }
}

/// Throws ApiError for a request that is refused by its head.
void Server::check(const HttpRequest& head) const {
  if (!is_host_of(options_, head.host))
    throw ApiError(403, fmt::format("this server is not asked by the name {}: if it should be, start it with "
                                    "--host-name and this name",
                                    json_excerpt(head.host)));
  check_route(head);
  // A page of another site may make a browser send requests, but the browser then says in Origin where they are from.
  const size_t scheme = head.origin.find("://");
  if (!head.origin.empty() && (scheme == std::string::npos || head.origin.substr(scheme + 3) != head.host))
    throw ApiError(403, "this request is from a page of another site");
  if (options_.token.empty() || head.path == "/" || head.path == "/health") return;
  if (!same_secret(head.authorization, "Bearer " + options_.token))
    throw ApiError(401, "the header Authorization: Bearer TOKEN is missing, or has another token");
}

void Server::answer(HttpRequest request, const std::shared_ptr<HttpReply>& reply) {
  if (request.path == "/health") return reply->send({200, R"({"status":"ok"})"});
  if (request.path == "/")
    return reply->send({200,
                        serve_page,
                        "text/html; charset=utf-8",
                        {{"Content-Security-Policy",
                          "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src "
                          "'self'; frame-ancestors 'none'; base-uri 'none'"},
                         {"X-Content-Type-Options", "nosniff"}}});
  const int64_t bytes = static_cast<int64_t>(request.body.size()) + bytes_beside_body;
  auto part = unread_.enter(request.client, {1, bytes});
  if (part == nullptr) return reply->send(error_answer(ApiError(429, "too many requests wait: try again later")));
  const auto shared = std::make_shared<HttpRequest>(std::move(request));
  const auto work = [this, shared, reply, part = std::move(part)] {
    if (!reply->gone()) answer_route({*shared, reply, models_, scheduler_, room_, options_});
    return false;
  };
  scheduler_.add(shared->client, work, static_cast<size_t>(bytes));
}

}  // namespace capstan
