// From files to tokens. Those of a large text are kept for other runs (data.cache): in a folder named by a hash of the
// files' content and of the settings that its tokens depend on. One process makes them under a lock, in a hidden folder
// that is renamed when all of it is on the disk. The tokens are the same whether they are kept or not:
// tests/data/test_text_source.cpp, test_token_cache.cpp, and test_token_cache_safety.cpp for kills and full disks.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/config/settings.hpp"
#include "core/io/file.hpp"
#include "data/files/token_row.hpp"
#include "data/text/content_key.hpp"
#include "data/text/text_loading.hpp"
#include "data/text/text_source.hpp"
#include "data/text/token_cache.hpp"

namespace capstan {
namespace {

/// Raise it when the same key would mean other tokens or another form of the files.
constexpr const char* version = "capstan tokens 3";

/// The name of a text's folder: what is made of the text depends on its files, in their order, on which of them belong
/// to a source with a weight, and on how they are split.
std::string key_of_text(const TextSourceConfig& config, const FileLists& lists, const LogLine& log, CacheUse use) {
  Fingerprint key;
  key.add(version);
  for (const auto& files : lists)
    key.add(files.empty() ? "" : key_of_content(files, config.cache + "/contents", log, use));
  if (!config.weights.empty()) {
    std::vector<int64_t> sources;
    for (const FoundFile& file : lists[0]) sources.push_back(static_cast<int64_t>(file.source));
    key.add(sources);
  }
  const Settings settings = settings_of(config);
  for (const char* const name : {"split", "valid_fraction", "test_fraction", "on_error", "documents"})
    key.add(settings.at(name));
  if (const auto marker = settings.find("documents.text"); marker != settings.end()) key.add(marker->second);
  return key.hex();
}

std::string state_of(const FileLists& lists) {
  Fingerprint state;
  for (const auto& files : lists) state.add(state_of_files(files));
  return state.hex();
}

/// A tokenizer that is learnt from a text also depends on its settings.
std::string key_of_tokenizer(const TextSourceConfig& config) {
  Fingerprint key;
  for (const auto& [name, value] : settings_of(config))
    if (name.rfind("tokenizer", 0) == 0) key.add(name).add(value);
  return key.hex();
}

/// May the learnt tokenizer be one that an earlier run has saved? Not if the configuration
/// names a file for its model, which would then not be written.
bool may_be_saved(const TokenizerConfig& config) {
  const auto* pieces = std::get_if<SentencePieceTokenizerConfig>(&config);
  return !std::holds_alternative<SavedTokenizerConfig>(config) && (pieces == nullptr || pieces->model.empty());
}

/// Words between blanks plus line ends, which is WikiText's count: it has an <eos> for every line.
int64_t count_words(const Text& text) {
  int64_t count = 0;
  bool inside = false;
  for_blocks(
      text, [](std::string_view, size_t at) { return at; },
      [&](std::string_view block) {
        for (const char c : block) {
          const bool blank = c == ' ' || (c >= '\t' && c <= '\r');
          count += (c == '\n') + (!blank && !inside);
          inside = !blank;
        }
      });
  return count;
}

/// One call of load_text().
class TextLoader {
 public:
  TextLoader(const TextSourceConfig& config, std::shared_ptr<const Tokenizer> tokenizer, const LogLine& log,
             const LoadRule& rule)
      : config_(config), log_(log), rule_(rule), lists_(lists_of(config)), tokenizer_(std::move(tokenizer)) {
    for (const auto& files : lists_) bytes_ += size_of_text(files);
    if (!tokenizer_ && !learns_from_texts(config.tokenizer)) tokenizer_ = make_tokenizer(config.tokenizer, {});
  }

  TextData load() {
    if (config_.cache.empty() || bytes_ <= static_cast<size_t>(config_.cache_above_mb) * 1'000'000)
      return data_of(tokenise());
    state_ = state_of(lists_);
    tokenizer_key_ = key_of_tokenizer(config_);
    cache_.emplace(config_.cache + "/" + key_of_text(config_, lists_, log_, rule_.cache));
    if (auto found = find(nullptr)) {
      if (rule_.cache == CacheUse::write) cache_->remove_unfinished();
      return data_of(std::move(*found));
    }
    if (rule_.cache == CacheUse::read) return data_of(tokenise());
    writer_ = std::make_unique<const TokenCacheWriter>(*cache_, log_);
    if (auto found = find(log_)) return data_of(std::move(*found));  // made by another process meanwhile
    if (log_) log_(fmt::format("data: tokenising the text, once, into {}", cache_->folder()));
    return data_of(tokenise());
  }

 private:
  /// The tokens in the cache; none if there are none or they are damaged, which `about_damage` (may be empty) is told.
  /// Also finds the tokenizer that an earlier run has learnt from this text.
  std::optional<StoredTokens> find(const LogLine& about_damage) {
    if (!tokenizer_ && may_be_saved(config_.tokenizer)) tokenizer_ = cache_->find_tokenizer(tokenizer_key_);
    if (!tokenizer_) return std::nullopt;
    auto found = cache_->find(*tokenizer_, vocabulary_size(config_, *tokenizer_), config_.weights.size(), about_damage);
    if (found && log_) log_(fmt::format("data: tokens from {}", cache_->tokens_folder(*tokenizer_)));
    return found;
  }

