// Text for language models: files, patterns and folders become one long row of tokens per split. The source `text`
// (data/batches/data_source.hpp says what a source brings). Splits and fingerprints of a text must not change, since
// runs save them: tests/data/test_text_source.cpp, test_real_files.cpp and test_data_source.cpp.
#pragma once

#include <memory>

#include "data/batches/data_source.hpp"
#include "data/text/text_config.hpp"
#include "data/text/text_corpus.hpp"

namespace capstan {

/// Reads, splits and tokenises, by the tokenizer of an earlier run or one that is made from the training text.
/// Files are in the order of their paths; with weights, source by source.
/// With `tail` a file of n bytes is cut at floor(n (1 - valid - test)) and floor(n (1 - test)), in that order train,
/// valid and test, moved back to where the tokenizer allows a cut; for one file of characters these are nanoGPT's and
/// enwik8's usual splits. With `by-file`, round(files * fraction) files, at least one, whose names have the smallest
/// hashes are held out. With documents, a tail begins with a document, and the text between documents is no token.
/// The tokens are kept in the folder of config.cache_of(), unless they are there already; of CacheUse::read, those that
/// are there are taken, and others kept nowhere. Throws Error naming file (line, column) and remedy; ConfigError for
/// fractions that leave no training text, or weights that do not fit.
TextData load_text(const TextSourceConfig& config, const SourceInputs& inputs);

SourceFacts facts(const TextSourceConfig& config);
std::unique_ptr<DataSource> make_source(const TextSourceConfig& config, const SourceInputs& inputs);
/// Lines that are not UTF-8 are errors of the report. Throws Error when too little is left to count.
DataReport check_source(const TextSourceConfig& config, const SourceInputs& inputs);

}  // namespace capstan
