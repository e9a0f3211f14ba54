// Tokens of texts that are kept for other runs (data.cache), for load_text.cpp. The files and their names are read by
// other versions: raise `version` of load_text.cpp when they change. tests/data/test_token_cache.cpp,
// test_token_cache_safety.cpp and tests/fuzz/fuzz_cache_index.cpp hold them.
//   <folder>/<key of the text>/                          everything made from one text
//     .lock                                              held while something is made
//     .partial/                                          unfinished work; garbage when the lock is free
//     tokenizer-<key of its settings>.json               a tokenizer learnt from the text
//     <fingerprint of the tokenizer>/index.json          what is known of the tokens
//                                    train.tokens, valid.tokens, test.tokens   see TokenRow::of_file
// A folder of tokens gets its name when all of it is on the disk, so it is either complete or absent.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/base/no_copy.hpp"
#include "core/io/file.hpp"
#include "core/io/progress.hpp"
#include "data/text/text_corpus.hpp"

namespace capstan {

/// Reads what an index says of a text with `sources` weighted sources: all but the tokens, the tokenizer, and of
/// sources all but their ends. Throws Error for anything but JSON that a writer of this version could have made.
TextData index_from_json(const std::string& text, size_t sources);

/// Reads the files of the cache that were made from one text.
class TokenCache {
 public:
  explicit TokenCache(std::string folder) : folder_(std::move(folder)) {}

  /// The saved tokenizer of some settings; null when there is none or it is damaged.
  std::shared_ptr<const Tokenizer> find_tokenizer(const std::string& settings_key) const;
  /// A tokenizer's tokens, which were read and are undamaged, with what their index says. Empty if there are none, or
  /// if they are damaged, which is logged: they are then made again. vocabulary: ids are below it.
  std::optional<TextData> find(const Tokenizer& tokenizer, int64_t vocabulary, size_t sources,
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

  /// Publishes the tokens, whose rows are then those of the files; and data.tokenizer, unless `settings_key` is "".
  void save(TextData& data, const std::string& settings_key) const;

 private:
  const TokenCache& cache_;
  FileLock lock_;
  std::string partial_;
};

}  // namespace capstan
