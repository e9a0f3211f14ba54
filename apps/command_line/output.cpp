// Puts a buffer in front of standard output that makes text printable on a terminal and remembers a write that failed.
// tests/cli/inputs/test_terminal.cpp.
#include "apps/command_line/output.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <iostream>
#include <string>

#include "core/base/error.hpp"
#include "core/strings/printable.hpp"

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

}  // namespace capstan
