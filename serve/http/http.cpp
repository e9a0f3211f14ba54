#include "serve/http/http.hpp"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <list>

#include "core/base/error.hpp"
#include "serve/http/request_parser.hpp"

namespace capstan {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace net = boost::asio;
using tcp = net::ip::tcp;

/// More than this waits to be sent: the client is dropped.
constexpr size_t most_unsent = 4 << 20;
/// Of a refused body, what is still read so that the client sees the answer.
constexpr size_t most_drained = 8 << 20;

std::string reason(int status) { return std::string(http::obsolete_reason(static_cast<http::status>(status))); }

}  // namespace

struct HttpServer::State : std::enable_shared_from_this<State> {
  State(HttpLimits given, HttpHandler handles) : limits(given), handler(std::move(handles)) {}
  class Connection;
  class Reply;
  void accept();
  void shed();

  HttpLimits limits;
  HttpHandler handler;
  net::io_context context{1};
  net::executor_work_guard<net::io_context::executor_type> work{context.get_executor()};
  tcp::acceptor acceptor{context};
  net::steady_timer pause{context};
  std::list<Connection*> all, idle;  // idle: those that wait for a request, the longest first
  bool closing = false;
};

/// One client. All of it runs on the server's thread.
class HttpServer::State::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<State> state, tcp::socket socket)
      : state_(std::move(state)),
        socket_(std::move(socket)),
        deadline_(state_->context),
        buffer_(unparsed_bytes(state_->limits)) {
    beast::error_code error;
    client_ = socket_.remote_endpoint(error).address().to_string();
    socket_.set_option(tcp::no_delay(true), error);
    place_ = state_->all.insert(state_->all.end(), this);
    idle_place_ = state_->idle.end();
  }
  ~Connection() {
    leave_idle();
    state_->all.erase(place_);
  }

  void read_request();
  void close() {
    beast::error_code error;
    socket_.close(error);
    deadline_.cancel();
    leave_idle();
    if (gone_) *gone_ = true;
  }
  void send(uint64_t exchange, HttpAnswer answer);
  void stream(uint64_t exchange, std::string text, bool end);

 private:
  friend class Reply;

  /// From now on the client has so long for what it is to do; then the connection is closed.
  void arm(double seconds) {
    deadline_.expires_after(std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds)));
    deadline_.async_wait([weak = weak_from_this()](beast::error_code error) {
      const auto me = weak.lock();
      if (me && !error && me->deadline_.expiry() <= net::steady_timer::clock_type::now()) me->close();
    });
  }
  void enter_idle() {
    leave_idle();
    idle_place_ = state_->idle.insert(state_->idle.end(), this);
    arm(state_->limits.idle_seconds);
  }
  void leave_idle() {
    if (idle_place_ != state_->idle.end()) state_->idle.erase(idle_place_);
    idle_place_ = state_->idle.end();
  }
  void read_body();
  void hand_over();
  void watch();
  void refuse(const beast::error_code& error);
  void answer(HttpAnswer answer);
  void write();
  void done();
  void linger(size_t left);

  std::shared_ptr<State> state_;
  tcp::socket socket_;
  net::steady_timer deadline_;
  beast::flat_buffer buffer_;
  std::optional<RequestParser> parser_;
  std::string client_;
  std::list<Connection*>::iterator place_, idle_place_;
  uint64_t exchange_ = 0;                    // which request it is
  std::shared_ptr<std::atomic<bool>> gone_;  // of the present request
  bool answered_ = true, keep_alive_ = true, chunked_ = true, streams_ = false, ended_ = false;
  bool watching_ = false, writing_ = false, wants_request_ = false;
  std::string unsent_, sending_;
};

class HttpServer::State::Reply final : public HttpReply {
 public:
  explicit Reply(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)),
        state_(connection_->state_),
        exchange_(connection_->exchange_),
        gone_(connection_->gone_) {}
  ~Reply() override {
    if (!answered_) Reply::send(state_->handler.error(500, "the server failed to answer"));
    // The connection is destroyed on its own thread.
    net::post(state_->context, [connection = std::move(connection_)] {});
  }

  void send(HttpAnswer answer) override {
    answered_ = true;
    net::post(state_->context, [connection = connection_, exchange = exchange_, answer = std::move(answer)]() mutable {
      connection->send(exchange, std::move(answer));
    });
  }
  void stream(std::string text) override { post(std::move(text), false); }
  void end_stream() override { post("", true); }
  bool gone() const override { return *gone_; }

 private:
  void post(std::string text, bool end) {
    answered_ = true;
    net::post(state_->context, [connection = connection_, exchange = exchange_, text = std::move(text), end]() mutable {
      connection->stream(exchange, std::move(text), end);
    });
  }

  std::shared_ptr<Connection> connection_;
  std::shared_ptr<State> state_;
  uint64_t exchange_;
  std::shared_ptr<std::atomic<bool>> gone_;
  bool answered_ = false;
};

