// A connection's bytes, as the server reads them: HTTP within its limits, JSON, and the fields of each path.
#include "tests/fuzz/target.hpp"

#ifdef CAPSTAN_SERVE
#include <algorithm>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>

#include "core/io/json.hpp"
#include "serve/call.hpp"
#include "serve/http/request_parser.hpp"
#endif

namespace capstan::fuzz {
namespace {

#ifdef CAPSTAN_SERVE

/// What a socket gives: a few bytes at a time, then the end.
struct Trickle {
  std::string_view left;
  size_t piece;

  template <class Buffers>
  size_t read_some(const Buffers& buffers, boost::system::error_code& error) {
    const size_t count = std::min({left.size(), piece, boost::asio::buffer_size(buffers)});
    error = count == 0 ? boost::asio::error::eof : boost::system::error_code();
    return boost::asio::buffer_copy(buffers, boost::asio::buffer(take(left, count).data(), count));
  }
  template <class Buffers>
  size_t read_some(const Buffers& buffers) {
    boost::system::error_code error;
    return read_some(buffers, error);
  }
};

void read_completion(const nlohmann::json& body) {
  CompletionLimits limits;
  limits.texts = 4;
  const CompletionRequest request = completion_fields(body, 100, limits);
  const CompletionOptions& completion = request.job;
  require(request.texts() >= 1 && request.texts() <= limits.texts, "no more texts than are allowed");
  require(completion.max_tokens >= 0 && completion.max_tokens <= limits.new_tokens, "no more tokens than are allowed");
  require(completion.sampling.temperature >= 0 && completion.sampling.top_p <= 1, "knobs are within their limits");
  for (const CompletionRequest::Prompt& prompt : request.prompts)
    for (const int32_t token : prompt.tokens) require(token >= 0 && token < 100, "tokens are of the vocabulary");
}

void read_texts(const nlohmann::json& body) {
  CompletionLimits limits;
  limits.prompt_tokens = 16;
  const RequestFields fields(body, "model input explain user");
  fields.flag("explain", false);
  const std::vector<InputText> texts = input_texts(fields, limits, true);
  require(!texts.empty(), "there is a text");
  for (const InputText& text : texts) require(text.text.size() <= 128 && !text.columns.empty(), "texts are short");
}

void read_body(const HttpRequest& request) {
  require(percent_decoded(request.path).size() <= request.path.size(), "decoding makes nothing longer");
  const nlohmann::json body = body_of(request);
  if (request.path == "/v1/completions") read_completion(body);
  if (request.path == "/v1/classify") read_texts(body);
  if (request.path != "/detokenize") return;
  const RequestFields fields(body, "model tokens");
  if (const auto* const tokens = fields.find("tokens")) token_ids(*tokens, 100, fields, "tokens");
}

void read_request(std::string_view input) {
  namespace http = boost::beast::http;
  HttpLimits limits;
  limits.header_bytes = 256;
  limits.body_bytes = 512;
  const size_t piece = 1 + choose(input, 64);
  Trickle stream{input, piece};
  boost::beast::flat_buffer buffer(unparsed_bytes(limits));
  for (boost::system::error_code error; !error;) {  // requests follow each other
    RequestParser parser;
    set_limits(parser, limits);
    http::read_header(stream, buffer, parser, error);
    HttpRequest request;
    if (!error) {
      if (ambiguity_of(parser)) return;
      request = head_of(parser, "");
      require(request.path.find('?') == std::string::npos, "the path has no query");
      const auto& head = parser.get();
      require(head[http::field::transfer_encoding].empty() == !parser.chunked(), "a body that is coded has chunks");
      http::read(stream, buffer, parser, error);
    }
    if (error) {
      if (const auto refusal = refusal_of(error, limits))
        require(refusal->first == 400 || refusal->first == 413 || refusal->first == 431, "the status is a refusal");
      return;
    }
    request.body = std::move(parser.get().body());
    require(request.body.size() <= limits.body_bytes, "the body is within its limit");
    try {
      read_body(request);
    } catch (const ApiError& refused) {
      const HttpAnswer answer = error_answer(refused);
      require(answer.status == 400 && try_parse_json(answer.body).is_object(), "a refusal is an answer of JSON");
    } catch (const Error&) {
    }
  }
}

/// Changes the body and has the header say its size, which random changes rarely do.
std::string change_request(const std::string& input, size_t most, std::mt19937& random, const Change& change) {
  const size_t end = input.find("\r\n\r\n");
  std::string bytes = input;
  if (end == std::string::npos || random() % 3 == 0) {
    change(bytes, most);
    return bytes;
  }
  std::string body = input.substr(end + 4);
  change(body, most > end + 4 ? most - end - 4 : 0);
  bytes = input.substr(0, end + 4);
  constexpr std::string_view field = "Content-Length: ";
  if (const size_t at = bytes.find(field); at != std::string::npos)
    bytes.replace(at + field.size(), bytes.find('\r', at) - at - field.size(), std::to_string(body.size()));
  return bytes + body;
}

const Registered request_target("request", read_request, change_request);

#else

const Registered request_target("request", [](std::string_view) {});  // this build has no server

#endif

}  // namespace
}  // namespace capstan::fuzz
