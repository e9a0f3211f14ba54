// A client over sockets, which may also do what no good client does.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

namespace capstan::testing {

struct Response {
  int status = 0;
  std::string headers, body;
  nlohmann::json json() const { return nlohmann::json::parse(body); }
};

class Client {
 public:
  /// `own`: its address, by which the server knows it.
  explicit Client(int port, double timeout = 60, const char* own = "127.0.0.1") {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, own, &address.sin_addr);
    ::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    ::inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    timeval time{static_cast<time_t>(timeout), 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Client() { leave(); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  int descriptor() const { return socket_; }
  bool connected() const { return connected_; }
  void leave() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  bool send(const std::string& bytes) {
    return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
  }
  /// More bytes; empty at the end or after the timeout.
  std::string receive() {
    std::string bytes(65536, '\0');
    const ssize_t count = ::recv(socket_, bytes.data(), bytes.size(), 0);
    bytes.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return bytes;
  }
  std::string receive_until(const std::string& end) {
    while (buffer_.find(end) == std::string::npos && receive_more()) continue;
    const size_t at = buffer_.find(end);
    return take(at == std::string::npos ? buffer_.size() : at + end.size());
  }
  std::string receive_count(size_t count) {
    while (buffer_.size() < count && receive_more()) continue;
    return take(count);
  }

  /// `bodiless`: of a request HEAD.
  Response response(bool bodiless = false) {
    Response response;
    response.headers = receive_until("\r\n\r\n");
    if (response.headers.size() > 12) response.status = std::atoi(response.headers.c_str() + 9);
    const size_t length = response.headers.find("Content-Length: ");
    if (bodiless) return response;
    if (length != std::string::npos)
      response.body = receive_count(static_cast<size_t>(std::atoll(response.headers.c_str() + length + 16)));
    else if (response.headers.find("chunked") != std::string::npos)
      for (;;) {
        const auto size = std::strtoul(receive_until("\r\n").c_str(), nullptr, 16);
        response.body += receive_count(size);
        receive_until("\r\n");
        if (size == 0) break;
      }
    return response;
  }
  Response ask(const std::string& method, const std::string& path, const std::string& body = "",
               const std::string& headers = "") {
    const std::string host = headers.find("Host: ") == std::string::npos ? "Host: localhost\r\n" : "";
    send(method + " " + path + " HTTP/1.1\r\n" + host + headers +
         (body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n") + "\r\n" + body);
    return response(method == "HEAD");
  }

 private:
  bool receive_more() {
    const std::string more = receive();
    buffer_ += more;
    return !more.empty();
  }
  std::string take(size_t count) {
    const std::string text = buffer_.substr(0, count);
    buffer_.erase(0, count);
    return text;
  }

  int socket_ = -1;
  bool connected_ = false;
  std::string buffer_;
};

inline Response ask(int port, const std::string& method, const std::string& path, const std::string& body = "",
                    const std::string& headers = "") {
  return Client(port).ask(method, path, body, headers);
}
inline Response post(int port, const std::string& path, const nlohmann::json& body) {
  return ask(port, "POST", path, body.dump());
}

/// What a path of completions, embeddings or classes answers to the model aft-simple, unless the request has another.
inline Response complete(int port, nlohmann::json request, const std::string& path = "/v1/completions") {
  request.emplace("model", "aft-simple");
  return post(port, path, request);
}

/// The text of a stream of completions, and whether it ended as it should.
struct Streamed {
  std::string text, end;
  nlohmann::json usage;
  bool done = false;
};

inline Streamed streamed(const Response& response) {
  Streamed all;
  for (size_t begin = 0, end; (end = response.body.find("\n\n", begin)) != std::string::npos; begin = end + 2) {
    const std::string data = response.body.substr(begin + 6, end - begin - 6);
    if (data == "[DONE]") {
      all.done = true;
      continue;
    }
    const nlohmann::json chunk = nlohmann::json::parse(data);
    if (chunk.contains("usage")) all.usage = chunk["usage"];
    for (const auto& choice : chunk.value("choices", nlohmann::json::array())) {
      all.text += choice["text"].get<std::string>();
      if (choice["finish_reason"].is_string()) all.end = choice["finish_reason"];
    }
  }
  return all;
}

}  // namespace capstan::testing
