// capstan tokens: the ids of each text's tokens, a line for each text.
#include <iostream>

#include "apps/command_line/output.hpp"
#include "apps/command_line/text_options.hpp"
#include "apps/commands/commands.hpp"
#include "core/base/error.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

int tokens(const TextOptions& options) {
  const Run run = Run::open(options.run, options.overrides);
  TextInput input = open_texts(run, options, "capstan tokens");
  for_each_batch(input, 256, [&](const std::vector<InputText>& texts) {
    for (const InputText& text : texts) std::cout << join(run.tokenizer->encode(text.text, text.place), " ") << '\n';
    flush_output();
  });
  return exit_done;
}

}  // namespace

void add_tokens_command(CLI::App& program) {
  const auto [command, options] = add_command(program, "tokens", "Print the ids of each text's tokens", tokens);
  add_text_options(command, options);
}

}  // namespace capstan
