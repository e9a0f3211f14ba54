// Standard output. What commands print quotes labels, names and keys from files. On a terminal it is made printable
// (core/strings/printable.hpp); in a pipe or a file it stays as it is, because other programs read it.
// tests/cli/inputs/test_terminal.cpp holds both.
#pragma once

#include <cstddef>
#include <memory>
#include <streambuf>

namespace capstan {

/// Throws Error when writing to standard output failed (a full disk).
void flush_output();

/// Columns of the terminal that standard output is; 0 if it is none, 80 if it does not say.
size_t output_columns();

/// While it lives, std::cout is printable if standard output is a terminal.
class PrintableOutput {
 public:
  PrintableOutput();
  ~PrintableOutput();
  PrintableOutput(const PrintableOutput&) = delete;
  PrintableOutput& operator=(const PrintableOutput&) = delete;

 private:
  std::unique_ptr<std::streambuf> printable_;  // null: not a terminal
  std::streambuf* before_ = nullptr;
};

/// While it lives, std::cout passes everything on, also on a terminal: for generated text.
class RawOutput {
 public:
  RawOutput();
  ~RawOutput();
  RawOutput(const RawOutput&) = delete;
  RawOutput& operator=(const RawOutput&) = delete;

 private:
  std::streambuf* before_;
};

}  // namespace capstan
