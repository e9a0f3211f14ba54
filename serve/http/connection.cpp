// All functions run on one thread as handlers of Boost. A connection has one deadline at a time, for what the client
// has to do next, and none while its request is computed. tests/serve/test_clients.cpp holds deadlines, limits and
// ends.
#include "serve/http/connection.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <boost/beast/http.hpp>

#include "core/io/log.hpp"

namespace capstan {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace net = boost::asio;

/// A client with more bytes of a stream than this unsent is dropped.
constexpr size_t max_unsent = 4 << 20;
/// So many bytes of a refused body are still read, so that the client sees the answer.
constexpr size_t max_drained = 8 << 20;
/// A client that moves so many bytes at a time is not stalled; also the most that is joined to be sent at once.
constexpr size_t step_bytes = 64 << 10;
/// The size of the buffer by which bodies of any size are read.
constexpr size_t body_buffer = 16 << 10;
constexpr double linger_seconds = 1;  // for a client to take the last answer before its connection is closed
constexpr const char* go_on = "HTTP/1.1 100 Continue\r\n\r\n";

std::string reason(int status) { return std::string(http::obsolete_reason(static_cast<http::status>(status))); }

std::string head_text(const HttpAnswer& answer, bool keep_alive) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\nServer: capstan\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                                 answer.status, reason(answer.status), answer.type, answer.body.size());
  for (const auto& [name, value] : answer.headers) text += fmt::format("{}: {}\r\n", name, value);
  return text + fmt::format("Connection: {}\r\n\r\n", keep_alive ? "keep-alive" : "close");
}

}  // namespace

HttpConnection::HttpConnection(std::shared_ptr<HttpState> state, net::ip::tcp::socket socket)
    : state_(std::move(state)),
      socket_(std::move(socket)),
      deadline_(state_->context),
      buffer_(unparsed_bytes(state_->limits)),
      client_([this] {
        beast::error_code error;
        return socket_.remote_endpoint(error).address().to_string();
      }()),
      address_(state_->addresses[client_]),
      place_(state_->all.insert(state_->all.end(), this)) {
  ++address_.connections;
  beast::error_code error;
  socket_.set_option(net::ip::tcp::no_delay(true), error);
  socket_.non_blocking(true, error);  // shed() writes without waiting
}

HttpConnection::~HttpConnection() {
  close();
  state_->all.erase(place_);
  if (--address_.connections == 0) state_->addresses.erase(client_);
  state_->end_if_done();
}

void HttpConnection::close() {
  beast::error_code error;
  socket_.close(error);
  wait(Waits::nothing);
  hold(0);
  if (gone_) *gone_ = true;
}

void HttpConnection::shed(const std::string& why) {
  if (waits_ == Waits::for_body) {
    const HttpAnswer refusal = state_->handler.error(503, why);
    beast::error_code error;
    socket_.write_some(net::buffer(head_text(refusal, false) + refusal.body), error);
  }
  close();
}

/// Gives a client that has something to do so many seconds for it, after which the connection is closed.
void HttpConnection::arm(double seconds) {
  deadline_.expires_after(std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds)));
  deadline_.async_wait([weak = weak_from_this()](beast::error_code error) {
    const auto me = weak.lock();
    if (me && !error && me->deadline_.expiry() <= net::steady_timer::clock_type::now()) me->close();
  });
}

/// Says what the client has to do next. Its body must come within the time that began with the head, so that a client
/// which trickles is not waited for.
void HttpConnection::wait(Waits what) {
  address_.waiting += what == Waits::nothing ? 0 : 1;
  address_.waiting -= waits_ == Waits::nothing ? 0 : 1;
  const bool goes_on = waits_ == Waits::for_request && what == Waits::for_body;
  waits_ = what;
  if (what == Waits::nothing) {
    deadline_.cancel();
  } else if (!goes_on) {
    since_ = Clock::now();
    moved_ = 0;
    arm(state_->limits.idle_seconds);
  }
}

/// Notes that a client has moved `bytes` since wait().
void HttpConnection::moved(size_t bytes) {
  if (bytes < moved_ + step_bytes) return;
  moved_ = bytes;
  since_ = Clock::now();
}