  /// Reads and tokenises all text; with a writer, the tokens are kept in its cache.
  StoredTokens tokenise() {
    Progress checking(log_, "data: checking the text", static_cast<double>(bytes_));
    const auto text =
        read_split_text(config_, lists_, tokenizer_.get(),
                        {must_be_utf8(config_, tokenizer_.get()), &checking, rule_.scratch, rule_.max_in_memory});
    if (!tokenizer_) {
      learn(text->pieces.train);
      if (writer_)
        if (auto found = find(log_)) return std::move(*found);
    }
    StoredTokens tokens = encode_all(*text);
    if (!writer_) return tokens;
    if (changed()) throw Error("data: the text changed while it was tokenised; run again when its files are complete");
    writer_->save(tokens.index, *tokenizer_);
    return tokens;
  }

  bool changed() const { return state_of(lists_) != state_; }

  /// A tokenizer of a text that changed meanwhile is used, but not saved; tokenise() then refuses the tokens.
  void learn(const std::vector<Piece>& pieces) {
    Progress progress(log_, "data: learning the tokenizer", 0);
    tokenizer_ = learn_tokenizer(config_, pieces, &progress);
    if (writer_ && may_be_saved(config_.tokenizer) && !changed()) writer_->save_tokenizer(*tokenizer_, tokenizer_key_);
  }

  StoredTokens encode_all(const SplitText& text) const {
    StoredTokens tokens;
    TokenIndex& index = tokens.index;
    index.width = TokenRow::width_for(vocabulary_size(config_, *tokenizer_));
    index.left_out = text.left_out;
    size_t bytes = 0;
    for (const Split split : all_splits) bytes += bytes_of(text.pieces[split]);
    Progress progress(log_, "data: tokenising", static_cast<double>(bytes));
    for (const Split split : all_splits) tokens.rows[split] = encode_split(text, split, progress, index);
    check_sizes(config_, tokens.rows.train.size(), tokens.rows.valid.size());
    index.fingerprint = Fingerprint().add(tokens.rows.train).add(tokens.rows.valid).hex();
    index.warnings = warnings_of(text, config_, tokens.rows, *tokenizer_);
    return tokens;
  }

  /// The row of a split, and what the index says of it.
  TokenRow encode_split(const SplitText& text, Split split, Progress& progress, TokenIndex& index) const {
    TokenIndex::OfSplit& facts = index.splits[split];
    TokenWriter writer(writer_ ? writer_->tokens_file(split) : "",
                       TokenRow(index.width, rule_.scratch, rule_.max_in_memory));
    std::vector<int64_t> ends(config_.weights.size(), 0);  // of weighted sources
    facts.size = encode(
        text.pieces[split], config_.documents, *tokenizer_, &progress,
        [&](const std::vector<int32_t>& tokens) { writer.add(tokens); },
        [&](const Piece& piece, int64_t end) {
          ++facts.files;
          facts.bytes += static_cast<int64_t>(piece.end - piece.begin);
          if (split != Split::train)
            facts.words += count_words(piece.open());
          else if (!ends.empty())
            ends[piece.source->file.source] = end;
        });
    for (size_t i = 1; i < ends.size(); ++i) ends[i] = std::max(ends[i], ends[i - 1]);  // of a source without a piece
    if (split == Split::train) index.source_ends = std::move(ends);
    TokenRow row = writer.finish(facts.size);
    facts.checksum = writer.checksum();
    return row;
  }

  TextData data_of(StoredTokens tokens) const {
    TextData data;
    data.tokenizer = tokenizer_;
    data.left_out = std::move(tokens.index.left_out);
    data.warnings = std::move(tokens.index.warnings);
    data.fingerprint = tokens.index.fingerprint;
    for (const Split split : all_splits) {
      const TokenIndex::OfSplit& facts = tokens.index.splits[split];
      data[split] = {std::move(tokens.rows[split]),
                     facts.files,
                     facts.bytes,
                     facts.words,
                     end_of_document(config_.documents, *tokenizer_),
                     {}};
    }
    int64_t begin = 0;
    for (size_t i = 0; i < config_.weights.size(); ++i) {
      const int64_t end = tokens.index.source_ends[i];
      data.train.sources.push_back({config_.train[i], config_.weights[i], begin, end});
      begin = end;
    }
    return data;
  }

  const TextSourceConfig& config_;
  const LogLine& log_;
  const LoadRule& rule_;
  FileLists lists_;
  size_t bytes_ = 0;  // size_of_text() of all lists
  std::shared_ptr<const Tokenizer> tokenizer_;
  // Of a text that is kept:
  std::string state_, tokenizer_key_;  // state_: of the files, before they were first read
  std::optional<TokenCache> cache_;
  std::unique_ptr<const TokenCacheWriter> writer_;
};

}  // namespace

TextData load_text(const TextSourceConfig& config, std::shared_ptr<const Tokenizer> tokenizer, const LogLine& log,
                   const LoadRule& rule) {
  check_valid("data", config);
  if (config.train.empty() && !tokenizer) throw ConfigError("data: train names no file");
  return TextLoader(config, std::move(tokenizer), log, rule).load();
}

}  // namespace capstan
