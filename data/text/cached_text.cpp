// Large text by way of data.cache (load_cached_text() of text_loading.hpp). A folder is named by a hash of the files'
// content and of the settings that its tokens depend on. Where it has the tokens, they are checked and mapped;
// otherwise one process makes them under a lock, in a hidden folder that is renamed when all of it is on the disk. The
// tokens are those of a text in memory: tests/data/test_token_cache.cpp, and test_token_cache_safety.cpp for kills and
// full disks.
#include "core/base/error.hpp"
#include "core/config/settings.hpp"
#include "data/files/token_row.hpp"
#include "data/text/content_key.hpp"
#include "data/text/text_loading.hpp"
#include "data/text/token_cache.hpp"

namespace capstan {
namespace {

/// Raise it when the same key would mean other tokens or another form of the files.
constexpr const char* version = "capstan tokens 2";

/// The name of a text's folder: what is made of the text depends on its files, in their order, and on how they are
/// split.
std::string key_of_text(const TextSourceConfig& config, const FileLists& lists, const LogLine& log, CacheUse use) {
  Fingerprint key;
  key.add(version);
  for (const auto& files : lists)
    key.add(files.empty() ? "" : key_of_content(files, config.cache + "/contents", log, use));
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

/// Reads the text of a piece once more, which was tokenised earlier. Throws Error if the file has become shorter.
std::string text_again(OnError on_error, bool utf8, const FoundFile& file, const TokenIndex::File& piece) {
  BadRows bad(on_error, "line");
  const std::vector<SourceText> sources = read_sources({file}, {utf8, "", nullptr}, bad);
  const auto begin = static_cast<size_t>(piece.text_begin), end = static_cast<size_t>(piece.text_end);
  if (end > sources[0].size) throw Error(fmt::format("{}: the file has changed since it was tokenised", file.path));
  return std::string(sources[0].open(begin, end).view());
}

/// Where a piece comes from: the list, and the place in it.
std::pair<size_t, size_t> place_of(const Piece& piece, const SplitText& text) {
  for (size_t list = 0; list < text.sources.size(); ++list) {
    const auto& sources = text.sources[list];
    if (piece.source >= sources.data() && piece.source < sources.data() + sources.size())
      return {list, static_cast<size_t>(piece.source - sources.data())};
  }
  throw std::logic_error("a piece of no text");
}

/// One call of load_cached_text(): finds the tokens of a text in the cache, or makes them.
class CachedText {
 public:
  CachedText(const TextSourceConfig& config, const FileLists& lists, std::shared_ptr<const Tokenizer> tokenizer,
             const LogLine& log, CacheUse use)
      : config_(config),
        lists_(lists),
        log_(log),
        use_(use),
        state_(state_of(lists)),
        cache_(config.cache + "/" + key_of_text(config, lists, log, use)),
        tokenizer_key_(key_of_tokenizer(config)),
        tokenizer_(std::move(tokenizer)) {
    if (!tokenizer_ && !learns_from_texts(config.tokenizer)) tokenizer_ = make_tokenizer(config.tokenizer, {});
  }

  std::optional<TextData> load() {
    auto index = find(nullptr);
    if (use_ == CacheUse::read) return index ? std::optional(data(*index)) : std::nullopt;
    if (index) {
      cache_.remove_unfinished();
      return data(*index);
    }
    const TokenCacheWriter writer(cache_, log_);
    index = find(log_);  // another process may have made them meanwhile
    return data(index ? *index : build(writer));
  }

 private:
  /// The tokens in the cache; none if there are none or they are damaged, which `about_damage` (may be empty) is told.
  /// Also finds the tokenizer that an earlier run has learnt from this text.
  std::optional<TokenIndex> find(const LogLine& about_damage) {
    if (!tokenizer_ && may_be_saved(config_.tokenizer)) tokenizer_ = cache_.find_tokenizer(tokenizer_key_);
    if (!tokenizer_) return std::nullopt;
    auto index = cache_.find(*tokenizer_, vocabulary_size(config_, *tokenizer_),
                             {lists_[0].size(), lists_[1].size(), lists_[2].size()}, about_damage);
    if (index && log_) log_(fmt::format("data: tokens from {}", cache_.tokens_folder(*tokenizer_)));
    return index;
  }

  TokenIndex build(const TokenCacheWriter& writer) {
    if (log_) log_(fmt::format("data: tokenising the text, once, into {}", cache_.folder()));
    size_t bytes = 0;
    for (const auto& files : lists_) bytes += size_of_text(files);
    Progress checking(log_, "data: checking the text", bytes);
    const auto text = read_split_text(config_, lists_, tokenizer_.get(),
                                      {must_be_utf8(config_, tokenizer_.get()), writer.scratch() + "/", &checking});
    if (!tokenizer_) {
      learn(text->pieces.train, writer);
      if (auto index = find(log_)) return *index;
    }
    TokenIndex index = write_tokens(*text, writer.tokens());
    if (state_of(lists_) != state_)
      throw Error("data: the text changed while it was tokenised; run again when its files are complete");
    writer.save(index, *tokenizer_);
    return index;
  }

  /// A tokenizer of a text that changed meanwhile is used, but not saved; build() then refuses the tokens.
  void learn(const std::vector<Piece>& pieces, const TokenCacheWriter& writer) {
    Progress progress(log_, "data: learning the tokenizer", 0);
    tokenizer_ = learn_tokenizer(config_, pieces, &progress);
    if (state_of(lists_) == state_ && may_be_saved(config_.tokenizer))
      writer.save_tokenizer(*tokenizer_, tokenizer_key_);
  }

  TokenIndex write_tokens(const SplitText& text, const std::string& folder) const {
    TokenIndex index;
    index.width = TokenRow::width_for(vocabulary_size(config_, *tokenizer_));
    index.left_out = text.left_out;
    size_t bytes = 0;
    for (const Split split : all_splits) bytes += bytes_of(text.pieces[split]);
    Progress progress(log_, "data: tokenising", bytes);
    std::array<TokenRow, 3> rows;
    for (size_t i = 0; i < split_names.size(); ++i) {
      const std::string path = fmt::format("{}/{}.tokens", folder, split_names[i]);
      TokenIndex::Split& split = index.splits[i];
      TokenWriter writer(path, index.width);
      split.size = encode(
          text.pieces[all_splits[i]], config_.documents, *tokenizer_, &progress,
          [&](const std::vector<int32_t>& tokens) { writer.add(tokens); },
          [&](const Piece& piece, int64_t begin, int64_t end) {
            const auto [list, number] = place_of(piece, text);
            split.files.push_back(
                {list, number, begin, end, static_cast<int64_t>(piece.begin), static_cast<int64_t>(piece.end)});
          });
      split.checksum = writer.finish();
      rows[i] = TokenRow::mapped(path, split.size, index.width);
    }
    check_sizes(config_, rows[0].size(), rows[1].size());
    index.fingerprint = Fingerprint().add(rows[0]).add(rows[1]).hex();
    return index;
  }

  TextData data(const TokenIndex& index) const {
    TextData data;
    data.tokenizer = tokenizer_;
    data.left_out = index.left_out;
    data.fingerprint = index.fingerprint;
    const std::string folder = cache_.tokens_folder(*tokenizer_);
    for (size_t i = 0; i < split_names.size(); ++i) {
      const TokenIndex::Split& split = index.splits[i];
      TextCorpus& corpus = data[all_splits[i]];
      corpus.tokens = TokenRow::mapped(fmt::format("{}/{}.tokens", folder, split_names[i]), split.size, index.width);
      for (const TokenIndex::File& piece : split.files) {
        const FoundFile& file = lists_[piece.list].at(piece.number);
        corpus.files.push_back(
            {file.path, file.name, piece.begin, piece.end, piece.text_end - piece.text_begin, {}, file.source});
        if (i == 0) continue;
        corpus.files.back().text = [on_error = config_.on_error, utf8 = tokenizer_->needs_utf8(), file, piece] {
          return text_again(on_error, utf8, file, piece);
        };
      }
    }
    describe_corpora(config_, data);
    return data;
  }

  const TextSourceConfig& config_;
  const FileLists& lists_;
  const LogLine& log_;
  CacheUse use_;
  std::string state_;  // of the files, before they were first read
  TokenCache cache_;
  std::string tokenizer_key_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

std::optional<TextData> load_cached_text(const TextSourceConfig& config, const FileLists& lists,
                                         std::shared_ptr<const Tokenizer> tokenizer, const LogLine& log, CacheUse use) {
  return CachedText(config, lists, std::move(tokenizer), log, use).load();
}

}  // namespace capstan
