#include "apps/commands.hpp"
#include "core/machine.hpp"

int main(int argc, char** argv) {
  capstan::restart_with_best_settings(argv);
  return capstan::run_command_line(argc, argv);
}
