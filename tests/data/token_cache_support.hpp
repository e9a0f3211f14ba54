// Texts, caches and comparisons for the tests of text that is tokenised to the disk.
#pragma once

#include <algorithm>
#include <map>

#include "data/text/text_source.hpp"
#include "support.hpp"

namespace capstan::testing {
namespace fs = std::filesystem;

inline std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Lines of words, numbers and accents; other ones for another seed.
inline std::string story(size_t bytes, int seed = 1) {
  static const std::vector<std::string> words = {"one", "two", "caf\xc3\xa9", "the", "tree", "\xe6\xbc\xa2", "of", "-"};
  std::string text;
  auto state = static_cast<uint32_t>(seed);
  for (int i = 1; text.size() < bytes; ++i) {
    state = state * 1664525 + 1013904223;
    text += words[state >> 29] + (i % 11 == 0 ? "\n" : " ");
    if (i % 50 == 0) text += std::to_string(state % 1000);
  }
  return text;
}

/// What the loading of a text told.
struct Told {
  std::vector<std::string> all;
  LogLine log() {
    return [this](const std::string& line) { all.push_back(line); };
  }
  bool have(const std::string& part) const {
    return std::any_of(all.begin(), all.end(), [&](const std::string& line) { return contains(line, part); });
  }
};

inline TextSourceConfig cached(const TemporaryFolder& folder, std::vector<std::string> train) {
  TextSourceConfig config;
  config.train = std::move(train);
  config.cache = folder.path("cache");
  return config;
}

/// The same text, kept nowhere.
inline TextSourceConfig in_memory(TextSourceConfig config) {
  config.cache = "";
  return config;
}

/// loaded() that holds texts and tokens in files without a name, however small they are.
inline TextData load_in_files(const TextSourceConfig& config, const LogLine& log = nullptr) {
  return loaded(config, nullptr, log, 0);
}

/// The files of a cache that stay, by name; locks left out.
inline std::map<std::string, std::string> kept_files(const TemporaryFolder& folder) {
  std::map<std::string, std::string> files;
  const fs::path cache = folder.path("cache");
  if (!fs::exists(cache)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(cache)) {
    const std::string name = entry.path().lexically_relative(cache).string();
    if (entry.is_regular_file() && !contains(name, ".lock")) files[name] = content_of(entry.path());
  }
  return files;
}

/// The file of a cache whose name ends so.
inline std::string file_called(const TemporaryFolder& folder, const std::string& ending) {
  for (const auto& entry : fs::recursive_directory_iterator(folder.path("cache")))
    if (entry.is_regular_file() && contains(entry.path().string() + "$", ending + "$")) return entry.path().string();
  FAIL("no file ", ending);
  return "";
}

inline void check_equal(const TextCorpus& a, const TextCorpus& b) {
  CHECK(a.tokens.to_vector() == b.tokens.to_vector());
  CHECK(a.end_of_document == b.end_of_document);
  REQUIRE(a.sources.size() == b.sources.size());
  for (size_t i = 0; i < a.sources.size(); ++i) {
    CHECK(a.sources[i].name == b.sources[i].name);
    CHECK(a.sources[i].weight == b.sources[i].weight);
    CHECK(a.sources[i].begin == b.sources[i].begin);
    CHECK(a.sources[i].end == b.sources[i].end);
  }
  CHECK(a.files == b.files);
  CHECK(a.bytes == b.bytes);
  CHECK(a.words == b.words);
}

inline void check_equal(const TextData& a, const TextData& b) {
  check_equal(a.train, b.train);
  check_equal(a.valid, b.valid);
  check_equal(a.test, b.test);
  CHECK(a.tokenizer->fingerprint() == b.tokenizer->fingerprint());
  CHECK(a.fingerprint == b.fingerprint);
  CHECK(a.left_out == b.left_out);
  REQUIRE(a.warnings.size() == b.warnings.size());
  for (size_t i = 0; i < a.warnings.size(); ++i) CHECK(a.warnings[i].message == b.warnings[i].message);
}

inline std::vector<TokenizerConfig> tokenizers() {
  WordTokenizerConfig words;
  SentencePieceTokenizerConfig pieces;
  words.split = WordSplit::words;
  words.max_size = 400;
  pieces.vocabulary_size = 330;
  pieces.training_bytes = 20000;
  return {ByteTokenizerConfig{}, CharTokenizerConfig{}, words, pieces};
}

}  // namespace capstan::testing
