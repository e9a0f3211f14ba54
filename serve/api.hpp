// Requests and answers in the format of OpenAI's API: the fields of a request, errors, and JSON. All routes use it.
// tests/serve/test_endpoints.cpp holds every refusal, tests/fuzz/fuzz_request.cpp that no request does harm.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "serve/http/http.hpp"

namespace capstan {

/// The most bytes of an answer: what could be larger is refused before it is computed.
constexpr int64_t max_answer_bytes = 64 << 20;

/// A request that is refused.
class ApiError : public Error {
 public:
  ApiError(int status, const std::string& message, std::string param = "")
      : Error(message), status_(status), param_(std::move(param)) {}
  int status() const { return status_; }
  const std::string& param() const { return param_; }

 private:
  int status_;
  std::string param_;  // the field that is wrong; empty: none
};

/// {"error": {"message", "type", "param", "code"}}
nlohmann::ordered_json error_json(const std::exception& error);
HttpAnswer error_answer(const std::exception& error);
/// The HTTP status of any error: an ApiError has its own; 400 for a text that cannot be used and for options that the
/// model does not have; 500 for all others, such as a file that is gone, a full disk or weights that are damaged.
int status_of(const std::exception& error);
/// Runs `read`, which only looks at what the client sent: an Error that it throws is ApiError 400.
template <class Read>
auto read_from_client(const Read& read) {
  try {
    return read();
  } catch (const ApiError&) {
    throw;
  } catch (const Error& error) {
    throw ApiError(400, error.what());
  }
}
HttpAnswer json_answer(const nlohmann::ordered_json& value);

/// The fields of a JSON object, each checked when it is asked for; null is the same as none. All functions throw
/// ApiError 400, naming the field.
class RequestFields {
 public:
  /// `known`: names between blanks; other fields are refused. `path`: what names in messages begin with. The object
  /// must outlive this.
  RequestFields(const nlohmann::json& object, std::string_view known, std::string path = "");

  // `otherwise`: what is returned where the object has no such field; numbers must be in [low, high].
  const nlohmann::json* find(const char* name) const;
  int64_t whole(const char* name, int64_t otherwise, int64_t low, int64_t high) const;
  double number(const char* name, double otherwise, double low, double high) const;
  bool flag(const char* name, bool otherwise) const;
  std::string text(const char* name, const std::string& otherwise) const;
  /// The texts of a field that is a text or a list of at most `most` texts; none without the field.
  std::vector<std::string> texts(const char* name, size_t most) const;
  /// For what the server does not have: the field must be absent, 0 or empty.
  void neutral(const char* name) const;
  [[noreturn]] void refuse(const char* name, const std::string& why) const;

 private:
  /// The value that `read_value` makes of a field; refuses one of which it makes none, as not `expected`.
  template <class T, class Read>
  T read(const char* name, const T& otherwise, const std::string& expected, const Read& read_value) const;

  const nlohmann::json& object_;
  std::string path_;
};

/// A list of token ids below `vocabulary`.
std::vector<int32_t> token_ids(const nlohmann::json& list, int64_t vocabulary, const RequestFields& fields,
                               const char* name);
/// A part of an address with its percent codes replaced: = for %3D.
std::string percent_decoded(std::string_view part);
/// Is a name one of 1 to 128 letters, digits, points, hyphens and underscores?
bool is_plain_name(const std::string& name);

}  // namespace capstan
