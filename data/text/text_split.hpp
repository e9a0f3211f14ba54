// From files to the pieces of text that belong to training, validation and test, for text_loading. Where a file is cut
// and which files are held out must not change: runs would go on with other data (tests/data/test_text_source.cpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/io/byte_store.hpp"
#include "data/batches/data_source.hpp"
#include "data/files/bad_rows.hpp"
#include "data/files/file_list.hpp"
#include "data/files/split.hpp"
#include "data/text/text_config.hpp"
#include "data/tokenizers/texts.hpp"

namespace capstan {

/// A file's text, unpacked, without lines that cannot be used.
struct SourceText {
  FoundFile file;
  std::shared_ptr<ByteStore> copy;  // of a file that is small, packed or has bad lines; null: the file is mapped
  size_t size = 0;

  /// Bytes [begin, end). This must outlive what it returns.
  Text open(size_t begin, size_t end, Progress* progress = nullptr) const;
};

/// Throws Error for a file that is empty or cannot be read; where lines must be `utf8`, others go to `bad`. `inputs`
/// say where copies are, and how many bytes of them in memory. `progress` may be null.
std::vector<SourceText> read_sources(const std::vector<FoundFile>& files, bool utf8, const SourceInputs& inputs,
                                     Progress* progress, BadRows& bad);

/// A part of a file that belongs to one split.
struct Piece {
  const SourceText* source;
  size_t begin, end;

  Text open(Progress* progress = nullptr) const { return source->open(begin, end, progress); }
};

using Pieces = PerSplit<std::vector<Piece>>;

/// The pieces of the files of train, valid and test; of those of train, shares are held out. `boundary`: where a file
/// may be cut. Throws Error when nothing is left to train on.
Pieces split_sources(const PerSplit<std::vector<SourceText>>& files, const TextSourceConfig& config,
                     const Boundary& boundary);

/// The pieces as texts, for make_tokenizer(). They must outlive it.
Texts texts_of(const std::vector<Piece>& pieces, Progress* progress);
size_t bytes_of(const std::vector<Piece>& pieces);
/// The pieces cut at every occurrence of `marker`, without the markers.
std::vector<Piece> without(std::string_view marker, const std::vector<Piece>& pieces);

}  // namespace capstan
