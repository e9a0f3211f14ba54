// What connections may take together is bounded here: their number, the memory of requests that are not whole, and of
// answers that are not sent. Where a bound is reached, the client that has moved nothing for longest goes first, of the
// address that takes most: tests/serve/test_clients.cpp.
#include "serve/http/http.hpp"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "serve/http/connection.hpp"

namespace capstan {
namespace {

namespace net = boost::asio;

/// All requests that are not whole yet have at most so many bytes, or as many as a single one may have if that is more.
constexpr size_t default_held_bytes = 64 << 20;
/// Where all answers that are not sent have more bytes, clients that have taken nothing for a second are dropped.
constexpr size_t default_unsent_bytes = 256 << 20;
constexpr double patience_seconds = 1;

using Connection = HttpState::Connection;
using Waits = Connection::Waits;

/// The connection with the largest rank; null where none has one.
template <class Rank>
Connection* largest(const std::list<Connection*>& connections, const Rank& rank) {
  Connection* first = nullptr;
  decltype(rank(std::declval<const Connection&>())) most;
  for (Connection* const connection : connections)
    if (auto own = rank(*connection); own > most) {
      most = own;
      first = connection;
    }
  return first;
}

}  // namespace

bool HttpState::make_room(const Address* of) {
  const auto now = Connection::Clock::now();
  using Rank = std::optional<std::pair<size_t, double>>;
  Connection* const slowest = largest(all, [&](const Connection& connection) -> Rank {
    if (connection.waits() == Waits::nothing || (of != nullptr && of != &connection.address())) return {};
    return std::pair{connection.address().waiting, connection.stalled(now)};
  });
  if (slowest != nullptr) slowest->shed("the server has no room for a request that comes so slowly: try again later");
  return slowest != nullptr;
}

void HttpState::bound_held(const Address& grown) {
  const size_t of_one = limits.body_bytes + unparsed_bytes(limits), most = std::max(default_held_bytes, of_one);
  const size_t share = std::max(of_one, share_of(most));
  const auto now = Connection::Clock::now();
  while (grown.held > share || held > most) {
    const Address* from = &grown;
    if (grown.held <= share)
      for (const auto& [name, address] : addresses) from = address.held > from->held ? &address : from;
    Connection* const slowest = largest(all, [&](const Connection& connection) -> std::optional<double> {
      if (connection.waits() != Waits::for_body || &connection.address() != from) return {};
      return connection.stalled(now);
    });
    if (slowest == nullptr) return;
    slowest->shed("too many requests are on their way: send this one again later, or faster");
  }
}

void HttpState::bound_unsent() {
  const auto now = Connection::Clock::now();
  while (unsent > default_unsent_bytes) {
    Connection* const slowest = largest(all, [&](const Connection& connection) -> std::optional<double> {
      const double seconds = connection.stalled(now);
      const bool stalls = connection.waits() == Waits::for_reader && seconds > patience_seconds;
      return stalls ? std::optional(seconds) : std::nullopt;
    });
    if (slowest == nullptr) return;
    slowest->close();
  }
}

void HttpState::accept() {
  acceptor.async_accept([me = shared_from_this()](boost::beast::error_code error, net::ip::tcp::socket socket) {
    if (me->closing) return;
    if (error) {  // usually there are no descriptors left
      me->make_room(nullptr);
      me->pause.expires_after(std::chrono::milliseconds(20));
      return me->pause.async_wait([me](boost::beast::error_code) {
        if (!me->closing) me->accept();
      });
    }
    const auto connection = std::make_shared<Connection>(me, std::move(socket));
    // An address beyond its share makes room for itself; one whose connections are all being answered gets no more.
    const bool surplus = connection->address().connections > me->share_of(me->limits.connections);
    const bool full = surplus || me->all.size() > me->limits.connections;
    const bool has_room = full && me->make_room(surplus ? &connection->address() : nullptr);
    if (!surplus || has_room)
      if (me->all.size() <= me->limits.connections + 16) connection->read_request();
    me->accept();
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
  close_idle();
  state_->context.restart();
  state_->context.poll();
  for (Connection* const connection : std::list(state_->all)) connection->close();
  state_->context.poll();  // what was under way ends, and with it the connections
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

void HttpServer::finish() {
  net::post(state_->context, [state = state_] { state->work.reset(); });
}

void HttpServer::close_idle() {
  net::post(state_->context, [state = state_] {
    state->closing = true;
    boost::beast::error_code error;
    state->acceptor.close(error);
    state->pause.cancel();
    for (Connection* const connection : state->all)
      if (connection->waits() == Waits::for_request || connection->waits() == Waits::for_body)
        connection->shed("the server is about to end");
  });
}

}  // namespace capstan
