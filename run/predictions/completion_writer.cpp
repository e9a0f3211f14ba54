// Writing ends where nobody reads any more. tests/cli/runs/test_commands.cpp.
#include "run/predictions/completion_writer.hpp"

#include "core/io/log.hpp"

namespace capstan {

void print_completions(const SavedRun& run, const InputText& prompt, CompletionOptions options, std::ostream& out) {
  const std::string given = prompt.text + (facts_of(run.config.data).has_pairs ? "\t" : "");
  if (options.samples > 1) {
    bool first = true;
    options.on_piece = [&](int64_t, std::string_view) { return out.good(); };
    for (const Completion& completion : completions_of(run, prompt, options)) {
      out << (first ? "" : "---\n") << given << completion.text << std::endl;
      first = false;
    }
    return;
  }
  out << given;
  options.on_piece = [&](int64_t, std::string_view piece) { return (out << piece << std::flush).good(); };
  const Completion only = completions_of(run, prompt, options).front();
  out << std::endl;
  if (only.end == GenerateEnd::stop_token) log_info("the document ends here");
  if (only.end == GenerateEnd::window) log_info("stopped at the model's last position");
}

}  // namespace capstan
