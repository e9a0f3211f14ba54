// One client of a server, and what the server knows of all of them. Includes Boost: for the sources of this folder
// only. All but HttpReply and HttpHandler::error runs on the server's thread, so that nothing here is locked.
// tests/serve/test_clients.cpp holds what becomes of clients that vanish, trickle or do not read.
#pragma once

#include <atomic>
#include <boost/asio.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "serve/http/http_message.hpp"
#include "serve/http/request_parser.hpp"

namespace capstan {

struct HttpState : std::enable_shared_from_this<HttpState> {
  using Connection = HttpConnection;
  /// What the clients with one address have.
  struct Address {
    size_t connections = 0, waiting = 0;  // waiting: for the client to send or take something
    size_t held = 0;                      // bytes of requests that are not whole yet, and of answers that are not sent
  };

  HttpState(HttpLimits given, HttpHandler handles) : limits(given), handler(std::move(handles)) {}
  void accept();
  /// Ends the connection whose client has moved nothing for longest, of the address with the most that wait. False
  /// where all are being answered.
  bool make_room();
  /// Ends stalled connections while requests and answers on their way take too much memory.
  void bound_memory();
  /// Ends the server when it takes no further requests and the last connection has ended.
  void end_if_done();
  void drain();
  void wait_for_signal();
  /// Ends the connection with the largest rank; false where none has one.
  template <class Rank>
  bool shed_largest(const Rank& rank);

  HttpLimits limits;
  HttpHandler handler;
  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{context.get_executor()};
  boost::asio::ip::tcp::acceptor acceptor{context};
  boost::asio::steady_timer pause{context};  // until connections are taken again, or until the server ends
  boost::asio::signal_set signals{context};
  std::list<Connection*> all;  // connections, which put themselves in and take themselves out
  std::map<std::string, Address> addresses;
  size_t held = 0;  // bytes of all connections
  bool closing = false;
};

/// A connection lives as long as a handler of Boost or an HttpReply holds it: it reads a request, hands it over, writes
/// what comes of it, and reads the next one.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Clock = std::chrono::steady_clock;
  /// What the client has to do next; nothing while its request is computed.
  enum class Waits { nothing, for_request, for_body, for_reader };

  HttpConnection(std::shared_ptr<HttpState> state, boost::asio::ip::tcp::socket socket);
  ~HttpConnection();

  void read_request();
  void close();
  /// Closes, and tells a client of which a part of a request has come why.
  void shed(const std::string& why);
  /// Has the client of a request left? Each request has its own, by which late replies are known, and dropped.
  using Gone = std::shared_ptr<std::atomic<bool>>;
  void send(const Gone& exchange, HttpAnswer answer);
  void stream(const Gone& exchange, std::string text, bool end);

  Waits waits() const { return waits_; }
  const HttpState::Address& address() const { return address_; }
  size_t held() const { return held_; }
  /// Seconds since the client began what it has to do, or moved the last 64 kB of it.
  double stalled(Clock::time_point now) const { return std::chrono::duration<double>(now - since_).count(); }

 private:
  friend class HttpReply;

  // These are called in the order of a request's life: read_request, take_head, read_body, hand_over, answer or stream,
  // write, done.
  void wait(Waits what);
  void arm(double seconds);
  void moved(size_t bytes);
  void hold(size_t bytes);
  void take_head();
  void read_body();
  void hand_over();
  void watch();
  void refuse(const boost::beast::error_code& error);
  void answer(HttpAnswer answer);
  void tell(int status);
  void queue(std::string bytes);
  void write();
  void done();
  void linger(size_t left);

  std::shared_ptr<HttpState> state_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer deadline_;
  boost::beast::flat_buffer buffer_;
  std::optional<RequestParser> parser_;
  std::string client_, request_;  // request_: "GET /v1/models"
  Clock::time_point begun_;
  HttpState::Address& address_;
  std::list<HttpConnection*>::iterator place_;
  Gone gone_;  // of the present request
  Waits waits_ = Waits::nothing;
  Clock::time_point since_;      // for stalled()
  size_t moved_ = 0, held_ = 0;  // moved_: bytes at `since_`; held_: of the request or the answer
  bool answered_ = true, keep_alive_ = true, chunked_ = true, head_only_ = false, streams_ = false, ended_ = false;
  bool watching_ = false, writing_ = false, wants_request_ = false;
  std::deque<std::string> unsent_;  // the first is being sent while writing_
};

}  // namespace capstan