void HttpConnection::hold(size_t bytes) {
  state_->held += bytes - held_;
  address_.held += bytes - held_;
  if (bytes > std::exchange(held_, bytes)) state_->bound_memory();
}

void HttpConnection::read_request() {
  if (state_->closing) return close();
  parser_.emplace();
  set_limits(*parser_, state_->limits);
  head_only_ = false;
  wait(Waits::for_request);
  http::async_read_header(socket_, buffer_, *parser_, [me = shared_from_this()](beast::error_code error, size_t) {
    me->gone_ = std::make_shared<std::atomic<bool>>(false);
    me->request_.clear();
    me->begun_ = Clock::now();
    me->answered_ = me->streams_ = me->ended_ = false;
    if (error) return me->refuse(error);
    me->take_head();
  });
}

void HttpConnection::take_head() {
  const auto& head = parser_->get();
  const HttpRequest request = head_of(*parser_, client_);
  request_ = request.method + " " + request.path;
  keep_alive_ = head.keep_alive();
  chunked_ = head.version() >= 11;
  head_only_ = head.method() == http::verb::head;
  if (const auto why = ambiguity_of(*parser_)) {
    keep_alive_ = false;  // where the next request begins is not known
    return answer(state_->handler.error(400, *why));
  }
  if (auto refusal = state_->handler.refuse(request)) {
    keep_alive_ = keep_alive_ && parser_->is_done();
    return answer(std::move(*refusal));
  }
  if (parser_->is_done()) return hand_over();
  wait(Waits::for_body);
  buffer_.reserve(std::min<size_t>(body_buffer, parser_->content_length().value_or(body_buffer)));
  if (!beast::iequals(head[http::field::expect], "100-continue")) return read_body();
  net::async_write(socket_, net::buffer(go_on, std::char_traits<char>::length(go_on)),
                   [me = shared_from_this()](beast::error_code error, size_t) {
                     if (error) return me->close();
                     me->read_body();
                   });
}

void HttpConnection::read_body() {
  http::async_read_some(socket_, buffer_, *parser_, [me = shared_from_this()](beast::error_code error, size_t) {
    if (error) return me->refuse(error);
    if (me->parser_->is_done()) return me->hand_over();
    const size_t size = me->parser_->get().body().size();
    me->moved(size);
    me->hold(me->buffer_.capacity() + size);
    if (me->socket_.is_open()) me->read_body();
  });
}

void HttpConnection::hand_over() {
  HttpRequest request = head_of(*parser_, client_);
  request.body = std::move(parser_->get().body());
  wait(Waits::nothing);
  hold(0);
  if (buffer_.size() == 0) buffer_.shrink_to_fit();
  watch();
  state_->handler.answer(std::move(request), std::make_shared<HttpReply>(shared_from_this()));
}

