// index.json and tokenizers are JSON with a fingerprint in front. Tokens are checked against their checksum and the
// size of the vocabulary whenever they are opened. What is made gets its name by a rename, when it is on the disk.
#include "data/text/token_cache.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/json.hpp"
#include "data/files/token_row.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"

namespace capstan {

const std::array<const char*, 3> split_names = {"train", "valid", "test"};

namespace {

std::string tokens_file(const std::string& folder, size_t split) {
  return fmt::format("{}/{}.tokens", folder, split_names[split]);
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
  nlohmann::json splits;
  for (size_t i = 0; i < split_names.size(); ++i) {
    const TokenIndex::Split& split = index.splits[i];
    nlohmann::json files = nlohmann::json::array();
    for (const TokenIndex::File& file : split.files)
      files.push_back({file.list, file.number, file.begin, file.end, file.text_begin, file.text_end});
    splits[split_names[i]] = {{"tokens", split.size}, {"checksum", split.checksum}, {"files", files}};
  }
  return json_text(nlohmann::json{
      {"width", index.width}, {"fingerprint", index.fingerprint}, {"left_out", index.left_out}, {"splits", splits}});
}

/// entry[at], which must be a whole number from `low` to `count`. Throws Error for another one.
int64_t place_at(const nlohmann::json& entry, size_t at, int64_t low, int64_t count) {
  const auto place = whole_number(entry.at(at), low, count);
  if (!place)
    throw Error(fmt::format("a piece has {} where {} to {} is possible", json_excerpt(entry[at]), low, count));
  return *place;
}

TokenIndex::File file_from(const nlohmann::json& entry, const FileCounts& counts, int64_t tokens) {
  if (!entry.is_array() || entry.size() != 6) throw Error("a piece is not a list of six numbers");
  constexpr int64_t any = int64_t{1} << 53;
  TokenIndex::File file;
  file.list = static_cast<size_t>(place_at(entry, 0, 0, static_cast<int64_t>(counts.size()) - 1));
  file.number = static_cast<size_t>(place_at(entry, 1, 0, static_cast<int64_t>(counts[file.list]) - 1));
  file.begin = place_at(entry, 2, 0, tokens);
  file.end = place_at(entry, 3, file.begin, tokens);
  file.text_begin = place_at(entry, 4, 0, any);
  file.text_end = place_at(entry, 5, file.text_begin, any);
  return file;
}

/// Throws Error unless all tokens of a block of the file are below `vocabulary`: models look rows of tables up by them.
void check_ids(std::string_view block, int width, int64_t vocabulary, const std::string& path) {
  uint32_t largest = 0;
  for (size_t at = 0; at + static_cast<size_t>(width) <= block.size(); at += static_cast<size_t>(width)) {
    uint32_t id = 0;
    std::memcpy(&id, block.data() + at, static_cast<size_t>(width));  // little-endian
    largest = std::max(largest, id);
  }
  if (static_cast<int64_t>(largest) >= vocabulary)
    throw Error(fmt::format("{} holds the id {}, but the vocabulary has {}", path, largest, vocabulary));
}

const std::string& created(const std::string& folder) {
  make_folders(folder);
  return folder;
}

/// Throws Error unless the file holds what the index says.
void check_tokens(const std::string& path, const TokenIndex::Split& split, int width, int64_t vocabulary) {
  const auto file = std::make_shared<const MappedFile>(path);
  if (file->size() != static_cast<size_t>(split.size) * static_cast<size_t>(width))
    throw Error(fmt::format("{} has {} bytes instead of {}", path, file->size(), split.size * width));
  Fingerprint checksum;
  for_blocks(
      Text(file, 0, file->size(), nullptr),
      [width](std::string_view, size_t at) { return at - at % static_cast<size_t>(width); },
      [&](std::string_view block) {
        checksum.part(block);
        check_ids(block, width, vocabulary, path);
      });
  if (checksum.hex() != split.checksum) throw Error(fmt::format("{} is damaged", path));
}

}  // namespace

TokenIndex index_from_json(const std::string& text, const FileCounts& files, int64_t vocabulary) {
  const auto json = parse_json(text, {"the index"});
  TokenIndex index;
  try {
    index.width = static_cast<int>(whole_number_at(json, "width", 1, 4));
    if (index.width != TokenRow::width_for(vocabulary))
      throw Error(fmt::format("the index says {} bytes per token, but the vocabulary has {}", index.width, vocabulary));
    index.fingerprint = json.at("fingerprint").get<std::string>();
    index.left_out = json.at("left_out").get<std::vector<std::string>>();
    for (size_t i = 0; i < split_names.size(); ++i) {
      const auto& entry = json.at("splits").at(split_names[i]);
      TokenIndex::Split& split = index.splits[i];
      split.size = whole_number_at(entry, "tokens", 0, int64_t{1} << 53);
      split.checksum = entry.at("checksum").get<std::string>();
      for (const auto& file : entry.at("files")) split.files.push_back(file_from(file, files, split.size));
    }
  } catch (const nlohmann::json::exception&) {
    throw Error("the index lacks a key, or one has the wrong type");
  }
  return index;
}

void TokenWriter::add(const std::vector<int32_t>& tokens) {
  const auto width = static_cast<size_t>(width_);
  bytes_.resize(tokens.size() * width);
  for (size_t i = 0; i < tokens.size(); ++i) std::memcpy(&bytes_[i * width], &tokens[i], width);  // little-endian
  checksum_.part(bytes_);
  file_.write(bytes_);
}

std::string TokenWriter::finish() {
  file_.sync();
  file_.close();
  return checksum_.hex();
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

std::optional<TokenIndex> TokenCache::find(const Tokenizer& tokenizer, int64_t vocabulary, const FileCounts& files,
                                           const LogLine& log) const {
  const std::string folder = tokens_folder(tokenizer);
  if (!std::filesystem::exists(folder)) return std::nullopt;
  try {
    return open(tokenizer, vocabulary, files);
  } catch (const Error& problem) {
    if (log) log(fmt::format("data: the tokens in {} are damaged ({}): tokenising again", folder, problem.what()));
    return std::nullopt;
  }
}

TokenIndex TokenCache::open(const Tokenizer& tokenizer, int64_t vocabulary, const FileCounts& files) const {
  const std::string folder = tokens_folder(tokenizer);
  TokenIndex index = index_from_json(unsealed(folder + "/index.json"), files, vocabulary);
  for (size_t i = 0; i < split_names.size(); ++i)
    check_tokens(tokens_file(folder, i), index.splits[i], index.width, vocabulary);
  return index;
}

std::string TokenCache::index_fingerprint(const Tokenizer& tokenizer) const {
  const std::string path = tokens_folder(tokenizer) + "/index.json";
  const auto json = parse_json(unsealed(path), {path});
  const auto found = json.find("fingerprint");
  if (found == json.end() || !found->is_string()) throw Error(fmt::format("{} lacks a fingerprint", path));
  return found->get<std::string>();
}

FolderLock::FolderLock(const std::string& folder, const LogLine& log) : file_(created(folder) + "/.lock") {
  if (file_.try_lock()) return;
  if (log) log(fmt::format("data: waiting for another process that tokenises this text into {}", folder));
  file_.lock();
}

TokenCacheWriter::TokenCacheWriter(const TokenCache& cache, const LogLine& log)
    : cache_(cache), lock_(cache.folder(), log), partial_(cache.folder() + "/.partial") {
  remove_tree(partial_);
  make_folders(scratch());
  make_folders(tokens());
}

TokenCacheWriter::~TokenCacheWriter() {
  try {
    remove_tree(partial_);
  } catch (const std::exception&) {  // the next process removes it
  }
}

void TokenCacheWriter::save_tokenizer(const Tokenizer& tokenizer, const std::string& settings_key) const {
  const std::string unfinished = partial_ + "/tokenizer.json";
  write_file(unfinished, sealed(tokenizer.to_json()));
  publish_file(unfinished, fmt::format("{}/tokenizer-{}.json", cache_.folder(), settings_key));
}

void TokenCacheWriter::save(const TokenIndex& index, const Tokenizer& tokenizer) const {
  write_file(tokens() + "/index.json", sealed(to_json(index)));
  sync_folder(tokens());
  remove_tree(cache_.tokens_folder(tokenizer));  // damaged, if it is there at all
  rename_path(tokens(), cache_.tokens_folder(tokenizer));
  sync_folder(cache_.folder());
}

}  // namespace capstan
