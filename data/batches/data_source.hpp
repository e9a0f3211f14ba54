// A source of data: everything that run/ and train/ need to know of `data:`, whatever its type. A source is a pair of
// files with
//   - a config struct with `type_name`, fields and describe(), and validate() where fields depend on each other,
//   - SourceFacts facts(const Config&),
//   - std::unique_ptr<DataSource> make_source(const Config&, const SourceInputs&),
// and an entry in the variant SourceConfig (data/sources/data_config.hpp). tests/data/test_data_source.cpp holds
// identities that earlier versions have saved: a source whose identity changes refuses to go on with old runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/settings.hpp"
#include "core/io/progress.hpp"
#include "data/batches/batcher.hpp"
#include "data/batches/labelled_texts.hpp"
#include "data/batches/source_content.hpp"
#include "data/batches/text_example.hpp"
#include "data/checks/report.hpp"
#include "data/files/split.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

/// The files, folders and patterns that a key of `data` names.
struct SourceFiles {
  const char* key;
  std::vector<std::string> paths;
};

/// What is known of the examples before any data is read.
struct SourceFacts {
  bool multi_label() const { return !label_separator.empty(); }

  bool has_labels = false;           // examples of classes, for classifiers; otherwise sequences, for language models
  std::string label_separator = {};  // not empty: examples have any number of labels (multi-label), joined by this
  int64_t longest = 0;               // tokens of the longest example; 0: any length
  const char* longest_key = "";      // the key of `data` that sets it
  int64_t overlap = 0;               // tokens that evaluation reads again where it goes on within a text
  int64_t added_tokens = 0;          // ids that examples use after the tokenizer's vocabulary
  bool has_documents = false;        // the first added token ends every document
  bool has_pairs = false;            // documents are a source and a target; the second added token is between them
  TextRule text = {};                // how a text given to a trained classifier becomes an example
  std::vector<SourceFiles> files = {};
};

/// May a source store what it made of the data in the folder that the configuration names? Only training may; reading
/// a run writes nothing outside of it.
enum class CacheUse { read, write };

/// What a run gives its source.
struct SourceInputs {
  std::shared_ptr<const Tokenizer> tokenizer;  // of an earlier run, which may have no training data; null: the source
                                               // makes its own from them
  std::vector<std::string> classes;            // of an earlier run; empty: those of the data
  bool classifies = true;                      // false: the model does not read labels, which may all be the same
  BatchConfig batches;
  uint64_t seed = 0;  // orders the training examples
  LogLine log;        // takes lines about long work
  CacheUse cache = CacheUse::read;
  std::string scratch = {};  // folder for files without a name, of data that are too large for the memory (ByteStore);
                             // "": that for temporary files
  size_t max_in_memory = ByteStore::max_in_memory;  // bytes of copies of texts, and of each row of tokens
};

/// Size of the text of a split.
struct TextSize {
  int64_t bytes = 0;
  std::optional<int64_t> words;  // words between blanks plus ends of lines; none of training text
};

/// A pair of a split, for the evaluation of what a model writes.
struct EvaluationPair {
  std::vector<int32_t> prompt;  // the source, with the tokens around it: what the target is written after
  std::vector<int32_t> target;
  std::string text;  // the target as it is in the data
};

/// The data of a run. Batches refer to the source, which must outlive them.
class DataSource {
 public:
  virtual ~DataSource() = default;

  virtual const SourceContent& content() const = 0;
  const Tokenizer& tokenizer() const { return *content().tokenizer; }
  std::vector<std::string> classes() const { return content().classes; }
  std::vector<std::string> unseen_classes() const { return content().unseen; }
  std::vector<std::string> left_out() const { return content().left_out; }
  std::vector<DataWarning> warnings() const { return content().warnings; }
  /// Training examples that have each class.
  virtual std::vector<int64_t> class_counts() const { return {}; }
  /// What the examples and their order depend on, one fact per line: a resumed run compares it (source_identity()).
  virtual std::string identity() const = 0;

  virtual bool has(Split split) const = 0;
  /// Batches in the order of training. Throws Error when there are no training data.
  virtual const BatchSource& training() const = 0;
  /// Every example of a split once. Throws Error when there is no such split.
  virtual std::unique_ptr<BatchSource> evaluation(Split split) const = 0;
  /// What a validation during training reads: the split valid or, where the configuration says so, a part of it.
  virtual std::unique_ptr<BatchSource> validation() const { return evaluation(Split::valid); }
  /// The texts of a split with their labels; those of training in the permuted order of the first epoch, before
  /// examples are sorted by length, so that a beginning of them is a sample. Throws Error unless the examples are
  /// labelled texts.
  virtual LabelledTexts texts(Split split) const;
  /// The pairs of a held-out split, in the order of the data. Throws Error unless the data are pairs.
  virtual std::vector<EvaluationPair> evaluation_pairs(Split split) const;
  /// The size of a split's text, for measures per byte and per word; none unless the data is text.
  virtual std::optional<TextSize> text_size(Split) const { return std::nullopt; }

  /// Lines for the log: what was left out, the tokenizer, the splits.
  std::vector<std::string> description() const;

 protected:
  /// Lines for the log about a split that the source has, without its name.
  virtual std::vector<std::string> describe_split(Split split) const = 0;
  /// Throws Error unless there is such a split; `remedy` follows "give data.<split>".
  void check_has(Split split, const std::string& remedy = "") const;
};

/// The identity of a source: its settings, except those called `without` and those below them; then `more`; then the
/// fingerprint. It leaves out where files are, how much of them may be bad or large, and what the fingerprint covers:
/// what the tokenizer makes of the texts.
std::string source_identity(const Settings& settings, std::vector<std::string> without, const std::string& fingerprint,
                            const std::string& more = "");
/// An identity that an earlier version saved, in the form of this version: settings that it did not have get the values
/// of `defaults`. `now`: an identity of this version, for the order of the lines.
std::string renewed_identity(const std::string& saved, const std::string& now, const Settings& defaults);

}  // namespace capstan
