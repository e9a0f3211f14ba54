// The configuration of text data for language models: `data:` of a run, with its keys, limits and help. A run saves the
// settings in its identity, so a new key needs a default that means what runs without it meant:
// tests/data/test_data_source.cpp (identities of earlier versions) and tests/cli/runs/test_old_runs.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/schema.hpp"
#include "data/files/bad_rows.hpp"
#include "data/files/text_file.hpp"
#include "data/text/documents.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"

namespace capstan {

/// Where validation (and test) text comes from when no files are named for it.
enum class TextSplit { tail, by_file };
inline std::vector<EnumName<TextSplit>> enum_names(TextSplit) {
  return {{TextSplit::tail, "tail"}, {TextSplit::by_file, "by-file"}};
}

/// Which windows of the training text make an epoch.
enum class WindowRule { contiguous, random };
inline std::vector<EnumName<WindowRule>> enum_names(WindowRule) {
  return {{WindowRule::contiguous, "contiguous"}, {WindowRule::random, "random"}};
}

/// How much of the split valid a validation during training reads.
enum class ValidationRule { full, quick };
inline std::vector<EnumName<ValidationRule>> enum_names(ValidationRule) {
  return {{ValidationRule::full, "full"}, {ValidationRule::quick, "quick"}};
}

struct TextSourceConfig {
  static constexpr const char* type_name = "text";
  static constexpr size_t large_text = 64'000'000;  // bytes
  std::vector<std::string> train, valid, test;
  std::vector<double> weights;
  std::vector<std::string> include, exclude;
  TextSplit split = TextSplit::tail;
  double valid_fraction = 0.1, test_fraction = 0;
  int64_t sequence_length = 256;
  WindowRule windows = WindowRule::contiguous;
  int64_t overlap = 0;
  ValidationRule validation = ValidationRule::full;
  DocumentsConfig documents = NoDocumentsConfig{};
  OnError on_error = OnError::stop;
  std::optional<std::string> cache;
  TokenizerConfig tokenizer = ByteTokenizerConfig{};

  /// Shares of the training text that are held out.
  double valid_share() const { return valid.empty() ? valid_fraction : 0; }
  double test_share() const { return test.empty() ? test_fraction : 0; }
  /// The folder where the tokens of a text of so many bytes are kept; "": nowhere.
  std::string cache_of(size_t bytes) const { return cache.value_or(bytes > large_text ? "runs/.cache" : ""); }
};
template <class Fields>
void describe(Fields& f, TextSourceConfig& c) {
  f("train", c.train, not_empty(), "files, patterns (docs/**/*.md) and folders; .gz and .zst are decompressed");
  f("valid", c.valid, any(), "the same for validation; if empty, valid_fraction of the training data is held out");
  f("test", c.test, any(), "the same for the test set; if empty, test_fraction is held out");
  f("weights", c.weights, any(),
    "one weight per entry of train: its share of the training windows; [] = shares in proportion to size. The number "
    "of windows in an epoch stays the same");
  f("include", c.include, any(),
    "of the files in folders and patterns, use only those that match one of these: [\"*.cpp\", \"docs/**/*.md\"]");
  f("exclude", c.exclude, any(), "in folders and patterns, skip files and folders that match these");
  f("split", c.split, any(),
    "tail: hold out the end of every file; by-file: hold out whole files, chosen by a hash of their path");
  f("valid_fraction", c.valid_fraction, between_below(0, 1),
    "share of the training data held out for validation; with one label per text, of every class");
  f("test_fraction", c.test_fraction, between_below(0, 1), "share held out for the test set");
  f("sequence_length", c.sequence_length, length_from(1), "number of tokens per window");
  f("windows", c.windows, any(),
    "contiguous: an epoch visits the text once, cut at a different offset each time; random: windows begin anywhere");
  f("overlap", c.overlap, length_from(0), "in evaluation, this many tokens of the previous window serve as context");
  f("validation", c.validation, any(),
    "what validation during training reads: full: the same as capstan eval; quick: no token twice (overlap 0), and at "
    "most 250000 tokens from all over the text");
  f("documents", c.documents, any(),
    "what counts as a document, beyond which tokens see nothing; blank-line: the text between blank lines. An end "
    "token follows each document");
  f("on_error", c.on_error, any(),
    "what to do with lines or rows that cannot be used: stop, or skip (leave them out and count them)");
  f("cache", c.cache, any(),
    "folder where tokens are kept, for all runs that read the same text; \"\" = kept for none; null = runs/.cache for "
    "text of more than 64 million bytes, of which compressed files count four times");
  f("tokenizer", c.tokenizer, any(), "how text is divided into tokens; saved: as in another run");
}

/// Ids that the model must know: the tokenizer's and, after them, the end of a document where there are documents.
inline int64_t vocabulary_size(const TextSourceConfig& config, const Tokenizer& tokenizer) {
  return tokenizer.vocabulary_size() + (has_documents(config.documents) ? 1 : 0);
}
/// The token before a text's first one: the end of the document before it, or the tokenizer's start_token().
inline int32_t start_token(const TextSourceConfig& config, const Tokenizer& tokenizer) {
  return end_of_document(config.documents, tokenizer).value_or(tokenizer.start_token());
}

/// load_text() repeats these checks for configurations made in code.
void validate(const TextSourceConfig& c, Problems& problems);

}  // namespace capstan
