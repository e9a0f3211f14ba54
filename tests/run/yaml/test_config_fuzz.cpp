// Damaged configuration text: whatever it is, it is read or refused with a ConfigError, without a crash or a hang.
#include <doctest/doctest.h>

#include <random>

#include "sample_config.hpp"
#include "tests/support/damage.hpp"

using namespace capstan;
using namespace capstan::sample;

namespace {

const std::string valid_text =
    "# a run\n"
    "name: \"my run\"\n"
    "data:\n"
    "  train: &files [a.txt, 'b c.txt']\n"
    "  betas: [0.9, 1e-3]\n"
    "  valid: |\n"
    "    held-out.txt\n"
    "model:\n"
    "  width: 128\n"
    "  mixer: {type: local, window: 7}\n"
    "  layers:\n"
    "    - mixer: &m\n"
    "        type: conv\n"
    "        kernel: 3\n"
    "      scale: 2\n"
    "    - {mixer: *m}\n"
    "train:\n"
    "  lr: 0.1\n"
    "  ema: true\n"
    "  steps: 20\n";

enum class Outcome { read, refused };

/// Any other exception ends the test.
Outcome outcome_of(const std::string& text) {
  try {
    load_config_text<Run>(text, "fuzz");
    return Outcome::read;
  } catch (const ConfigError& error) {
    REQUIRE(std::string(error.what()).size() > 4);
    return Outcome::refused;
  }
}

const std::string telling =
    "{}[]:,#&*!|>'\"%@`?-~<\n\t \\\xFF\xC3\x01"
    "09aeE.=";

}  // namespace

TEST_CASE("a damaged text is read or refused") {
  REQUIRE(outcome_of(valid_text) == Outcome::read);
  std::mt19937 random(20261121);
  int read = 0, refused = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string text = damaged(valid_text, random, telling);
    INFO(text);
    (outcome_of(text) == Outcome::read ? read : refused)++;
  }
  CHECK(read > 100);  // the damage is not always fatal, so both paths are tried
  CHECK(refused > 1000);
}

TEST_CASE("a damaged override is read or refused") {
  std::mt19937 random(7);
  for (int i = 0; i < 5000; ++i) {
    const std::string override = damaged("model.layers.0.mixer={type: local, window: 3}", random, telling);
    INFO(override);
    CHECK_NOTHROW(error_of([&] { load_config<Run>({}, {override}); }));  // error_of() lets only a ConfigError pass
  }
}

TEST_CASE("long monotonous texts are refused without delay") {
  for (const std::string piece : {"[",       "{",   "- ",  "? ",    "a: ",    "&a ",   "*a ", "!a ",  "'",
                                  "\"",      "|\n", "a\n", "\n",    "a: b\n", "---\n", "[],", "{a: ", "[a, ",
                                  "a: &x [", "# ",  " ",   "...\n", "%a\n",   ",",     ":",   "\\",   "- - a\n"}) {
    INFO(piece);
    std::string text = "x: ", bare;
    while (text.size() < 100'000) text += piece, bare += piece;
    CHECK(outcome_of(text) == Outcome::refused);
    CHECK(outcome_of(bare) == Outcome::refused);
  }
}
