// `capstan man` and `capstan completion`: the command line as a manual page and as a completion of Bash.
// tests/cli/test_pages.sh.
#include <algorithm>
#include <iostream>
#include <memory>

#include "apps/command_line/command_parser.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "run/setup/run_config.hpp"
#include "run/yaml/config.hpp"

namespace capstan {
namespace {

/// Every key that takes a value, once.
std::vector<std::string> settable_keys() {
  std::vector<std::string> keys;
  for (const TableRow& row : config_rows<RunConfig>())
    if (row.type.find("map") == std::string::npos) keys.push_back(settable_key(row.path));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

}  // namespace

void add_pages_commands(CommandParser& cli) {
  CommandParser* const man = cli.add_subcommand("man", "Print the manual page");
  man->footer("For example:  capstan man | man -l -");
  man->does([&cli] {
    std::cout << man_page(cli.text());
    return exit_done;
  });

  const auto shell = std::make_shared<std::string>();
  CommandParser* const completion =
      cli.add_subcommand("completion", "Print a script that completes command lines in Bash");
  completion->add_choice("shell", *shell, {"bash"}, "bash; zsh reads the same script after bashcompinit", "bash")
      ->required();
  completion->footer("For example:  . <(capstan completion bash)");
  completion->does([&cli, shell] {
    std::cout << bash_completion(cli.text(), settable_keys());
    return exit_done;
  });
}

}  // namespace capstan
