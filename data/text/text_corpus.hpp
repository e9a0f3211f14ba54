// Text as one long row of tokens per split, and what is known of the files in it: what load_text() gives, whether the
// tokens are in memory or in the cache, and what windows are cut from.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "data/checks/report.hpp"
#include "data/files/split.hpp"
#include "data/files/token_row.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

/// The tokens of one split.
struct TextCorpus {
  struct File {
    std::string path, name;                  // name: below the folder it was found in
    int64_t begin = 0, end = 0;              // its tokens
    int64_t bytes = 0;                       // of the part of the file that belongs to the split
    std::function<std::string()> text = {};  // reads this part; held-out splits only, for measures of the text itself
    size_t source = 0;                       // index into `sources`, where there are weights
  };
  /// An entry of data.train with a weight.
  struct Source {
    std::string name;
    double weight = 1;
    int64_t begin = 0, end = 0;  // its tokens
  };
  TokenRow tokens;
  std::vector<File> files;
  std::optional<int32_t> end_of_document;  // the token after every document, where the text has documents
  std::vector<Source> sources;  // of training text with weights, in the order of their tokens; otherwise empty

  int64_t size() const { return tokens.size(); }
  int64_t bytes() const {
    return std::accumulate(files.begin(), files.end(), int64_t{0},
                           [](int64_t sum, const File& file) { return sum + file.bytes; });
  }
};

struct TextData : PerSplit<TextCorpus> {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<std::string> left_out;  // what was left out, a line each
  std::vector<DataWarning> warnings;  // of text in memory; for text from the cache they would cost a reading
  std::string fingerprint;            // XXH3-128 over the tokens of train and valid
};

}  // namespace capstan