/// Reads on while a request is computed: only so is it seen that the client has left. Bytes that come are the beginning
/// of the next request; from then on, only writing shows it.
void HttpConnection::watch() {
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

void HttpConnection::refuse(const beast::error_code& error) {
  keep_alive_ = false;
  if (const auto refusal = refusal_of(error, state_->limits))
    return answer(state_->handler.error(refusal->first, refusal->second));
  close();  // the client has left, or was too slow
}

void HttpConnection::send(const Gone& exchange, HttpAnswer answer_given) {
  if (exchange == gone_ && !answered_) answer(std::move(answer_given));
}

/// Reports for the log what was answered, once for each request.
void HttpConnection::tell(int status) {
  const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  log_debug(
      fmt::format("{} {} {} in {:.3f} s", client_, request_.empty() ? "(no request)" : request_, status, seconds));
}

void HttpConnection::answer(HttpAnswer answer) {
  answered_ = ended_ = true;
  tell(answer.status);
  hold(0);
  parser_.emplace();  // what has come of a refused body is not kept
  queue(head_text(answer, keep_alive_));
  if (!head_only_) queue(std::move(answer.body));
  write();
}

void HttpConnection::stream(const Gone& exchange, std::string text, bool end) {
  if (exchange != gone_ || (answered_ && !streams_) || ended_) return;
  if (!streams_) {
    streams_ = answered_ = true;
    keep_alive_ = keep_alive_ && chunked_;  // HTTP/1.0: the end of the connection is that of the stream
    queue(fmt::format(
        "HTTP/1.1 200 OK\r\nServer: capstan\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n"
        "X-Accel-Buffering: no\r\n{}Connection: {}\r\n\r\n",
        chunked_ ? "Transfer-Encoding: chunked\r\n" : "", keep_alive_ ? "keep-alive" : "close"));
  }
  if (!text.empty()) queue(chunked_ ? fmt::format("{:x}\r\n{}\r\n", text.size(), text) : std::move(text));
  if (end && chunked_) queue("0\r\n\r\n");
  ended_ = end;
  if (end) tell(200);
  if (held_ > max_unsent) return close();
  write();
}

void HttpConnection::queue(std::string bytes) {
  if (bytes.empty() || !socket_.is_open()) return;
  const size_t held = held_ + bytes.size();
  if (unsent_.size() > (writing_ ? 1 : 0) && unsent_.back().size() + bytes.size() <= step_bytes)
    unsent_.back() += bytes;
  else
    unsent_.push_back(std::move(bytes));
  hold(held);
}

void HttpConnection::write() {
  if (writing_ || !socket_.is_open()) return;
  if (unsent_.empty()) {
    if (ended_) done();
    return;
  }
  writing_ = true;
  wait(Waits::for_reader);
  const auto more = [me = shared_from_this()](beast::error_code error, size_t bytes) -> size_t {
    me->moved(bytes);
    return error ? 0 : step_bytes;
  };
  net::async_write(socket_, net::buffer(unsent_.front()), more,
                   [me = shared_from_this()](beast::error_code error, size_t bytes) {
                     me->writing_ = false;
                     if (error || !me->socket_.is_open()) return me->close();
                     me->unsent_.pop_front();
                     me->hold(me->held_ - bytes);
                     me->wait(Waits::nothing);
                     me->write();
                   });
}

void HttpConnection::done() {
  if (!keep_alive_ || state_->closing) return linger(max_drained);
  wants_request_ = watching_;  // then the read that is under way is that of the next request
  if (wants_request_) return wait(Waits::for_request);
  read_request();
}

/// Closes after reading what the client still sends, `left` bytes at most: closing at once would reset the connection,
/// and the client might never see the answer.
void HttpConnection::linger(size_t left) {
  beast::error_code error;
  socket_.shutdown(net::ip::tcp::socket::shutdown_send, error);
  if (error || watching_ || left == 0) return close();
  buffer_.clear();
  if (left == max_drained) {
    wait(Waits::for_reader);
    arm(std::min(linger_seconds, state_->limits.idle_seconds));
  }
  socket_.async_read_some(buffer_.prepare(body_buffer),
                          [me = shared_from_this(), left](beast::error_code wrong, size_t count) {
                            if (wrong) return me->close();
                            me->linger(left - std::min(left, count));
                          });
}

HttpReply::HttpReply(std::shared_ptr<HttpConnection> connection)
    : connection_(std::move(connection)), gone_(connection_->gone_) {}

HttpReply::~HttpReply() {
  const std::shared_ptr<HttpState> state = connection_->state_;
  if (!answered_) send(state->handler.error(500, "the server failed to answer"));
  // The connection is destroyed on its own thread.
  net::post(state->context, [connection = std::move(connection_)] {});
}

void HttpReply::send(HttpAnswer answer) {
  answered_ = true;
  net::post(connection_->state_->context,
            [connection = connection_, exchange = gone_, answer = std::move(answer)]() mutable {
              connection->send(exchange, std::move(answer));
            });
}

void HttpReply::post(std::string text, bool end) {
  answered_ = true;
  net::post(connection_->state_->context, [connection = connection_, exchange = gone_, text = std::move(text),
                                           end]() mutable { connection->stream(exchange, std::move(text), end); });
}

}  // namespace capstan
