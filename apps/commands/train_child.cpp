#include "apps/commands/train_child.hpp"

#include <filesystem>

#include "apps/command_line/command.hpp"

namespace capstan {

int exit_code_of(const TrainResult& result) { return result.interrupted ? exit_interrupted : exit_done; }

Ending train_in_child(const RunConfig& config, const TrainRunOptions& options, const std::function<bool()>& stop) {
  const auto train = [&] {
    return run_command([&] {
      Communicator alone;
      return exit_code_of(train_run(config, options, alone));
    });
  };
  return run_in_child(train, (std::filesystem::path(config.folder) / config.name).string(), stop);
}

}  // namespace capstan
