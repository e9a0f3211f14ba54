// Chooses the commands by what the model predicts and which data the run has. tests/cli/test_first_steps.sh.
#include "apps/command_line/next_commands.hpp"

#include "core/io/file.hpp"
#include "core/io/log.hpp"
#include "core/strings/printable.hpp"
#include "core/strings/quantities.hpp"

namespace capstan {

std::string disk_line(const std::string& folder) {
  return fmt::format("{}: {} on disk", folder, bytes_text(static_cast<double>(bytes_below(folder))));
}

void say_next(const std::string& where, const std::string& first, const std::string& second) {
  log_info(where);
  log_info(fmt::format("next: {}, or {}", first, second));
}

void say_next(const RunConfig& config, const std::string& folder) {
  const std::string run = shell_word(folder);
  const bool generates = facts_of(config.model).predicts == Predicts::next_token && !facts_of(config.data).has_pairs;
  bool tests = false;
  for (const SourceFiles& files : facts_of(config.data).files)
    tests = tests || (files.key == std::string("test") && !files.paths.empty());
  say_next(
      disk_line(folder),
      generates ? fmt::format("capstan generate {} --prompt TEXT", run) : fmt::format("capstan predict {} FILE", run),
      tests ? fmt::format("capstan eval {} --split test", run)
            : fmt::format("capstan report {} --output report.html", run));
}

}  // namespace capstan
