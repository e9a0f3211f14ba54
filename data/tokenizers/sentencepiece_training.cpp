// Learns a SentencePiece model from texts (train_sentencepiece() of sentencepiece_tokenizer.hpp). The library's trainer
// ends the process where it finds a text or a size that it cannot use, so these are looked for first. The options below
// make models by which decoding gives a text back: tests/data/tokenizers/test_sentencepiece_training.cpp.
#include "data/tokenizers/sentencepiece_tokenizer.hpp"

#include <sentencepiece_trainer.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "core/strings/utf8.hpp"

namespace capstan {
namespace {

/// In bytes. SentencePiece leaves out sentences of more than 4192 bytes.
constexpr size_t longest_sentence = 1024;

/// Share of the characters of the training text that have pieces; the others are encoded as bytes.
constexpr double character_coverage = 0.9995;

const char* const newline_symbol = "\n";
const char* const tab_symbol = "\t";
const char* const blank_symbol = "\xe2\x96\x81";
const char* const unknown_mark = "\xe2\x96\x85";  // the trainer leaves sentences out that hold it

/// Lines of the texts, in pieces of at most longest_sentence; an even share of them when they are too many.
class Sentences final : public sentencepiece::SentenceIterator {
 public:
  Sentences(const Texts& texts, int64_t limit) : texts_(texts) {
    const auto bytes = static_cast<double>(texts.bytes());
    share_ = bytes > static_cast<double>(limit) ? static_cast<double>(limit) / bytes : 1;
    Next();
  }

  bool done() const override { return done_; }
  const std::string& value() const override { return sentence_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    do {
      while (at_ == text_.view().size()) {
        text_.pass(passed_, at_);
        if (next_text_ == texts_.count()) {
          done_ = true;
          return;
        }
        text_ = texts_.open(next_text_++);
        at_ = passed_ = 0;
      }
      cut_sentence();
      seen_ += share_ * static_cast<double>(sentence_.size());
    } while (sentence_.empty() || seen_ <= taken_);
    taken_ += static_cast<double>(sentence_.size());
  }

 private:
  void cut_sentence() {
    const std::string_view rest = text_.view().substr(at_), front = rest.substr(0, longest_sentence + 1);
    size_t end = std::min(front.find('\n'), front.size()), next = end + 1;
    if (end > longest_sentence) {
      const size_t blank = front.rfind(' ', longest_sentence);
      end = next = blank == 0 || blank == std::string_view::npos ? character_boundary(rest, longest_sentence) : blank;
    }
    sentence_ = rest.substr(0, end);
    at_ += std::min(next, rest.size());
    if (at_ - passed_ < text_block) return;
    text_.pass(passed_, at_);
    passed_ = at_;
  }

