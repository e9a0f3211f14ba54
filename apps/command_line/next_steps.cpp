#include "apps/command_line/next_steps.hpp"

#include "core/io/log.hpp"
#include "core/strings/printable.hpp"
#include "run/training/clean_run.hpp"

namespace capstan {

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
  const std::string second =
      fmt::format(fmt::runtime(tests ? "capstan eval {} --split test" : "capstan report {} --output report.html"), run);
  say_next(disk_line(folder),
           fmt::format(fmt::runtime(generates ? "capstan generate {} --prompt TEXT" : "capstan predict {} FILE"), run),
           second);
}

}  // namespace capstan
