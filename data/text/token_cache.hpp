// Rows of tokens that are kept for other runs (data.cache): made once from a text by load_text.cpp. The files and their
// names are read by other versions: raise `version` of load_text.cpp when they change. tests/data/test_token_cache.cpp,
// test_token_cache_safety.cpp and tests/fuzz/fuzz_cache_index.cpp hold them.
//   <folder>/<key of the text>/                          everything made from one text
//     .lock                                              held while something is made
//     .partial/                                          unfinished work; garbage when the lock is free
//     tokenizer-<key of its settings>.json               a tokenizer learnt from the text
//     <fingerprint of the tokenizer>/index.json          see TokenIndex
//                                    train.tokens, valid.tokens, test.tokens   see TokenRow::of_file
// A folder of tokens gets its name when all of it is on the disk, so it is either complete or absent.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/no_copy.hpp"
#include "core/io/file.hpp"
#include "core/io/progress.hpp"
#include "data/checks/report.hpp"
#include "data/files/split.hpp"
#include "data/files/token_row.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

/// What is known of tokens; the content of index.json in a folder of them.
struct TokenIndex {
  struct OfSplit {
    int64_t size = 0;                         // in tokens
    std::string checksum;                     // XXH3-128 of its .tokens file
    int64_t files = 0, bytes = 0, words = 0;  // as in TextCorpus
  };
  int width = 1;            // bytes per token
  std::string fingerprint;  // TextData::fingerprint
  std::vector<std::string> left_out;
  std::vector<DataWarning> warnings;  // of what the folder's name depends on: the text, documents and the tokenizer
  std::vector<int64_t> source_ends;   // where the tokens of each weighted source end
  PerSplit<OfSplit> splits;
};

/// The rows of a text, and what is known of them.
struct StoredTokens {
  TokenIndex index;
  PerSplit<TokenRow> rows;
};

/// Writes a row of tokens, and takes their checksum.
class TokenWriter {
 public:
  /// Into the file or, where that is "", into `row`, which is empty.
  TokenWriter(const std::string& file, TokenRow row);
  void add(const std::vector<int32_t>& tokens);
  /// The row of all `size` tokens, which are on the disk if they are in a file that has a name.
  TokenRow finish(int64_t size);
  std::string checksum() const { return checksum_.hex(); }

 private:
  std::string path_;
  std::optional<FileWriter> file_;
  TokenRow row_;
  Fingerprint checksum_;
};

/// Reads an index of tokens that have ids below `vocabulary`, of a text with `sources` weighted sources. Throws Error
/// for anything but JSON that a writer of this version could have made.
TokenIndex index_from_json(const std::string& text, size_t sources, int64_t vocabulary);

/// Reads the files of the cache that were made from one text.
class TokenCache {
 public:
  explicit TokenCache(std::string folder) : folder_(std::move(folder)) {}

  /// The saved tokenizer of some settings; null when there is none or it is damaged.
  std::shared_ptr<const Tokenizer> find_tokenizer(const std::string& settings_key) const;
  /// Removes what a killed process left unfinished.
  void remove_unfinished() const;
  /// A tokenizer's tokens, which were read and are undamaged. Empty if there are none, or if they are damaged, which is
  /// logged: they are then made again. vocabulary: ids are below it.
  std::optional<StoredTokens> find(const Tokenizer& tokenizer, int64_t vocabulary, size_t sources,
                                   const LogLine& log) const;
  std::string tokens_folder(const Tokenizer& tokenizer) const { return folder_ + "/" + tokenizer.fingerprint(); }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

/// The right to make something from a text, which one process has at a time: the constructor waits for another one,
/// with a line about it. The destructor removes what is not finished.
class TokenCacheWriter : NoCopy {
 public:
  TokenCacheWriter(const TokenCache& cache, const LogLine& log);
  ~TokenCacheWriter();

  /// An unfinished file of tokens, made when it is first written to.
  std::string tokens_file(Split split) const;
  void save_tokenizer(const Tokenizer& tokenizer, const std::string& settings_key) const;
  /// Publishes the files of tokens as those of the tokenizer.
  void save(const TokenIndex& index, const Tokenizer& tokenizer) const;

 private:
  const TokenCache& cache_;
  FileLock lock_;
  std::string partial_;
};

}  // namespace capstan
