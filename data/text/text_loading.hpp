// The steps that load_text() and the check of a text are made of: files are listed, read, cut into the pieces of the
// splits, and tokenised. Used within data/text alone. Tokens are the same on any number of threads:
// tests/data/tokenizers/test_threads.cpp.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/progress.hpp"
#include "data/batches/data_source.hpp"
#include "data/checks/report.hpp"
#include "data/files/file_list.hpp"
#include "data/text/text_config.hpp"
#include "data/text/text_corpus.hpp"
#include "data/text/text_split.hpp"

namespace capstan {

/// The files of data.train, data.valid and data.test.
using FileLists = PerSplit<std::vector<FoundFile>>;
/// The files of the configuration. Throws Error naming the key whose files cannot be listed.
FileLists lists_of(const TextSourceConfig& config);
/// Size of the files in bytes, compressed ones counted four times, which is about the size of their text.
size_t size_of_text(const FileLists& lists);

/// The text of files, cut into splits. Pieces point into the sources.
struct SplitText {
  PerSplit<std::vector<SourceText>> sources;
  Pieces pieces;
  std::vector<std::string> left_out;
  std::vector<std::string> bad_lines;  // what was wrong with the first of these lines

  size_t bytes() const;
};

/// Reads the files and cuts them into splits where the tokenizer allows it. `tokenizer` may be null: then the cuts are
/// those of the one that config.tokenizer will make. `inputs`, `progress`: of read_sources(). Throws Error for bad
/// lines unless these are skipped, and for a marker of documents that the training text does not have.
SplitText read_split_text(const TextSourceConfig& config, const FileLists& lists, const Tokenizer* tokenizer,
                          const SourceInputs& inputs, Progress* progress);

/// The tokenizer of config.tokenizer, learnt from the training text where its kind needs one.
std::shared_ptr<const Tokenizer> learn_tokenizer(const TextSourceConfig& config, const std::vector<Piece>& train,
                                                 Progress* progress);

/// Tokenises on all threads. Calls put(tokens) for one block after the other, and ended(piece) after the last one of
/// each piece, on the calling thread and in the order of the text.
void encode(const std::vector<Piece>& pieces, const DocumentsConfig& documents, const Tokenizer& tokenizer,
            Progress* progress, const std::function<void(const std::vector<int32_t>&)>& put,
            const std::function<void(const Piece&)>& ended);

/// Throws Error when a split that training needs has no tokens.
void check_sizes(const TextSourceConfig& config, int64_t train, int64_t valid);

/// What may be wrong with a text that has been tokenised, although it can be read; nothing of a large one, since all of
/// it would be read once more.
std::vector<DataWarning> warnings_of(const SplitText& text, const TextSourceConfig& config, const TextData& data);

/// Checks all of a text, large or small, reading and tokenising it.
DataReport check_text(const TextSourceConfig& config, const SourceInputs& inputs);

}  // namespace capstan
