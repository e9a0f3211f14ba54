// What every source of data knows of them once they are read, besides the examples or tokens.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/checks/report.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

struct SourceContent {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<std::string> classes;   // names, by label; none without labels
  std::vector<std::string> unseen;    // of classes that only the test data have, whose labels follow those of `classes`
  std::vector<std::string> left_out;  // what cannot be used or counts as wrong, a line for the log each
  std::vector<DataWarning> warnings;  // what is probably wrong
};

}  // namespace capstan