  const Texts& texts_;
  double share_ = 1, seen_ = 0, taken_ = 0;  // bytes that should have been taken by now, and that were
  size_t next_text_ = 0;
  Text text_ = Text("");
  size_t at_ = 0, passed_ = 0;  // bytes of text_
  std::string sentence_;
  bool done_ = false;
};

/// Bytes of the name of a fixed piece at the front of a text, which the trainer leaves out: `<unk>`, `<0x41>`.
size_t fixed_name(std::string_view text) {
  if (text.substr(0, 5) == "<unk>") return 5;
  return text.size() >= 6 && text.substr(0, 3) == "<0x" && text[5] == '>' ? 6 : 0;
}

/// What the sentences hold, as far as the trainer counts it.
struct Census {
  double characters = 0, blanks = 0;
  /// The trainer ends the process when it finds none, or only one, of the characters that it makes pieces of.
  bool two_kinds = false;
};

Census take_census(Sentences sentences) {
  const auto counts = [](uint32_t point) {
    return point > ' ' && point != 0x2581 && point != 0x2585 && point != 0xfffd;
  };
  Census census;
  uint32_t first = 0;
  for (; !sentences.done(); sentences.Next()) {
    const std::string& text = sentences.value();
    if (text.find(unknown_mark) != std::string::npos) continue;
    for (std::string_view rest = text; !rest.empty();) {
      if (const size_t name = fixed_name(rest); name > 0) {
        rest.remove_prefix(name);
        continue;
      }
      const Utf8Character character = first_character(rest);
      rest.remove_prefix(character.bytes);
      ++census.characters;
      if (character.code_point == ' ') ++census.blanks;
      if (!counts(character.code_point)) continue;
      if (first == 0) first = character.code_point;
      if (first != character.code_point) census.two_kinds = true;
    }
  }
  return census;
}

/// The number after `words` in a message of the trainer; empty if there is none.
std::string number_after(const std::string& message, const std::string& words) {
  const size_t at = message.find(words);
  if (at == std::string::npos) return "";
  const size_t begin = at + words.size();
  return message.substr(begin, message.find_first_not_of("0123456789", begin) - begin);
}

/// Throws what the trainer's message means for the keys of a configuration.
[[noreturn]] void refuse(const SentencePieceTokenizerConfig& config, const std::string& message) {
  const std::string most = number_after(message, "set it to a value <= ");
  if (!most.empty())
    throw ConfigError(
        fmt::format("data.tokenizer.vocabulary_size: the training text does not yield {} pieces; set it to {} "
                    "or less, or train on more text",
                    config.vocabulary_size, most));
  const std::string least = number_after(message, fmt::format("{} vs ", config.vocabulary_size));
  if (!least.empty())
    throw ConfigError(
        fmt::format("data.tokenizer.vocabulary_size: {} pieces are too few: single characters and bytes need {}; raise "
                    "it above that",
                    config.vocabulary_size, least));
  throw Error(fmt::format("data: SentencePiece cannot be trained: {}", message));
}

}  // namespace

std::string train_sentencepiece(const SentencePieceTokenizerConfig& config, const Texts& texts) {
  for (size_t i = 0; i < texts.count(); ++i) {
    TextPlace place;
    for_blocks(texts.open(i), character_boundary,
               [&](std::string_view text) { check_utf8(text, "training text", place); });
  }
  Sentences sentences(texts, config.training_bytes);
  const Census census = take_census(sentences);
  if (!census.two_kinds)
    throw Error(
        "data: there is no training text to learn the tokenizer's pieces from, or it repeats a single character; give "
        "more to data.train");
  std::vector<std::string> symbols = {newline_symbol, tab_symbol};
  // A blank too rare for the coverage needs a piece of its own, or it would be lost.
  if (census.blanks <= 2 * (1 - character_coverage) * census.characters) symbols.emplace_back(blank_symbol);
  // With no more pieces than these the trainer would end the process, or give a message that does not help.
  const int64_t fixed = 1 + static_cast<int64_t>(symbols.size()) + 256;
  if (config.vocabulary_size <= fixed) refuse(config, fmt::format("{} vs {}", config.vocabulary_size, fixed));
  std::string model;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train({{"model_type", enum_name(config.model_type)},
                                                  {"vocab_size", std::to_string(config.vocabulary_size)},
                                                  {"character_coverage", fmt::format("{}", character_coverage)},
                                                  {"byte_fallback", "true"},
                                                  {"user_defined_symbols", join(symbols, ",")},
                                                  {"bos_id", "-1"},
                                                  {"eos_id", "-1"},
                                                  {"normalization_rule_name", "identity"},
                                                  {"add_dummy_prefix", "false"},
                                                  {"remove_extra_whitespaces", "false"},
                                                  {"allow_whitespace_only_pieces", "true"},
                                                  {"num_threads", "1"},
                                                  {"minloglevel", "4"}},  // log nothing: errors are in the status
                                                 &sentences, &model);
  if (!status.ok()) refuse(config, status.message());
  return model;
}

}  // namespace capstan
