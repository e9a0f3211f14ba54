// index.json and tokenizers are JSON behind a line with their fingerprint; the fingerprint of an index covers the
// tokens, too. Whenever tokens are opened, they are checked by it, and their ids by the size of the vocabulary. A
// folder gets its name by a rename once all of it is on the disk.
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

/// A JSON document and the fingerprint in the line in front of it, by which damage shows.
struct Sealed {
  std::string seal, json;

  std::string text() const { return seal + "\n" + json; }
  void check(const std::string& expected, const std::string& what) const {
    if (seal != expected) throw Error(fmt::format("{} is damaged", what));
  }
};

Sealed read_sealed(const std::string& path) {
  const std::string content = read_file(path);
  const size_t end = std::min(content.find('\n'), content.size());
  return {content.substr(0, end), content.substr(std::min(end + 1, content.size()))};
}

std::string seal_of(const std::string& json) { return Fingerprint().add(json).hex(); }

std::string to_json(const TextData& data) {
  nlohmann::json splits, warnings = nlohmann::json::array(), sources = nlohmann::json::array();
  for (const Split split : all_splits) {
    const TextCorpus& text = data[split];
    splits[to_string(split)] = {{"files", text.files}, {"bytes", text.bytes}, {"words", text.words}};
  }
  for (const DataWarning& warning : data.warnings) warnings.push_back({warning.check, warning.message});
  for (const TextCorpus::Source& source : data.train.sources) sources.push_back(source.end);
  return json_text(nlohmann::json{{"fingerprint", data.fingerprint},
                                  {"left_out", data.left_out},
                                  {"warnings", warnings},
                                  {"sources", sources},
                                  {"splits", splits}});
}

const std::string& created(const std::string& folder) {
  make_folders(folder);
  return folder;
}

/// Throws Error for an id that the vocabulary does not have: models look rows of tables up by them.
void check_ids(const std::vector<int32_t>& tokens, int64_t vocabulary, const std::string& path) {
  uint32_t largest = 0;
  for (const int32_t token : tokens) largest = std::max(largest, static_cast<uint32_t>(token));
  if (static_cast<int64_t>(largest) >= vocabulary)
    throw Error(fmt::format("{} holds the id {}, but the vocabulary has {}", path, largest, vocabulary));
}

}  // namespace

TextData index_from_json(const std::string& text, size_t sources) {
  const auto json = parse_json(text, {"the index"});
  constexpr int64_t most = int64_t{1} << 53;
  TextData data;
  try {
    data.fingerprint = json.at("fingerprint").get<std::string>();
    data.left_out = json.at("left_out").get<std::vector<std::string>>();
    for (const auto& warning : json.at("warnings"))
      data.warnings.push_back({warning.at(0).get<std::string>(), warning.at(1).get<std::string>()});
    for (const Split split : all_splits) {
      const auto& entry = json.at("splits").at(to_string(split));
      data[split].files = whole_number_at(entry, "files", 0, most);
      data[split].bytes = whole_number_at(entry, "bytes", 0, most);
      data[split].words = whole_number_at(entry, "words", 0, most);
    }
    int64_t begin = 0;
    for (const auto& end : json.at("sources")) {
      const auto place = whole_number(end, begin, most);
      if (!place) throw Error(fmt::format("the index has a source that ends at {}", json_excerpt(end)));
      data.train.sources.push_back({"", 1, begin, *place});
      begin = *place;
    }
  } catch (const nlohmann::json::exception&) {
    throw Error("the index lacks a key, or one has the wrong type");
  }
  if (data.train.sources.size() != sources)
    throw Error(fmt::format("the index has {} sources instead of {}", data.train.sources.size(), sources));
  return data;
}

std::shared_ptr<const Tokenizer> TokenCache::find_tokenizer(const std::string& settings_key) const {
  const std::string path = fmt::format("{}/tokenizer-{}.json", folder_, settings_key);
  if (!std::filesystem::exists(path)) return nullptr;
  try {
    const Sealed tokenizer = read_sealed(path);
    tokenizer.check(seal_of(tokenizer.json), path);
    return tokenizer_from_json(tokenizer.json, path);
  } catch (const Error&) {
    return nullptr;  // learning it again gives the same
  }
}

std::optional<TextData> TokenCache::find(const Tokenizer& tokenizer, int64_t vocabulary, size_t sources,
                                         const LogLine& log) const {
  const std::string folder = tokens_folder(tokenizer);
  if (!std::filesystem::exists(folder)) return std::nullopt;
  try {
    const Sealed index = read_sealed(folder + "/index.json");
    TextData data = index_from_json(index.json, sources);
    Fingerprint seal;
    seal.add(index.json);
    for (const Split split : all_splits) {
      const std::string path = file_of(folder, split);
      TokenRow& row = data[split].tokens = TokenRow::of_file(path, TokenRow::width_for(vocabulary));
      row.for_blocks([&](const std::vector<int32_t>& tokens) {
        seal.add(tokens);
        check_ids(tokens, vocabulary, path);
      });
    }
    index.check(seal.hex(), folder);
    if (sources > 0 && data.train.sources.back().end != data.train.size())
      throw Error("the index has sources that end elsewhere than the text");
    return data;
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
}

TokenCacheWriter::~TokenCacheWriter() {
  try {
    remove_tree(partial_);
  } catch (const std::exception&) {  // the next process removes it
  }
}

void TokenCacheWriter::save(TextData& data, const std::string& settings_key) const {
  const std::string unfinished = created(partial_ + "/tokens"), folder = cache_.tokens_folder(*data.tokenizer);
  Sealed index{"", to_json(data)};
  Fingerprint seal;
  seal.add(index.json);
  for (const Split split : all_splits) {
    FileWriter file(file_of(unfinished, split));
    data[split].tokens.for_blocks([&](const std::vector<int32_t>& tokens) {
      seal.add(tokens);
      file.write(TokenRow::bytes_of(tokens, data[split].tokens.width()));
    });
    file.sync();
    file.close();
  }
  index.seal = seal.hex();
  write_file(unfinished + "/index.json", index.text());
  sync_folder(unfinished);
  if (!settings_key.empty()) {
    const std::string json = data.tokenizer->to_json(), learnt = partial_ + "/tokenizer.json";
    write_file(learnt, Sealed{seal_of(json), json}.text());
    publish_file(learnt, fmt::format("{}/tokenizer-{}.json", cache_.folder(), settings_key));
  }
  remove_tree(folder);  // damaged, if it is there at all
  rename_path(unfinished, folder);
  sync_folder(cache_.folder());
  for (const Split split : all_splits)
    data[split].tokens = TokenRow::of_file(file_of(folder, split), data[split].tokens.width());
}

}  // namespace capstan
