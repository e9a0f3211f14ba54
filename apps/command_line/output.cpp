// Puts a buffer in front of standard output that makes text printable on a terminal and remembers a write that failed.
// tests/cli/inputs/test_terminal.cpp.
#include "apps/command_line/output.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>

#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "core/strings/printable.hpp"
#include "run/training/clean_run.hpp"

namespace capstan {
namespace {

/// Hands printable text on to another buffer.
class PrintableBuffer final : public std::streambuf {
 public:
  explicit PrintableBuffer(std::streambuf& next) : next_(next) {}
  ~PrintableBuffer() override { pass_on(pieces_.finish()); }
  std::streambuf& next() const { return next_; }

 protected:
  int_type overflow(int_type c) override {
    const char text = traits_type::to_char_type(c);
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    return xsputn(&text, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    return pass_on(pieces_.push({text, static_cast<size_t>(size)})) ? size : 0;
  }
  int sync() override { return next_.pubsync(); }

 private:
  bool pass_on(const std::string& text) {
    const auto size = static_cast<std::streamsize>(text.size());
    return next_.sputn(text.data(), size) == size;
  }

  std::streambuf& next_;
  PrintablePieces pieces_;
};

/// Replaces the buffer of std::cout, which would otherwise forget that writing has failed.
std::streambuf* exchange_buffer(std::streambuf* buffer) {
  std::cout.flush();
  const std::ios::iostate state = std::cout.rdstate();
  std::streambuf* const before = std::cout.rdbuf(buffer);
  std::cout.setstate(state);
  return before;
}

}  // namespace

void flush_output() {
  if (!std::cout.flush())
    throw Error("cannot write to standard output: the disk may be full, or the reading program may have ended");
}

size_t output_columns() {
  if (isatty(STDOUT_FILENO) == 0) return 0;
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

PrintableOutput::PrintableOutput() {
  if (isatty(STDOUT_FILENO) == 0) return;
  printable_ = std::make_unique<PrintableBuffer>(*std::cout.rdbuf());
  before_ = exchange_buffer(printable_.get());
}

PrintableOutput::~PrintableOutput() {
  if (printable_) exchange_buffer(before_);
}

RawOutput::RawOutput() : before_(std::cout.rdbuf()) {
  if (const auto* const printable = dynamic_cast<const PrintableBuffer*>(before_)) exchange_buffer(&printable->next());
}

RawOutput::~RawOutput() { exchange_buffer(before_); }

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
