// From files to the pieces of text that belong to training, validation and test, for text_loading. Where a file is cut
// and which files are held out must not change: runs would go on with other data (tests/data/test_text_source.cpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/io/byte_store.hpp"
#include "data/files/bad_rows.hpp"
#include "data/files/file_list.hpp"
#include "data/files/split.hpp"
#include "data/tokenizers/texts.hpp"

namespace capstan {

/// Where validation (and test) text comes from when no files are named for it.
enum class TextSplit { tail, by_file };
inline std::vector<EnumName<TextSplit>> enum_names(TextSplit) {
  return {{TextSplit::tail, "tail"}, {TextSplit::by_file, "by-file"}};
}

/// A file's text, unpacked, without lines that cannot be used.
struct SourceText {
  FoundFile file;
  std::shared_ptr<ByteStore> copy;  // of a file that is small, packed or has bad lines; null: the file is mapped
  size_t size = 0;

  /// Bytes [begin, end). This must outlive what it returns.
  Text open(size_t begin, size_t end, Progress* progress = nullptr) const;
};

struct ReadRule {
  bool utf8 = false;             // must lines be UTF-8?
  Progress* progress = nullptr;  // may be null
  std::string scratch = {};      // SourceInputs::scratch: the folder for copies that are not in memory
  size_t max_in_memory = ByteStore::max_in_memory;  // bytes of copies, all together
};

/// Throws Error for a file that is empty or cannot be read; lines that are not UTF-8 go to `bad`.
std::vector<SourceText> read_sources(const std::vector<FoundFile>& files, const ReadRule& rule, BadRows& bad);

/// A part of a file that belongs to one split.
struct Piece {
  const SourceText* source;
  size_t begin, end;

  Text open(Progress* progress = nullptr) const { return source->open(begin, end, progress); }
};

using Pieces = PerSplit<std::vector<Piece>>;

struct SplitRule {
  TextSplit split = TextSplit::tail;
  double valid = 0, test = 0;  // shares of each file or, by_file, of the number of files
  Boundary boundary;           // where a file may be cut
};

/// The pieces of files, of which shares are held out. Throws Error when nothing is left to train on.
Pieces split_sources(const std::vector<SourceText>& files, const SplitRule& rule);
/// Adds whole files to a split.
void add_whole(const std::vector<SourceText>& files, std::vector<Piece>& pieces);

/// The pieces as texts, for make_tokenizer(). They must outlive it.
Texts texts_of(const std::vector<Piece>& pieces, Progress* progress);
size_t bytes_of(const std::vector<Piece>& pieces);
/// The pieces cut at every occurrence of `marker`, without the markers.
std::vector<Piece> without(std::string_view marker, const std::vector<Piece>& pieces);

}  // namespace capstan
