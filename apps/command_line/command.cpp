// Runs a subcommand and turns what it throws into a message, with remedies, and an exit code, which scripts and sweeps
// rely on. tests/apps/test_command.cpp.
#include "apps/command_line/command.hpp"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "apps/command_line/output.hpp"
#include "core/base/error.hpp"
#include "core/base/out_of_memory.hpp"
#include "core/io/file.hpp"
#include "core/io/log.hpp"
#include "train/ranks/launch.hpp"

namespace capstan {
namespace {

/// The error in the words of core/io/file.hpp: the message of std::filesystem would name a function of C++.
std::string describe(const std::filesystem::filesystem_error& error) {
  try {
    throw_file_error("read", error.path1().string(), error.code().value());
  } catch (const Error& described) {
    return described.what();
  }
}

/// Writes how much memory was wanted, and the remedies, without taking memory for it.
void log_out_of_memory(const std::bad_alloc& error) noexcept {
  const char* const what = dynamic_cast<const OutOfMemory*>(&error) != nullptr ? error.what() : "out of memory";
  const bool has_remedy = std::strchr(what, ':') != nullptr;
  for (const char* const part :
       {"error: ", what,
        has_remedy ? "\n" : ": lower train.batch_size, or set train.micro_batch_tokens or model.recompute\n"})
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) return;
}

/// Describes errors of std::thread.
std::string describe(const std::system_error& error) {
  if (error.code() != std::errc::resource_unavailable_try_again) return error.what();
  return "no further thread could be started: raise ulimit -v (memory) or ulimit -u (processes and threads), or lower "
         "the key threads";
}

/// Throws ConfigError when several processes were started for a command without --mpi: each would do all of the work.
void refuse_ranks(const CLI::App& command) {
  if (command.get_option_no_throw("--mpi") != nullptr) return;
  std::string name = command.get_name();
  for (const CLI::App* above = command.get_parent(); above != nullptr; above = above->get_parent())
    name = above->get_name() + " " + name;
  if (const auto launch = find_launch(); launch && launch->processes > 1)
    throw ConfigError(fmt::format("{} does not share out its work: start it once, not as {} processes ({})", name,
                                  launch->processes, launch->told_by));
}

}  // namespace

void runs(CLI::App& command, const Command& body) {
  command.callback([&command, body] {
    refuse_ranks(command);
    if (const int code = body(); code != exit_done) throw CLI::RuntimeError(code);
  });
}

int report_failures(const std::vector<std::string>& failed) {
  for (const std::string& failure : failed) log_error(fmt::format("failed: {}", failure));
  return failed.empty() ? exit_done : exit_failed;
}

int run_command(const Command& command, const std::function<void()>& before_message) {
  const auto failed = [&](std::string_view message, int code) {
    if (before_message) before_message();
    log_error(message);
    return code;
  };
  const auto out_of_memory = [&](const std::bad_alloc& error) {
    if (before_message) before_message();
    log_out_of_memory(error);
    return exit_failed;
  };
  try {
    const int code = command();
    flush_output();
    return code;
  } catch (const ConfigError& error) {
    return failed(error.what(), exit_wrong_usage);
  } catch (const std::bad_alloc& error) {
    return out_of_memory(error);
  } catch (const std::length_error&) {  // a container was asked for more than any memory has
    return out_of_memory(std::bad_alloc());
  } catch (const std::filesystem::filesystem_error& error) {
    return failed(describe(error), exit_failed);
  } catch (const std::system_error& error) {
    return failed(describe(error), exit_failed);
  } catch (const std::exception& error) {
    return failed(error.what(), exit_failed);
  }
}

}  // namespace capstan
