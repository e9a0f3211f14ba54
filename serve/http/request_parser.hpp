// What the bytes of a client are, without a connection: for connection.cpp, and for tests/fuzz/fuzz_request.cpp, which
// holds that any bytes are either a request or refused. Includes Boost.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "serve/http/http_message.hpp"

namespace capstan {

using RequestParser = boost::beast::http::request_parser<boost::beast::http::string_body>;

/// How many bytes a connection holds at most that are not parsed yet.
constexpr size_t unparsed_bytes(const HttpLimits& limits) { return limits.header_bytes + (64 << 10); }

inline void set_limits(RequestParser& parser, const HttpLimits& limits) {
  parser.header_limit(static_cast<std::uint32_t>(limits.header_bytes));
  parser.body_limit(limits.body_bytes);
}

/// The request, without its body. The host of an absolute address counts, whatever the header Host says (RFC 9112).
inline HttpRequest head_of(const RequestParser& parser, const std::string& client) {
  namespace http = boost::beast::http;
  constexpr boost::beast::string_view scheme = "http://";
  const auto& head = parser.get();
  const auto field = [&](http::field name) { return std::string(head[name]); };
  std::string target(head.target()), host = field(http::field::host);
  if (boost::beast::iequals(target.substr(0, scheme.size()), scheme)) {
    const size_t end = std::min(target.find_first_of("/?", scheme.size()), target.size());
    host = target.substr(scheme.size(), end - scheme.size());
    target = end < target.size() ? target.substr(end) : "/";
  }
  return {std::string(head.method_string()),
          target.substr(0, target.find('?')),
          "",
          field(http::field::authorization),
          field(http::field::origin),
          host,
          client};
}

/// Why a head is refused about whose end, or whose host, another program in front of the server might have another
/// opinion: what one takes for a body, the other would take for a request. None for a head that is clear.
inline std::optional<std::string> ambiguity_of(const RequestParser& parser) {
  namespace http = boost::beast::http;
  const auto& head = parser.get();
  const auto count = [&](http::field name) {
    const auto [begin, end] = head.equal_range(name);
    return std::distance(begin, end);
  };
  const auto encodings = count(http::field::transfer_encoding);
  if (encodings > 1 || (encodings == 1 && !boost::beast::iequals(head[http::field::transfer_encoding], "chunked")))
    return "Transfer-Encoding: only chunked is known";
  if (encodings == 1 && head.version() < 11) return "Transfer-Encoding: HTTP/1.0 does not have it";
  if (count(http::field::content_length) + encodings > 1)
    return "the length of the body is given more than once: leave out one of Content-Length and Transfer-Encoding";
  const auto length = head[http::field::content_length];
  if (length.find_first_not_of("0123456789") != length.npos) return "Content-Length: it is no number";
  if (head.method() != http::verb::post && (parser.chunked() || parser.content_length().value_or(0) > 0))
    return "only POST takes a body";
  if (count(http::field::host) > 1) return "Host: it is given more than once";
  if (count(http::field::host) == 0 && head.version() >= 11) return "Host: it is missing";
  return {};
}

/// The status and the reason of the answer to what is no request; none where the client has left or was too slow.
inline std::optional<std::pair<int, std::string>> refusal_of(const boost::beast::error_code& error,
                                                             const HttpLimits& limits) {
  namespace http = boost::beast::http;
  if (error == http::error::body_limit)
    return {{413, fmt::format("the body has more than {} bytes", limits.body_bytes)}};
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return {{431, fmt::format("the headers have more than {} bytes", limits.header_bytes)}};
  if (error.category() != http::make_error_code(http::error::bad_method).category() ||
      error == http::error::end_of_stream || error == http::error::partial_message)
    return {};
  return {{400, "this is no HTTP request: " + error.message()}};
}

}  // namespace capstan
