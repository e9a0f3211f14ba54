#include "data/text/token_cache.hpp"

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/io/file.hpp"
#include "core/io/json.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"

namespace capstan {

const std::array<const char*, 3> split_names = {"train", "valid", "test"};

namespace {

std::string tokens_file(const std::string& folder, size_t split) {
  return fmt::format("{}/{}.tokens", folder, split_names[split]);
}

/// A JSON document after its fingerprint, so that damage shows.
std::string sealed(const std::string& json) { return Fingerprint().add(json).hex() + "\n" + json; }

/// Throws Error when the document was changed.
std::string unsealed(const std::string& path) {
  const std::string all = read_file(path);
  const size_t end = std::min(all.find('\n'), all.size());
  const std::string json = all.substr(std::min(end + 1, all.size()));
  if (Fingerprint().add(json).hex() != all.substr(0, end)) throw Error(fmt::format("{} is damaged", path));
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

TokenIndex index_from(const std::string& text) {
  const auto json = parse_json(text);
  TokenIndex index;
  index.width = json.at("width");
  index.fingerprint = json.at("fingerprint");
  index.left_out = json.at("left_out").get<std::vector<std::string>>();
  for (size_t i = 0; i < split_names.size(); ++i) {
    const auto& found = json.at("splits").at(split_names[i]);
    TokenIndex::Split& split = index.splits[i];
    split.size = found.at("tokens");
    split.checksum = found.at("checksum");
    for (const auto& file : found.at("files"))
      split.files.push_back({file.at(0), file.at(1), file.at(2), file.at(3), file.at(4), file.at(5)});
  }
  return index;
}

const std::string& created(const std::string& folder) {
  make_folders(folder);
  return folder;
}

/// Throws Error unless the file holds what the index says.
void check_tokens(const std::string& path, const TokenIndex::Split& split, int width) {
  const auto file = std::make_shared<const MappedFile>(path);
  if (file->size() != static_cast<size_t>(split.size) * static_cast<size_t>(width))
    throw Error(fmt::format("{} has {} bytes instead of {}", path, file->size(), split.size * width));
  Fingerprint checksum;
  for_blocks(
      Text(file, 0, file->size(), nullptr), [](std::string_view, size_t at) { return at; },
      [&](std::string_view block) { checksum.part(block); });
  if (checksum.hex() != split.checksum) throw Error(fmt::format("{} is damaged", path));
}

}  // namespace

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
    return nullptr;  // it is learnt again, and is the same
  }
}

std::optional<TokenIndex> TokenCache::find(const Tokenizer& tokenizer, const LogLine& log) const {
  if (!std::filesystem::exists(tokens_folder(tokenizer))) return std::nullopt;
  try {
    return open(tokenizer);
  } catch (const Error& problem) {
    if (log) log(fmt::format("data: {}: tokenising again", problem.what()));
    return std::nullopt;
  }
}

TokenIndex TokenCache::open(const Tokenizer& tokenizer) const {
  const std::string folder = tokens_folder(tokenizer);
  TokenIndex index = index_from(unsealed(folder + "/index.json"));
  for (size_t i = 0; i < split_names.size(); ++i) check_tokens(tokens_file(folder, i), index.splits[i], index.width);
  return index;
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
  } catch (const std::exception&) {  // the next one clears it away
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
