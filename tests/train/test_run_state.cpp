// state.json that is damaged, or made up.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/hash.hpp"
#include "core/io/json.hpp"
#include "tests/support/texts.hpp"
#include "train/checkpoints/run_state.hpp"
#include "train/loop/run_length.hpp"

using namespace capstan;

namespace {

std::string error_of_state(const std::string& text) {
  return message_of<Error>([&] { run_state_from_json(text, "run/state.json"); });
}

}  // namespace

TEST_CASE("numbers in state.json that a run cannot have are refused, though the checksum is right") {
  RunState state;
  state.step = 12;
  state.seed = ~uint64_t{0};
  const std::string good = to_json(state);
  CHECK(to_json(run_state_from_json(good, "x")) == good);
  const auto with = [&](const std::string& step, const std::string& seed) {
    nlohmann::json changed = nlohmann::json::parse(good)["state"];
    changed["seed"] = nlohmann::json::parse(seed);
    changed["step"] = nlohmann::json::parse(step);
    const std::string content = json_text(changed);
    return "{\"state\":" + content + ",\"xxh3_128\":\"" + hash_hex(content) + "\"}";
  };
  CHECK(error_of_state(with("12", "7")) == "no error");
  for (const char* step : {"1e+300", "-2", "18446744073709551615", "1.5", "null", "[]"})
    CHECK_MESSAGE(error_of_state(with(step, "7")).find("run/state.json: the file is damaged") == 0, step);
  for (const char* seed : {"1e+300", "-1", "\"7\""})
    CHECK_MESSAGE(error_of_state(with("12", seed)).find("run/state.json: the file is damaged") == 0, seed);
}

TEST_CASE("the state of another version is refused as such; without a number it is of an old one") {
  const auto in_format = [](const std::string& format) {
    const std::string good = to_json(RunState{});
    nlohmann::json file = nlohmann::json::parse(good);
    CHECK(file["state"]["format"] == run_format);
    if (format.empty())
      file["state"].erase("format");
    else
      file["state"]["format"] = nlohmann::json::parse(format);
    file["xxh3_128"] = hash_hex(json_text(file["state"]));
    return file.dump();
  };
  for (const std::string& format : {std::string(), std::string("1"), std::to_string(run_format - 1)}) {
    CHECK(error_of_state(in_format(format)).find("run/state.json: Capstan 0.3 or older made this run") == 0);
    CHECK_THROWS_AS(run_state_from_json(in_format(format), "x"), NewerFile);
  }
  CHECK_THROWS_AS(run_state_from_json(in_format(std::to_string(run_format + 1)), "x"), NewerFile);
  for (const char* const odd : {"0", "-1", "1.5", "\"2\""})
    CHECK(error_of_state(in_format(odd)).find("run/state.json: the file is damaged") == 0);
}

TEST_CASE("state.json nested without end is refused, with its place") {
  const std::string error = error_of_state("{\"state\":\n" + std::string(80000, '['));
  CHECK_MESSAGE(error.find("run/state.json:2:100: ") != std::string::npos, error);
}

TEST_CASE(
    "a run has ended when a limit is reached and its last step validated, where there is something to validate it "
    "with") {
  TrainConfig config;
  config.steps = 5;
  RunState state;
  state.step = 5;
  state.validates = true;
  state.validated_step = 4;
  CHECK_FALSE(has_ended(config, state));
  state.validated_step = -1;
  CHECK_FALSE(has_ended(config, state));
  CHECK_FALSE(has_ended(config, run_state_from_json(to_json(state), "state.json")));
  state.validated_step = 5;
  CHECK(has_ended(config, state));
  state.validates = false;
  state.validated_step = -1;
  CHECK(has_ended(config, state));
  state.step = 4;
  CHECK_FALSE(has_ended(config, state));
}
