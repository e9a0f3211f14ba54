// What the tests of SentencePiece share.
#pragma once

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/random.hpp"
#include "core/strings/utf8.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "tests/data/support.hpp"

namespace capstan {

/// Sentences of made-up words, the same ones every time.
inline std::string sentencepiece_story(uint64_t seed, int words,
                                       const std::vector<std::string>& syllables = {"ba", "ro", "sti", "n", "Ge", "ly",
                                                                                    "mu"}) {
  RandomStream random(random_key(seed, "story"));
  std::string text;
  for (int i = 0; i < words; ++i) {
    const auto parts = 1 + random.below(3);
    for (uint64_t part = 0; part < parts; ++part) text += syllables[random.below(syllables.size())];
    text += i % 9 == 8 ? ".\n" : " ";
  }
  return text;
}

inline SentencePieceTokenizerConfig sentencepiece_config(SentencePieceType type, int64_t size) {
  SentencePieceTokenizerConfig config;
  config.model_type = type;
  config.vocabulary_size = size;
  return config;
}

inline const std::vector<SentencePieceType> sentencepiece_types = {SentencePieceType::bpe, SentencePieceType::unigram};

/// A model as others train it: a blank invented before each text, blanks folded, nmt_nfkc, no bytes.
inline std::string foreign_model(const std::string& text,
                                 const std::unordered_map<std::string, std::string>& more = {}) {
  struct GivenLines final : sentencepiece::SentenceIterator {
    std::vector<std::string> lines;
    size_t at = 0;
    bool done() const override { return at == lines.size(); }
    void Next() override { ++at; }
    const std::string& value() const override { return lines[at]; }
    sentencepiece::util::Status status() const override { return {}; }
  } lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.lines.push_back(line);
  std::unordered_map<std::string, std::string> options = {{"vocab_size", "60"}, {"minloglevel", "4"}};
  for (const auto& option : more) options[option.first] = option.second;
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &lines, &model);
  REQUIRE_MESSAGE(status.ok(), status.ToString());
  return model;
}

inline std::string random_spaced_text(uint64_t seed, int characters) {
  RandomStream random(random_key(seed, "text"));
  std::string text;
  for (int i = 0; i < characters; ++i) {
    static const uint32_t limits[] = {0x80, 0x800, 0x10000, 0x110000};
    uint32_t point = static_cast<uint32_t>(random.below(limits[random.below(4)]));
    if ((point >= 0xd800 && point < 0xe000) || point == 0x2581) point = '\n';
    append_utf8(text, random.below(4) == 0 ? ' ' : point);
  }
  return text;
}

}  // namespace capstan
