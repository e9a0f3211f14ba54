#include "core/io/json.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/texts.hpp"

using namespace capstan;

namespace {

std::string error_of_json(const std::string& text, const JsonRule& rule = {}) {
  return message_of<JsonError>([&] { parse_json(text, rule); });
}

}  // namespace

TEST_CASE("JSON is read as nlohmann/json reads it") {
  for (const char* text : {R"({"a": [1, -2, 3.5, true, null, "é\n"], "b": {"c": []}})", "17", "18446744073709551615",
                           "\"text\"", "[[[[]]]]", " { } "}) {
    CHECK(parse_json(text) == nlohmann::json::parse(text));
    CHECK(try_parse_json(text) == nlohmann::json::parse(text));
  }
  CHECK(try_parse_json("[1,").is_discarded());
  CHECK(try_parse_json(std::string_view("[1]\0", 4)).is_discarded());
}

TEST_CASE("what is no JSON is named with file, line and column") {
  struct Case {
    std::string text, place, what;
  };
  for (const Case& c : {Case{"{\"a\": 1,\n \"b\" 2}", "file:8:6: ", "syntax error"},
                        Case{"", "file:7:1: ", "syntax error"}, Case{"[1, 1e400]", "file:7:9: ", "number overflow"},
                        Case{"\"\xff\"", "file:7:2: ", "invalid string"}, Case{"[1] 2", "file:7:5: ", "syntax error"},
                        Case{std::string("[1]\n\0garbage", 12), "file:8:1: ", "a NUL byte"},
                        Case{std::string("[1, \0 2]", 8), "file:7:5: ", "a NUL byte"},
                        Case{std::string("[1]\0", 4), "file:7:4: ", "a NUL byte"}}) {
    const std::string error = error_of_json(c.text, {"file", 7});
    CHECK_MESSAGE(error.find(c.place + "not JSON: ") == 0, error);
    CHECK_MESSAGE(error.find(c.what) != std::string::npos, error);
  }
  CHECK(error_of_json("\"" + std::string(1 << 20, 'x')).size() < 300);
}

TEST_CASE("JSON of any depth costs no stack: what is too deep is refused at its bracket") {
  const std::string lists(80000, '['), in_text = "[\"[[[\\\"[\", " + std::string(99, '[');
  CHECK(error_of_json(lists).find("JSON:1:101: not JSON that can be read: nested deeper than 100 levels") == 0);
  CHECK(error_of_json(lists + std::string(80000, ']')).find("JSON:1:101: ") == 0);
  std::string objects;
  for (int i = 0; i < 80000; ++i) objects += "{\"a\":\n";
  CHECK(error_of_json(objects).find("JSON:101:1: ") == 0);
  CHECK(error_of_json(in_text).find("syntax error") != std::string::npos);
  CHECK(error_of_json(in_text + "[").find("nested deeper") != std::string::npos);
  CHECK(try_parse_json(lists).is_discarded());
  const std::string allowed = std::string(100, '[') + std::string(100, ']');
  CHECK(json_text(parse_json(allowed)) == allowed);
  CHECK(error_of_json("[[1]]", {"file", 1, 1}).find("file:1:2: ") == 0);
}

TEST_CASE("a key that occurs twice in an object is refused, for none of its values may be meant") {
  const char* const text = "{\"a\": 1, \"b\": {\"a\": 1}, \"a\": 2}";
  CHECK(error_of_json(text, {"file", 3}) == "file:3:1: the key \"a\" occurs twice in one object");
  CHECK(try_parse_json(text).is_discarded());
  CHECK(error_of_json("{\"a\": {\"a\": 1}}") == "no error");
}

TEST_CASE("numbers of JSON become integers only where that is exact") {
  const auto number = [](const char* text) { return whole_number(parse_json(text), -5, int64_t{1} << 62); };
  CHECK(number("-5") == -5);
  CHECK(number("4611686018427387904") == int64_t{1} << 62);
  for (const char* text :
       {"-6", "4611686018427387905", "18446744073709551615", "1e300", "-1e300", "1.0", "\"1\"", "null", "[]"})
    CHECK_MESSAGE(number(text) == std::nullopt, text);
  const nlohmann::json object = parse_json("{\"a\": 1e300}");
  CHECK_THROWS_WITH_AS(whole_number_at(object, "a", 0, 9), "a must be a whole number from 0 to 9, found 1e+300",
                       JsonError);
  CHECK_THROWS_WITH_AS(whole_number_at(object, "b", 0, 9), "the key b is missing", JsonError);
  CHECK_THROWS_AS(whole_number_at(parse_json("[]"), "b", 0, 9), JsonError);
}

TEST_CASE("an excerpt of a value is short") {
  CHECK(json_excerpt(parse_json("[1, 2]")) == "a list of 2");
  CHECK(json_excerpt(parse_json("{}")) == "an empty object");
  CHECK(json_excerpt(parse_json("1.5")) == "1.5");
  CHECK(json_excerpt("a\nb") == "\"a\\nb\"");
  const std::string text = json_excerpt(std::string(59, 'x') + "\u00e9\u00e9\u00e9");
  CHECK(text == "\"" + std::string(59, 'x') + "...\"");
}

TEST_CASE("a text that is not UTF-8 is refused with its bytes when it is written") {
  for (const nlohmann::json& value :
       {nlohmann::json("caf\xe9"), nlohmann::json{{"a", {1, "caf\xe9"}}}, nlohmann::json{{"b", 1}, {"caf\xe9", 2}}})
    CHECK(contains(message_of<Error>([&] { json_text(value); }), "cannot hold \"caf\\xe9\", which is not valid UTF-8"));
  CHECK(json_text({{"caf\xc3\xa9", 1}}) == "{\"caf\xc3\xa9\":1}");
}
