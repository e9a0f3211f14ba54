// capstan slim: a small copy of a run, for prediction alone. tests/cli/runs/test_slim.cpp.
#include <iostream>

#include "apps/command_line/next_commands.hpp"
#include "apps/command_line/options.hpp"
#include "apps/commands/commands.hpp"
#include "core/strings/printable.hpp"
#include "core/strings/quantities.hpp"
#include "core/strings/strings.hpp"
#include "run/setup/run_config.hpp"
#include "run/training/slim_run.hpp"

namespace capstan {
namespace {

struct SlimCommandOptions {
  std::string run, output;  // the run to copy, the new run folder
  double size = default_slim_size;
};

int slim(const SlimCommandOptions& given) {
  const SlimRun result = slim_run(given.run, given.output, given.size);
  const auto amount = [](int64_t bytes) { return bytes_text(static_cast<double>(bytes)); };
  std::cout << fmt::format("{}: {} of weights in place of {}", given.output, amount(result.bytes),
                           amount(result.bytes_before));
  if (result.ngrams_before > 0) std::cout << fmt::format("; {} of {} n-grams", result.ngrams, result.ngrams_before);
  std::cout << '\n';
  say_next("for prediction alone: it cannot be trained further; capstan eval shows what the size costs",
           fmt::format("{} {}", facts_of(load_run_config(given.output).model).command, shell_word(given.output)),
           fmt::format("capstan verify {}", shell_word(given.output)));
  return exit_done;
}

}  // namespace

void add_slim_command(CLI::App& program) {
  const auto [command, options] =
      add_command(program, "slim", "Write a small copy of a run, for prediction alone", slim);
  add_run(command, options.run);
  add_output(command, options.output, "FOLDER", "the new run folder")->required();
  add_number(command, "--size", options.size, between(0, 1),
             "of linear classifiers: at most this share of the bytes of the run's weights");
  command.footer(
      R"(A linear classifier keeps the n-grams that decide most, with 8 bits per weight. Other models keep all weights,
matrices in bf16.
For example:  capstan slim runs/classify --output runs/classify-slim
              capstan eval runs/classify-slim --split test)");
}

}  // namespace capstan
