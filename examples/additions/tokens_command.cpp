#include <iostream>

#include "apps/command_line/command_parser.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/text_options.hpp"
#include "core/base/error.hpp"
#include "core/strings/join.hpp"

namespace capstan {
namespace {

struct TokensOptions {
  std::string run;
  TextInputOptions input;
};

int tokens(const TokensOptions& options) {
  const Run run = Run::open(options.run);
  TextInput input = open_texts(run, options.input, "capstan tokens " + options.run);
  for_each_batch(input, 256, [&](const std::vector<InputText>& texts) {
    for (const InputText& text : texts)
      std::cout << join(run.saved().tokenizer->encode(text.text, text.place), " ") << '\n';
  });
  return exit_done;
}

}  // namespace

void add_tokens_command(CommandParser& cli) {
  const auto [command, options] =
      cli.add_subcommand<TokensOptions>("tokens", "Print the ids of each text's tokens", tokens);
  add_text_options(command, options.run, options.input);
}

}  // namespace capstan
