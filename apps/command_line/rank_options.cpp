// Opens the ranks that mpirun or srun has started, and decides which of them reports an error.
// tests/cli/training/test_ranks.cpp.
#include "apps/command_line/rank_options.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "apps/command_line/command.hpp"
#include "apps/command_line/options.hpp"
#include "core/io/log.hpp"

namespace capstan {

void add_rank_options(CLI::App& command, RankOptions& options) {
  command.add_flag("--mpi", options.mpi,
                   "run as one of several processes by MPI; without it, when started by mpirun or srun");
  add_number(command, "--rank-timeout", options.timeout, between(1, 1e6),
             "with several processes: seconds without a message after which another process counts as lost; ten times "
             "the longest step if that is more");
}

int run_on_ranks(const RankOptions& options, const std::function<int(Communicator& ranks)>& body) {
  const std::unique_ptr<Communicator> ranks = open_ranks(options);
  if (ranks->size() == 1) return body(*ranks);
  if (!ranks->first())
    set_log_sink([name = ranks->name_of(ranks->rank())](LogLevel level, std::string_view message) {
      if (level == LogLevel::error) log_to_stderr(level, fmt::format("{}: {}", name, message));
    });
  // Of an error that all ranks have, only the lowest rank's message is to be seen: it waits least, and ends the others
  // when it has written.
  const auto wait_turn = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(300 * ranks->rank(), 3000)));
  };
  const int code = run_command([&] { return body(*ranks); }, wait_turn);
  if (code != exit_done && code != exit_interrupted) ranks->abort(code);
  return code;
}

}  // namespace capstan
