// What connections may take together is bounded here: their number, and the memory of requests that are not whole and
// of answers that are not sent. Where a bound is reached, the client that has moved nothing for longest goes first, of
// the address that takes most: tests/serve/test_clients.cpp.
#include "serve/http/http.hpp"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>

#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "serve/http/connection.hpp"

namespace capstan {
namespace {

namespace net = boost::asio;

/// Requests that are not whole yet and answers that are not sent have at most so many bytes, or as many as a single
/// request may have if that is more.
constexpr size_t default_held_bytes = 128 << 20;
/// Only a client that takes nothing of an answer for so long is dropped for its memory.
constexpr double patience_seconds = 1;

using Connection = HttpConnection;
using Waits = Connection::Waits;
using Rank = std::optional<std::pair<size_t, double>>;

}  // namespace

template <class RankOf>
bool HttpState::shed_largest(const RankOf& rank_of) {
  Connection* first = nullptr;
  Rank most;
  for (Connection* const connection : all)
    if (const Rank own = rank_of(*connection); own > most) {
      most = own;
      first = connection;
    }
  if (first != nullptr) first->shed("the server has no room for a request that comes so slowly: try again later");
  return first != nullptr;
}

bool HttpState::make_room() {
  const auto now = Connection::Clock::now();
  const auto rank = [&](const Connection& connection) -> Rank {
    if (connection.waits() == Waits::nothing) return {};
    return std::pair{connection.address().waiting, connection.stalled(now)};
  };
  return shed_largest(rank);
}

void HttpState::bound_memory() {
  const size_t most = std::max(default_held_bytes, limits.body_bytes + unparsed_bytes(limits));
  const auto now = Connection::Clock::now();
  const auto rank = [&](const Connection& connection) -> Rank {
    const double seconds = connection.stalled(now);
    const bool stalls = connection.waits() == Waits::for_reader && seconds > patience_seconds;
    if (connection.held() == 0 || !(stalls || connection.waits() == Waits::for_body)) return {};
    return std::pair{connection.address().held, seconds};
  };
  while (held > most && shed_largest(rank)) continue;
}

void HttpState::accept() {
  acceptor.async_accept([me = shared_from_this()](boost::beast::error_code error, net::ip::tcp::socket socket) {
    if (me->closing) return;
    if (error) {  // usually there are no descriptors left
      me->make_room();
      me->pause.expires_after(std::chrono::milliseconds(20));
      return me->pause.async_wait([me](boost::beast::error_code) {
        if (!me->closing) me->accept();
      });
    }
    const auto connection = std::make_shared<Connection>(me, std::move(socket));
    if (me->all.size() > me->limits.connections) me->make_room();
    if (me->all.size() <= me->limits.connections + 16) connection->read_request();
    me->accept();
  });
}

void HttpState::end_if_done() {
  if (closing && all.empty()) context.stop();
}

void HttpState::drain() {
  closing = true;
  boost::beast::error_code error;
  acceptor.close(error);
  pause.expires_after(std::chrono::milliseconds(static_cast<int64_t>(1000 * limits.drain_seconds)));
  pause.async_wait([me = shared_from_this()](boost::beast::error_code) { me->context.stop(); });
  for (Connection* const connection : all)
    if (connection->waits() == Waits::for_request || connection->waits() == Waits::for_body)
      connection->shed("the server is about to end");
  end_if_done();
}

void HttpState::wait_for_signal() {
  signals.async_wait([me = shared_from_this()](boost::beast::error_code error, int signal) {
    if (error) return;
    if (signal != SIGTERM || me->closing) return me->context.stop();
    log_info("SIGTERM: what is under way is still answered; a second signal ends it");
    me->drain();
    me->wait_for_signal();
  });
}

HttpServer::HttpServer(const std::string& host, int port, const HttpLimits& limits, HttpHandler handler)
    : state_(std::make_shared<HttpState>(limits, std::move(handler))) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY)
    state_->limits.connections = std::min<size_t>(
        limits.connections, std::max<size_t>(16, files.rlim_cur - std::min<rlim_t>(files.rlim_cur, 64)));
  try {
    const std::string address = host == "localhost" ? "127.0.0.1" : host;
    const net::ip::tcp::endpoint endpoint(net::ip::make_address(address), static_cast<unsigned short>(port));
    state_->acceptor.open(endpoint.protocol());
    state_->acceptor.set_option(net::ip::tcp::acceptor::reuse_address(true));
    state_->acceptor.bind(endpoint);
    state_->acceptor.listen(1024);
  } catch (const boost::system::system_error& error) {
    throw Error(
        fmt::format("--host {} --port {}: cannot listen there: {}; give a free port, and an address of this "
                    "machine in digits, such as 127.0.0.1 or 0.0.0.0, or localhost",
                    host, port, error.code().message()));
  }
  state_->accept();
}

HttpServer::~HttpServer() {
  boost::beast::error_code error;
  state_->closing = true;
  state_->acceptor.close(error);
  state_->pause.cancel();
  state_->signals.cancel(error);
  for (Connection* const connection : state_->all) connection->close();
  do {  // what was under way ends, and with it the connections
    state_->context.restart();
  } while (state_->context.poll() > 0);
}

bool is_ip_address(const std::string& text) {
  boost::system::error_code error;
  net::ip::make_address(text, error);
  return !error;
}

int HttpServer::port() const { return state_->acceptor.local_endpoint().port(); }

void HttpServer::run() {
  for (bool done = false; !done;) {
    try {
      state_->context.run();
      done = true;
    } catch (const std::exception&) {
      // There was no memory for one client. Its connection has ended, and others go on.
    }
  }
}

void HttpServer::stop() { state_->context.stop(); }

void HttpServer::drain() {
  net::post(state_->context, [state = state_] { state->drain(); });
}

void HttpServer::end_at_signals() {
  for (const int signal : {SIGINT, SIGTERM}) state_->signals.add(signal);
  state_->wait_for_signal();
}

}  // namespace capstan
