// Rows of tokens on the disk (data.cache), made once from a text by cached_text.cpp, mapped by later runs, checked by
// `capstan verify`. The files and their names are read by other versions: raise `version` of cached_text.cpp when they
// change. tests/data/test_token_cache.cpp, test_token_cache_safety.cpp and tests/fuzz/fuzz_cache_index.cpp hold them.
//   <folder>/<key of the text>/                          everything made from one text
//     .lock                                              held while something is made
//     .partial/                                          unfinished work; garbage when the lock is free
//     tokenizer-<key of its settings>.json               a tokenizer learnt from the text
//     <fingerprint of the tokenizer>/index.json          see TokenIndex
//                                    train.tokens, valid.tokens, test.tokens   see TokenRow::mapped
// A folder of tokens gets its name when all of it is on the disk, so it is either complete or absent.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/no_copy.hpp"
#include "core/io/file.hpp"
#include "core/io/progress.hpp"
#include "data/files/token_row.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

/// The content of index.json in a folder of tokens.
struct TokenIndex {
  struct File {
    size_t list = 0, number = 0;           // data.train, valid or test; the place in it
    int64_t begin = 0, end = 0;            // its tokens
    int64_t text_begin = 0, text_end = 0;  // its bytes within the file's usable text
  };
  struct Split {
    int64_t size = 0;      // in tokens
    std::string checksum;  // XXH3-128 of its .tokens file
    std::vector<File> files;
  };
  int width = 1;            // bytes per token
  std::string fingerprint;  // TextData::fingerprint
  std::vector<std::string> left_out;
  std::array<Split, 3> splits;  // train, valid, test
};

extern const std::array<const char*, 3> split_names;

/// How many files each of data.train, valid and test has.
using FileCounts = std::array<size_t, 3>;
/// Stands for any numbers of files: for readers of an index that do not open the files that it names.
constexpr FileCounts any_files = {size_t{1} << 53, size_t{1} << 53, size_t{1} << 53};

/// Reads an index of tokens that have ids below `vocabulary`. Throws Error for anything but JSON that a writer of this
/// version could have made: an index that names a file which is not there would be followed into foreign memory.
TokenIndex index_from_json(const std::string& text, const FileCounts& files, int64_t vocabulary);

/// Writes a .tokens file.
class TokenWriter {
 public:
  TokenWriter(const std::string& path, int width) : file_(path), width_(width) {}
  void add(const std::vector<int32_t>& tokens);
  /// Returns when the tokens are on the disk, with their checksum.
  std::string finish();

 private:
  FileWriter file_;
  int width_;
  std::string bytes_;
  Fingerprint checksum_;
};

/// Reads the files of the cache that were made from one text.
class TokenCache {
 public:
  explicit TokenCache(std::string folder) : folder_(std::move(folder)) {}

  /// The saved tokenizer of some settings; null when there is none or it is damaged.
  std::shared_ptr<const Tokenizer> find_tokenizer(const std::string& settings_key) const;
  /// Removes what a killed process left unfinished.
  void remove_unfinished() const;
  /// The index of a tokenizer's tokens, whose files were read and are undamaged. Empty if there are none, or if they
  /// are damaged, which is logged: they are then made again. vocabulary: ids are below it.
  std::optional<TokenIndex> find(const Tokenizer& tokenizer, int64_t vocabulary, const FileCounts& files,
                                 const LogLine& log) const;
  /// The index of a tokenizer's tokens, like find(). Throws Error if their files do not exist or are damaged.
  TokenIndex open(const Tokenizer& tokenizer, int64_t vocabulary, const FileCounts& files) const;
  /// TokenIndex::fingerprint, of tokens that are not read. Throws Error when the index is absent or damaged.
  std::string index_fingerprint(const Tokenizer& tokenizer) const;
  std::string tokens_folder(const Tokenizer& tokenizer) const { return folder_ + "/" + tokenizer.fingerprint(); }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

/// A lock on a folder of the cache, held by one process at a time; the system releases it, however the process ends.
class FolderLock {
 public:
  /// Waits for a process that holds it, with a line about it.
  FolderLock(const std::string& folder, const LogLine& log);

 private:
  FileLock file_;
};

/// The right to make something from a text, which one process has at a time.
/// The destructor removes what is not finished.
class TokenCacheWriter : NoCopy {
 public:
  TokenCacheWriter(const TokenCache& cache, const LogLine& log);
  ~TokenCacheWriter();

  /// scratch() is a folder for temporary files, tokens() one for the tokens; both are empty at first.
  std::string scratch() const { return partial_ + "/texts"; }
  std::string tokens() const { return partial_ + "/tokens"; }
  void save_tokenizer(const Tokenizer& tokenizer, const std::string& settings_key) const;
  /// Makes the folder tokens() that of the tokenizer.
  void save(const TokenIndex& index, const Tokenizer& tokenizer) const;

 private:
  const TokenCache& cache_;
  FolderLock lock_;
  std::string partial_;
};

}  // namespace capstan