void HttpServer::State::Connection::read_request() {
  if (state_->closing) return close();
  parser_.emplace();
  set_limits(*parser_, state_->limits);
  enter_idle();
  http::async_read_header(socket_, buffer_, *parser_, [me = shared_from_this()](beast::error_code error, size_t) {
    me->leave_idle();
    ++me->exchange_;
    me->answered_ = me->streams_ = me->ended_ = false;
    if (error) return me->refuse(error);
    const auto& head = me->parser_->get();
    me->keep_alive_ = head.keep_alive();
    me->chunked_ = head.version() >= 11;
    if (auto refusal = me->state_->handler.refuse(head_of(*me->parser_, me->client_))) {
      me->keep_alive_ = me->keep_alive_ && me->parser_->is_done();
      return me->answer(std::move(*refusal));
    }
    if (!beast::iequals(head[http::field::expect], "100-continue")) return me->read_body();
    me->sending_ = "HTTP/1.1 100 Continue\r\n\r\n";
    net::async_write(me->socket_, net::buffer(me->sending_), [me](beast::error_code wrong, size_t) {
      if (!wrong) me->read_body();
    });
  });
}

/// The whole request has the time that one has: a client that trickles is not waited for.
void HttpServer::State::Connection::read_body() {
  http::async_read(socket_, buffer_, *parser_, [me = shared_from_this()](beast::error_code error, size_t) {
    if (error) return me->refuse(error);
    me->hand_over();
  });
}

void HttpServer::State::Connection::hand_over() {
  HttpRequest request = head_of(*parser_, client_);
  request.body = std::move(parser_->get().body());
  gone_ = std::make_shared<std::atomic<bool>>(false);
  deadline_.cancel();
  watch();
  state_->handler.answer(std::move(request), std::make_shared<Reply>(shared_from_this()));
}

/// While a request is computed, reads on: that is how it is seen that the client has left. What comes is the begin of
/// the next request; after it, only writing tells.
void HttpServer::State::Connection::watch() {
  if (buffer_.size() > 0) return;
  watching_ = true;
  socket_.async_read_some(buffer_.prepare(4096), [me = shared_from_this()](beast::error_code error, size_t count) {
    me->watching_ = false;
    if (error) return me->close();
    me->buffer_.commit(count);
    if (!me->wants_request_) return;
    me->wants_request_ = false;
    me->read_request();
  });
}

void HttpServer::State::Connection::refuse(const beast::error_code& error) {
  keep_alive_ = false;
  if (const auto refusal = refusal_of(error, state_->limits))
    return answer(state_->handler.error(refusal->first, refusal->second));
  close();  // the client has left, or was too slow
}

void HttpServer::State::Connection::send(uint64_t exchange, HttpAnswer answer_given) {
  if (exchange == exchange_ && !answered_) answer(std::move(answer_given));
}

