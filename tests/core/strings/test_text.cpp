// What every room does with short texts: base64, "did you mean", lists, beginnings and ends.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/strings/base64.hpp"
#include "core/strings/nearest.hpp"
#include "core/strings/strings.hpp"

namespace capstan {

TEST_CASE("base64 takes any bytes and gives them back") {
  CHECK(to_base64("") == "");
  CHECK(to_base64("f") == "Zg==");
  CHECK(to_base64("fo") == "Zm8=");
  CHECK(to_base64("foo") == "Zm9v");
  CHECK(to_base64("foobar") == "Zm9vYmFy");
  CHECK(to_base64("\xFF\xFE\xFD") == "//79");
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    CHECK(from_base64(to_base64(bytes)) == bytes);
    bytes.push_back(static_cast<char>(i * 37));
  }
  for (const char* text : {"Zg", "Zg=", "Zg==Zg==", "Zh==", "Z", "Zm9v\n", "Zm9*"})
    CHECK_THROWS_AS(from_base64(text), Error);
}

TEST_CASE("the nearest word") {
  struct NearCase {
    std::string word, nearest;
  };
  const std::vector<std::string> known{"width", "warmup_steps", "steps", "lr", "layers"};
  for (const auto& c : std::vector<NearCase>{{"widht", "width"},
                                             {"witdh", "width"},
                                             {"Width", "width"},
                                             {"warmup", "warmup_steps"},
                                             {"war", "warmup_steps"},
                                             {"wa", ""},
                                             {"step", "steps"},
                                             {"l", "lr"},
                                             {"rl", "lr"},
                                             {"dropout", ""},
                                             {"", ""},
                                             {std::string(10000, 'w'), ""}}) {
    INFO(c.word);
    CHECK(nearest(c.word, known) == c.nearest);
  }
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("ab", "ba") == 1);
}

TEST_CASE("lists in messages") {
  const std::vector<std::string> words{"a", "", "c"};
  CHECK(join(words) == "a, , c");
  CHECK(join(words, " and ") == "a and  and c");
  CHECK(join(std::vector<std::string>()).empty());
  CHECK(join(std::vector<int64_t>{2, -1, 3}) == "2, -1, 3");
  CHECK(join_first(words, "/") == "a//c");
  CHECK(join_first(std::vector<std::string>(20, "x"), "") == std::string(20, 'x'));
  CHECK(join_first(std::vector<std::string>(21, "x"), "") == std::string(20, 'x') + ", ... (21 in all)");
}

TEST_CASE("beginnings and ends") {
  CHECK(starts_with("step_10", "step_"));
  CHECK(starts_with("step_", "step_"));
  CHECK(starts_with("", ""));
  CHECK_FALSE(starts_with("ste", "step_"));
  CHECK(ends_with("a.csv", ".csv"));
  CHECK(ends_with(".csv", ".csv"));
  CHECK_FALSE(ends_with("csv", ".csv"));
  CHECK_FALSE(ends_with("a.csv.gz", ".csv"));
}

TEST_CASE("a text is an integer in full or not at all") {
  CHECK(parse_integer("-12") == -12);
  CHECK(parse_integer("9223372036854775807") == INT64_MAX);
  for (const char* const text : {"", "-", "+1", " 1", "1 ", "1.0", "9223372036854775808"})
    CHECK_FALSE(parse_integer(text).has_value());
}

}  // namespace capstan
