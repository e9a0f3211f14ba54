#include "apps/command_line/command_text.hpp"

namespace capstan {

std::vector<const CommandText*> all_commands(const CommandText& root) {
  std::vector<const CommandText*> all{&root};
  for (const CommandText& command : root.commands)
    for (const CommandText* const below : all_commands(command)) all.push_back(below);
  return all;
}

}  // namespace capstan