void HttpServer::State::Connection::answer(HttpAnswer answer) {
  answered_ = ended_ = true;
  unsent_ = fmt::format("HTTP/1.1 {} {}\r\nServer: capstan\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                        answer.status, reason(answer.status), answer.type, answer.body.size());
  for (const auto& [name, value] : answer.headers) unsent_ += fmt::format("{}: {}\r\n", name, value);
  unsent_ += fmt::format("Connection: {}\r\n\r\n", keep_alive_ ? "keep-alive" : "close");
  if (parser_->get().method() != http::verb::head) unsent_ += answer.body;
  write();
}

void HttpServer::State::Connection::stream(uint64_t exchange, std::string text, bool end) {
  if (exchange != exchange_ || (answered_ && !streams_) || ended_) return;
  if (!streams_) {
    streams_ = answered_ = true;
    keep_alive_ = keep_alive_ && chunked_;  // HTTP/1.0: the end of the connection is that of the stream
    unsent_ = fmt::format(
        "HTTP/1.1 200 OK\r\nServer: capstan\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
        "X-Accel-Buffering: no\r\n{}Connection: {}\r\n\r\n",
        chunked_ ? "Transfer-Encoding: chunked\r\n" : "", keep_alive_ ? "keep-alive" : "close");
  }
  if (!text.empty()) unsent_ += chunked_ ? fmt::format("{:x}\r\n{}\r\n", text.size(), text) : text;
  if (end && chunked_) unsent_ += "0\r\n\r\n";
  ended_ = end;
  if (unsent_.size() > most_unsent) return close();
  write();
}

void HttpServer::State::Connection::write() {
  if (writing_ || (gone_ && *gone_)) return;
  if (unsent_.empty()) {
    if (ended_) done();
    return;
  }
  writing_ = true;
  sending_ = std::move(unsent_);
  unsent_.clear();
  arm(state_->limits.idle_seconds);
  net::async_write(socket_, net::buffer(sending_), [me = shared_from_this()](beast::error_code error, size_t) {
    me->writing_ = false;
    me->deadline_.cancel();
    if (error) return me->close();
    me->write();
  });
}

void HttpServer::State::Connection::done() {
  gone_.reset();
  if (!keep_alive_ || state_->closing) return linger(most_drained);
  wants_request_ = watching_;  // then the read that is under way is that of the next request
  if (wants_request_) return enter_idle();
  read_request();
}

/// Closes, after what the client still sends: closing at once would take the answer away from it.
void HttpServer::State::Connection::linger(size_t left) {
  beast::error_code error;
  socket_.shutdown(tcp::socket::shutdown_send, error);
  if (error || watching_ || left == 0) return close();
  buffer_.clear();
  if (left == most_drained) arm(1);
  socket_.async_read_some(buffer_.prepare(16384),
                          [me = shared_from_this(), left](beast::error_code wrong, size_t count) {
                            if (wrong) return me->close();
                            me->linger(left - std::min(left, count));
                          });
}

/// Makes room for a connection: the one that has waited longest for a request ends.
void HttpServer::State::shed() {
  if (!idle.empty()) idle.front()->close();
}

void HttpServer::State::accept() {
  acceptor.async_accept([me = shared_from_this()](beast::error_code error, tcp::socket socket) {
    if (me->closing) return;
    if (error) {  // no descriptors are left
      me->shed();
      me->pause.expires_after(std::chrono::milliseconds(20));
      return me->pause.async_wait([me](beast::error_code) {
        if (!me->closing) me->accept();
      });
    }
    if (me->all.size() >= me->limits.connections) me->shed();
    if (me->all.size() < me->limits.connections + 16)
      std::make_shared<Connection>(me, std::move(socket))->read_request();
    me->accept();
  });
}

HttpServer::HttpServer(const std::string& host, int port, const HttpLimits& limits, HttpHandler handler)
    : state_(std::make_shared<State>(limits, std::move(handler))) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY)
    state_->limits.connections = std::min<size_t>(
        limits.connections, std::max<size_t>(16, files.rlim_cur - std::min<rlim_t>(files.rlim_cur, 64)));
  try {
    const tcp::endpoint endpoint(net::ip::make_address(host), static_cast<unsigned short>(port));
    state_->acceptor.open(endpoint.protocol());
    state_->acceptor.set_option(tcp::acceptor::reuse_address(true));
    state_->acceptor.bind(endpoint);
    state_->acceptor.listen(1024);
  } catch (const boost::system::system_error& error) {
    throw Error(
        fmt::format("--host {} --port {}: cannot listen there: {}; give a free port, and an address of this "
                    "machine in digits, such as 127.0.0.1 or 0.0.0.0",
                    host, port, error.code().message()));
  }
  state_->accept();
}

HttpServer::~HttpServer() {
  close_idle();
  state_->context.restart();
  state_->context.poll();
  for (State::Connection* const connection : std::list(state_->all)) connection->close();
  state_->context.poll();  // what was under way ends, and with it the connections
}

int HttpServer::port() const { return state_->acceptor.local_endpoint().port(); }

void HttpServer::run() {
  for (bool done = false; !done;) {
    try {
      state_->context.run();
      done = true;
    } catch (const std::exception&) {
      // No memory for one client: its connection has ended with what it was about, and others go on.
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
    beast::error_code error;
    state->acceptor.close(error);
    state->pause.cancel();
    while (!state->idle.empty()) state->shed();
  });
}

}  // namespace capstan
