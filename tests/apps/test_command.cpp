// What a command that fails says, and its exit code.
#include "apps/command_line/command.hpp"

#include <doctest/doctest.h>
#include <system_error>

#include "core/base/error.hpp"
#include "core/io/log.hpp"

namespace capstan {
namespace {

/// The exit code, a blank and what went to the log.
std::string outcome_of(const Command& command) {
  std::string text;
  set_log_sink([&](LogLevel, std::string_view message) { text += std::string(message) + "\n"; });
  const int code = run_command(command);
  set_log_sink({});
  return std::to_string(code) + " " + text;
}

TEST_CASE("exceptions become exit codes and messages") {
  CHECK(outcome_of([] { return 75; }) == "75 ");
  CHECK(outcome_of([]() -> int { throw ConfigError("key: wrong"); }) == "2 key: wrong\n");
  CHECK(outcome_of([]() -> int { throw Error("file: wrong"); }) == "1 file: wrong\n");
  const auto refused = [](std::errc reason) {
    return outcome_of([reason]() -> int { throw std::system_error(std::make_error_code(reason)); });
  };
  CHECK(refused(std::errc::resource_unavailable_try_again) ==
        "1 no further thread could be started: raise ulimit -v (memory) or ulimit -u (processes and threads), or lower "
        "the key threads\n");
  CHECK(refused(std::errc::operation_not_permitted) == "1 Operation not permitted\n");
}

}  // namespace
}  // namespace capstan
