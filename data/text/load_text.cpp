// From files to tokens. Those of a large text are kept for other runs (data.cache): in a folder named by a hash of the
// files' content and of the settings that its tokens depend on. One process makes them under a lock, in a hidden folder
// that is renamed when all of it is on the disk. The tokens are the same whether they are kept or not:
// tests/data/test_text_source.cpp, test_token_cache.cpp, and test_token_cache_safety.cpp for kills and full disks.
#include <algorithm>

#include "core/base/error.hpp"
#include "core/config/settings.hpp"
#include "core/io/file.hpp"
#include "core/io/mapped_file.hpp"
#include "data/files/token_row.hpp"
#include "data/text/text_loading.hpp"
#include "data/text/text_source.hpp"
#include "data/text/token_cache.hpp"

namespace capstan {
namespace {

/// Raise it when the same key would mean other tokens or another form of the files.
constexpr const char* version = "capstan tokens 4";

/// The name of a text's folder: what is made of the text depends on its files, in their order, on which of them belong
/// to a source with a weight, and on how they are split.
std::string key_of_text(const TextSourceConfig& config, const FileLists& lists, const LogLine& log) {
  Fingerprint key;
  key.add(version);
  Progress progress(log, "data: reading", static_cast<double>(size_of_text(lists)));
  for (const Split split : all_splits) {
    key.add(std::vector<int64_t>{static_cast<int64_t>(lists[split].size())});
    for (const FoundFile& file : lists[split]) {
      const auto mapped = std::make_shared<const MappedFile>(file.path);
      key.add(file.name).begin(mapped->size());
      for_blocks(Text(mapped, 0, mapped->size(), &progress), anywhere,
                 [&](std::string_view block) { key.part(block); });
      if (!config.weights.empty()) key.add(std::vector<int64_t>{static_cast<int64_t>(file.source)});
    }
  }
  const Settings settings = settings_of(config);
  for (const char* const name : {"split", "valid_fraction", "test_fraction", "on_error", "documents"})
    key.add(settings.at(name));
  if (const auto marker = settings.find("documents.text"); marker != settings.end()) key.add(marker->second);
  return key.hex();
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
  for_blocks(text, anywhere, [&](std::string_view block) {
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
  TextLoader(const TextSourceConfig& config, const SourceInputs& inputs)
      : config_(config),
        inputs_(inputs),
        lists_(lists_of(config)),
        bytes_(size_of_text(lists_)),
        tokenizer_(inputs.tokenizer) {
    if (!tokenizer_ && !learns_from_texts(config.tokenizer)) tokenizer_ = make_tokenizer(config.tokenizer, {});
  }

  TextData load() {
    const std::string folder = config_.cache_of(bytes_);
    if (folder.empty()) return tokenise();
    const std::string key = key_of_text(config_, lists_, inputs_.log),
                      settings_key = !tokenizer_ && may_be_saved(config_.tokenizer) ? key_of_tokenizer(config_) : "";
    const TokenCache cache(folder + "/" + key);
    if (auto found = find(cache, settings_key, nullptr)) return *std::move(found);
    if (inputs_.cache == CacheUse::read) return tokenise();
    const TokenCacheWriter writer(cache, inputs_.log);
    if (auto found = find(cache, settings_key, inputs_.log))
      return *std::move(found);  // made by another process meanwhile
    if (inputs_.log) inputs_.log(fmt::format("data: tokenising the text, once, into {}", cache.folder()));
    TextData data = tokenise();
    if (key_of_text(config_, lists_, nullptr) != key)
      throw Error("data: the text changed while it was tokenised; run again when its files are complete");
    writer.save(data, settings_key);
    return data;
  }

 private:
  /// The tokens in the cache; none if there are none or they are damaged, which `about_damage` (may be empty) is told.
  /// Also finds the tokenizer that an earlier run has learnt from this text.
  std::optional<TextData> find(const TokenCache& cache, const std::string& settings_key, const LogLine& about_damage) {
    if (!tokenizer_ && !settings_key.empty()) tokenizer_ = cache.find_tokenizer(settings_key);
    if (!tokenizer_) return std::nullopt;
    auto found = cache.find(*tokenizer_, vocabulary_size(config_, *tokenizer_), config_.weights.size(), about_damage);
    if (!found) return std::nullopt;
    if (inputs_.log) inputs_.log(fmt::format("data: tokens from {}", cache.tokens_folder(*tokenizer_)));
    complete(*found);
    return found;
  }

  TextData tokenise() {
    Progress checking(inputs_.log, "data: checking the text", static_cast<double>(bytes_));
    const SplitText text = read_split_text(config_, lists_, tokenizer_.get(), inputs_, &checking);
    if (!tokenizer_) {
      Progress learning(inputs_.log, "data: learning the tokenizer", 0);
      tokenizer_ = learn_tokenizer(config_, text.pieces.train, &learning);
    }
    TextData data;
    data.left_out = text.left_out;
    data.train.sources.resize(config_.weights.size());
    Progress progress(inputs_.log, "data: tokenising", static_cast<double>(text.bytes()));
    for (const Split split : all_splits) encode_split(text.pieces[split], split, progress, data[split]);
    check_sizes(config_, data.train.size(), data.valid.size());
    data.fingerprint = Fingerprint().add(data.train.tokens).add(data.valid.tokens).hex();
    complete(data);
    data.warnings = warnings_of(text, config_, data);
    return data;
  }

  void encode_split(const std::vector<Piece>& pieces, Split split, Progress& progress, TextCorpus& to) const {
    to.tokens =
        TokenRow(TokenRow::width_for(vocabulary_size(config_, *tokenizer_)), inputs_.scratch, inputs_.max_in_memory);
    encode(
        pieces, config_.documents, *tokenizer_, &progress,
        [&](const std::vector<int32_t>& tokens) { to.tokens.append(tokens); },
        [&](const Piece& piece) {
          ++to.files;
          to.bytes += static_cast<int64_t>(piece.end - piece.begin);
          if (split != Split::train) to.words += count_words(piece.open());
          if (!to.sources.empty()) to.sources[piece.source->file.source].end = to.size();
        });
    for (size_t i = 1; i < to.sources.size(); ++i)  // of a source without a piece
      to.sources[i].end = std::max(to.sources[i].end, to.sources[i - 1].end);
  }

  /// Adds what is known of the configuration: names and weights of sources, of which the ends are there.
  void complete(TextData& data) const {
    data.tokenizer = tokenizer_;
    for (const Split split : all_splits) data[split].end_of_document = end_of_document(config_.documents, *tokenizer_);
    int64_t begin = 0;
    for (size_t i = 0; i < config_.weights.size(); ++i) {
      TextCorpus::Source& source = data.train.sources[i];
      source = {config_.train[i], config_.weights[i], begin, source.end};
      begin = source.end;
    }
  }

  const TextSourceConfig& config_;
  const SourceInputs& inputs_;
  FileLists lists_;
  size_t bytes_;  // size_of_text() of all lists
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace

TextData load_text(const TextSourceConfig& config, const SourceInputs& inputs) {
  check_valid("data", config);
  if (config.train.empty() && !inputs.tokenizer) throw ConfigError("data: train names no file");
  return TextLoader(config, inputs).load();
}

}  // namespace capstan
