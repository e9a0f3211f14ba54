// All kinds of tokenizer: made from a configuration, for the sources of data, or read back from tokenizer.json, for
// runs that go on and for commands. Files of earlier versions must be read: tests/data/tokenizers/test_tokenizer.cpp,
// tests/cli/runs/test_old_runs.cpp, tests/fuzz/fuzz_tokenizer_json.cpp.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "data/tokenizers/char_tokenizer.hpp"
#include "data/tokenizers/sentencepiece_tokenizer.hpp"
#include "data/tokenizers/tokenizer.hpp"
#include "data/tokenizers/word_tokenizer.hpp"

namespace capstan {

/// The tokenizer of another run, of any kind.
struct SavedTokenizerConfig {
  static constexpr const char* type_name = "saved";
  std::string file;
};
template <class Fields>
void describe(Fields& f, SavedTokenizerConfig& c) {
  f("file", c.file, not_empty(), "the tokenizer.json of another run");
}

/// The kinds that a configuration may choose.
using TokenizerConfig = std::variant<ByteTokenizerConfig, CharTokenizerConfig, WordTokenizerConfig,
                                     SentencePieceTokenizerConfig, SavedTokenizerConfig>;

/// Gathers the vocabulary from the training texts where the kind needs one. A SentencePiece model that is trained is
/// also written to config.model, where that names a file.
std::shared_ptr<const Tokenizer> make_tokenizer(const TokenizerConfig& config, const Texts& texts);
/// Reads what Tokenizer::to_json() wrote. Throws Error naming `file` for anything else.
std::shared_ptr<const Tokenizer> tokenizer_from_json(const std::string& json, const std::string& file = "tokenizer");

/// Does make_tokenizer() learn from the texts for this configuration?
bool learns_from_texts(const TokenizerConfig& config);
/// `config` with the change that make_tokenizer() does not write a learnt SentencePiece model to a file.
TokenizerConfig unsaved(TokenizerConfig config);
/// Must texts be valid UTF-8 for the tokenizer of this configuration?
bool needs_utf8(const TokenizerConfig& config);
/// What its tokens are, for tables of lengths: "bytes" or "tokens".
const char* unit_of(const TokenizerConfig& config);
/// Tokenizer::boundary() of the tokenizer that make_tokenizer() would make, before it is made.
Boundary boundary_of(const TokenizerConfig& config);

}  // namespace capstan
