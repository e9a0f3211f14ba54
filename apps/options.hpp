// Options that several subcommands share.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace capstan {

struct ConfigOptions {
  std::vector<std::string> files, overrides;
};
/// --config FILE... and --set KEY=VALUE...
void add_config_options(CLI::App& command, ConfigOptions& options);

/// One line about this process: threads, instruction set, BLAS; and a warning where the machine can do more than its BLAS.
std::vector<std::string> machine_lines();

}  // namespace capstan
