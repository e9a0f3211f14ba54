#include "apps/commands.hpp"

int main(int argc, char** argv) { return capstan::run_command_line(argc, argv); }
