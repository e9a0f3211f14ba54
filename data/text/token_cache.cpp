// index.json and tokenizers are JSON with a fingerprint in front. Tokens are checked against their checksum and the
// size of the vocabulary whenever they are opened. What is made gets its name by a rename, when it is on the disk.
#include "data/text/token_cache.hpp"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/json.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"

namespace capstan {

namespace {

std::string file_of(const std::string& folder, Split split) {
  return fmt::format("{}/{}.tokens", folder, to_string(split));
}

/// A JSON document with its fingerprint in a line in front of it, so that damage shows.
std::string sealed(const std::string& json) { return Fingerprint().add(json).hex() + "\n" + json; }

/// The document of a file that sealed() made. Throws Error when it was changed.
std::string unsealed(const std::string& path) {
  const std::string content = read_file(path);
  const size_t end = std::min(content.find('\n'), content.size());
  const std::string json = content.substr(std::min(end + 1, content.size()));
  if (Fingerprint().add(json).hex() != content.substr(0, end)) throw Error(fmt::format("{} is damaged", path));
  return json;
}

std::string to_json(const TokenIndex& index) {
  nlohmann::json splits, warnings = nlohmann::json::array();
  for (const Split split : all_splits) {
    const TokenIndex::OfSplit& facts = index.splits[split];
    splits[to_string(split)] = {{"tokens", facts.size},
                                {"checksum", facts.checksum},
                                {"files", facts.files},
                                {"bytes", facts.bytes},
                                {"words", facts.words}};
  }
  for (const DataWarning& warning : index.warnings) warnings.push_back({warning.check, warning.message});
  return json_text(nlohmann::json{{"width", index.width},
                                  {"fingerprint", index.fingerprint},
                                  {"left_out", index.left_out},
                                  {"warnings", warnings},
                                  {"sources", index.source_ends},
                                  {"splits", splits}});
}

const std::string& created(const std::string& folder) {
  make_folders(folder);
  return folder;
}

/// The tokens of a file. Throws Error unless it holds what the index says, with ids below `vocabulary`: models look
/// rows of tables up by them.
TokenRow checked_row(const std::string& path, const TokenIndex::OfSplit& facts, int width, int64_t vocabulary) {
  TokenRow row = TokenRow::of_file(path, facts.size, width);
  Fingerprint checksum;
  row.for_blocks([&](const std::vector<int32_t>& tokens) {
    checksum.part(TokenRow::bytes_of(tokens, width));
    uint32_t largest = 0;
    for (const int32_t token : tokens) largest = std::max(largest, static_cast<uint32_t>(token));
    if (static_cast<int64_t>(largest) >= vocabulary)
      throw Error(fmt::format("{} holds the id {}, but the vocabulary has {}", path, largest, vocabulary));
  });
  if (checksum.hex() != facts.checksum) throw Error(fmt::format("{} is damaged", path));
  return row;
}

}  // namespace

TokenIndex index_from_json(const std::string& text, size_t sources, int64_t vocabulary) {
  const auto json = parse_json(text, {"the index"});
  constexpr int64_t most = int64_t{1} << 53;
  TokenIndex index;
  try {
    index.width = static_cast<int>(whole_number_at(json, "width", 1, 4));
    if (index.width != TokenRow::width_for(vocabulary))
      throw Error(fmt::format("the index says {} bytes per token, but the vocabulary has {}", index.width, vocabulary));
    index.fingerprint = json.at("fingerprint").get<std::string>();
    index.left_out = json.at("left_out").get<std::vector<std::string>>();
    for (const auto& warning : json.at("warnings"))
      index.warnings.push_back({warning.at(0).get<std::string>(), warning.at(1).get<std::string>()});
    for (const Split split : all_splits) {
      const auto& entry = json.at("splits").at(to_string(split));
      index.splits[split] = {whole_number_at(entry, "tokens", 0, most), entry.at("checksum").get<std::string>(),
                             whole_number_at(entry, "files", 0, most), whole_number_at(entry, "bytes", 0, most),
                             whole_number_at(entry, "words", 0, most)};
    }
    for (const auto& end : json.at("sources")) {
      const int64_t begin = index.source_ends.empty() ? 0 : index.source_ends.back();
      const auto place = whole_number(end, begin, index.splits.train.size);
      if (!place) throw Error(fmt::format("the index has a source that ends at {}", json_excerpt(end)));
      index.source_ends.push_back(*place);
    }
  } catch (const nlohmann::json::exception&) {
    throw Error("the index lacks a key, or one has the wrong type");
  }
  if (index.source_ends.size() != sources)
    throw Error(fmt::format("the index has {} sources instead of {}", index.source_ends.size(), sources));
  return index;
}

TokenWriter::TokenWriter(const std::string& file, TokenRow row) : path_(file), row_(std::move(row)) {
  if (!path_.empty()) file_.emplace(path_);
}

void TokenWriter::add(const std::vector<int32_t>& tokens) {
  if (!file_) return row_.append(tokens);
  const std::string bytes = TokenRow::bytes_of(tokens, row_.width());
  checksum_.part(bytes);
  file_->write(bytes);
}

TokenRow TokenWriter::finish(int64_t size) {
  if (!file_) return std::move(row_);
  file_->sync();
  file_->close();
  return TokenRow::of_file(path_, size, row_.width());
}

std::shared_ptr<const Tokenizer> TokenCache::find_tokenizer(const std::string& settings_key) const {
  const std::string path = fmt::format("{}/tokenizer-{}.json", folder_, settings_key);
  if (!std::filesystem::exists(path)) return nullptr;
  try {
    return tokenizer_from_json(unsealed(path), path);
  } catch (const Error&) {
    return nullptr;  // learning it again gives the same
  }
}

void TokenCache::remove_unfinished() const {
  const std::string partial = folder_ + "/.partial";
  if (!std::filesystem::exists(partial)) return;
  FileLock lock(folder_ + "/.lock");
  if (lock.try_lock()) remove_tree(partial);
}

std::optional<StoredTokens> TokenCache::find(const Tokenizer& tokenizer, int64_t vocabulary, size_t sources,
                                             const LogLine& log) const {
  const std::string folder = tokens_folder(tokenizer);
  if (!std::filesystem::exists(folder)) return std::nullopt;
  try {
    StoredTokens tokens{index_from_json(unsealed(folder + "/index.json"), sources, vocabulary), {}};
    for (const Split split : all_splits)
      tokens.rows[split] =
          checked_row(file_of(folder, split), tokens.index.splits[split], tokens.index.width, vocabulary);
    return tokens;
  } catch (const Error& problem) {
    if (log) log(fmt::format("data: the tokens in {} are damaged ({}): tokenising again", folder, problem.what()));
    return std::nullopt;
  }
}

TokenCacheWriter::TokenCacheWriter(const TokenCache& cache, const LogLine& log)
    : cache_(cache), lock_(created(cache.folder()) + "/.lock"), partial_(cache.folder() + "/.partial") {
  if (!lock_.try_lock()) {
    if (log) log(fmt::format("data: waiting for another process that tokenises this text into {}", cache.folder()));
    lock_.lock();
  }
  remove_tree(partial_);
  make_folders(partial_ + "/tokens");
}

TokenCacheWriter::~TokenCacheWriter() {
  try {
    remove_tree(partial_);
  } catch (const std::exception&) {  // the next process removes it
  }
}

std::string TokenCacheWriter::tokens_file(Split split) const { return file_of(partial_ + "/tokens", split); }

void TokenCacheWriter::save_tokenizer(const Tokenizer& tokenizer, const std::string& settings_key) const {
  const std::string unfinished = partial_ + "/tokenizer.json";
  write_file(unfinished, sealed(tokenizer.to_json()));
  publish_file(unfinished, fmt::format("{}/tokenizer-{}.json", cache_.folder(), settings_key));
}

void TokenCacheWriter::save(const TokenIndex& index, const Tokenizer& tokenizer) const {
  const std::string tokens = partial_ + "/tokens";
  write_file(tokens + "/index.json", sealed(to_json(index)));
  sync_folder(tokens);
  remove_tree(cache_.tokens_folder(tokenizer));  // damaged, if it is there at all
  rename_path(tokens, cache_.tokens_folder(tokenizer));
  sync_folder(cache_.folder());
}

}  // namespace capstan
