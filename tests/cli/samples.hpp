// Small inputs and runs: a language model and a classifier that train within a fraction of a second.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/cli/program.hpp"

namespace capstan::testing {

/// Writes text/a.txt, text/b.txt, train.tsv, lm.yaml and classifier.yaml.
void write_samples(const Workplace& place);

/// The same, with the trained runs runs/lm and runs/classifier, each with the checkpoints of steps 4 and 6.
void write_trained_samples(const Workplace& place);

/// One wrong input and what must come of it.
struct Refusal {
  std::string name;
  std::function<void(const Workplace&)> prepare;  // may be empty
  std::vector<std::string> arguments;
  int code;
  std::vector<std::string> says;  // on standard error: place and remedy
  std::string input = "";
};

/// Runs a row in `place` and checks exit code, message and decency. Returns what was printed.
Outcome check_refused(const Workplace& place, const Refusal& row);

/// Runs what must end well, and checks that it does.
Outcome succeed(const Workplace& place, const std::vector<std::string>& arguments, const std::string& input = "");

/// The number behind "name " at the beginning of a line; NAN when there is none.
double number_of(const std::string& text, const std::string& name);

/// Copies files and folders, links included.
void copy_files(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace capstan::testing
