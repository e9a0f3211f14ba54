// Reads .model files of SentencePiece, which are messages of Protocol Buffers (sentencepiece_model.proto): checks what
// the library follows without looking, and takes out the pieces for exports. A file from elsewhere may hold anything:
// tests/data/tokenizers/test_sentencepiece.cpp and tests/fuzz/fuzz_sentencepiece_model.cpp.
#include "data/tokenizers/sentencepiece_model.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>

#include "core/base/error.hpp"

namespace capstan {

void refuse_sentencepiece_model(const std::string& origin, std::string_view why) {
  throw Error(
      fmt::format("{}: not a SentencePiece model, or a damaged one ({}); use another copy of it, or a new file name to "
                  "train a model",
                  origin, why));
}

namespace {

/// A field of a message in the wire format of Protocol Buffers.
struct Field {
  uint64_t number = 0;
  int wire_type = 0;       // 0 varint, 1 eight bytes, 2 bytes with a length, 5 four bytes
  std::string_view bytes;  // of types 1, 2 and 5
  uint64_t value = 0;      // of type 0
};

/// The fields of a message, in turn. Throws Error for bytes that are none.
class Message {
 public:
  Message(std::string_view bytes, const std::string& origin) : rest_(bytes), origin_(origin) {}

  std::optional<Field> next() {
    if (rest_.empty()) return std::nullopt;
    const uint64_t tag = varint();
    Field field{tag >> 3, static_cast<int>(tag & 7), {}};
    if (field.wire_type == 0)
      field.value = varint();
    else if (field.wire_type == 1)
      field.bytes = take(8);
    else if (field.wire_type == 2)
      field.bytes = take(varint());
    else if (field.wire_type == 5)
      field.bytes = take(4);
    else
      refuse_sentencepiece_model(origin_, "its fields cannot be told apart");
    return field;
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      const auto byte = static_cast<uint8_t>(take(1)[0]);
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    refuse_sentencepiece_model(origin_, "a number in it does not end");
  }

  std::string_view take(uint64_t size) {
    if (size > rest_.size()) refuse_sentencepiece_model(origin_, "it ends inside a field");
    const std::string_view front = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return front;
  }

  std::string_view rest_;
  const std::string& origin_;
};

/// A unit of the double-array trie of Darts: https://github.com/s-yata/darts-clone.
struct Unit {
  uint32_t bits;
  bool has_leaf() const { return (bits >> 8 & 1) != 0; }
  bool is_value() const { return bits >> 31 != 0; }
  uint32_t value() const { return bits & 0x7fffffff; }
  uint32_t offset() const { return (bits >> 10) << ((bits & (1u << 9)) >> 6); }
};

/// Throws Error where following a charsmap would lead out of it. It is the size of a trie in four bytes, the trie, and
/// texts ending with \0, into which the trie's values point.
void check_charsmap(std::string_view map, const std::string& origin) {
  if (map.empty()) return;
  uint32_t trie_size = 0;
  if (map.size() < sizeof(trie_size)) refuse_sentencepiece_model(origin, "its normalisation is truncated");
  std::memcpy(&trie_size, map.data(), sizeof(trie_size));
  map.remove_prefix(sizeof(trie_size));
  if (trie_size >= map.size()) refuse_sentencepiece_model(origin, "its normalisation is truncated");
  const std::string_view texts = map.substr(trie_size);
  if (texts.back() != '\0') refuse_sentencepiece_model(origin, "a text of its normalisation does not end");
  const size_t count = trie_size / sizeof(Unit);
  const auto unit = [&](size_t at) {
    Unit result{};
    std::memcpy(&result, map.data() + at * sizeof(Unit), sizeof(Unit));
    return result;
  };
  if (count == 0) refuse_sentencepiece_model(origin, "its normalisation has no entries");
  for (size_t at = 0; at < count; ++at) {
    const Unit from = unit(at);
    if (at > 0 && from.is_value()) continue;  // no byte of a text leads here
    const size_t to = at ^ from.offset();
    if ((to | 0xff) >= count) refuse_sentencepiece_model(origin, "its normalisation leads out of its table");
    if (from.has_leaf() && unit(to).value() >= texts.size())
      refuse_sentencepiece_model(origin, "its normalisation leads out of its texts");
  }
}

/// Does a normaliser change texts? Throws Error where its table is damaged. Fields are those of NormalizerSpec in
/// sentencepiece_model.proto: precompiled_charsmap 2, add_dummy_prefix 3, remove_extra_whitespaces 4.
bool changes_texts(std::string_view bytes, const std::string& origin) {
  bool puts_blank = true, drops_blanks = true, has_table = false;
  Message normaliser(bytes, origin);
  while (const auto field = normaliser.next()) {
    if (field->number == 2 && field->wire_type == 2) check_charsmap(field->bytes, origin);
    if (field->number == 2) has_table = !field->bytes.empty();
    if (field->number == 3) puts_blank = field->value != 0;
    if (field->number == 4) drops_blanks = field->value != 0;
  }
  return puts_blank || drops_blanks || has_table;
}

/// SentencePiece: piece 1, score 2, type 3.
SentencePieceContent::Piece piece_of(std::string_view bytes, const std::string& origin) {
  SentencePieceContent::Piece piece;
  Message message(bytes, origin);
  while (const auto field = message.next()) {
    if (field->number == 1 && field->wire_type == 2) piece.text = field->bytes;
    if (field->number == 2 && field->wire_type == 5)
      std::memcpy(&piece.score, field->bytes.data(), sizeof(piece.score));
    if (field->number == 3) piece.type = static_cast<SentencePieceContent::Type>(field->value);
    if (piece.text.find('\0') != std::string::npos)
      refuse_sentencepiece_model(origin, "a piece holds the character \\0");
    if (!std::isfinite(piece.score)) refuse_sentencepiece_model(origin, "the score of a piece is not a number");
  }
  return piece;
}

/// TrainerSpec: model_type 3 (1 unigram, 2 bpe), byte_fallback 35.
void read_trainer(std::string_view bytes, const std::string& origin, SentencePieceContent& content) {
  Message trainer(bytes, origin);
  while (const auto field = trainer.next()) {
    if (field->number == 3) content.is_unigram = field->value == 1;
    if (field->number == 3) content.is_bpe = field->value == 2;
    if (field->number == 35) content.byte_fallback = field->value != 0;
  }
}

}  // namespace

// ModelProto: pieces 1, trainer_spec 2, normalizer_spec 3, denormalizer_spec 5.
SentencePieceContent sentencepiece_content(std::string_view model, const std::string& origin) {
  SentencePieceContent content;
  Message fields(model, origin);
  while (const auto field = fields.next()) {
    if (field->wire_type != 2) continue;
    if (field->number == 1) content.pieces.push_back(piece_of(field->bytes, origin));
    if (field->number == 2) read_trainer(field->bytes, origin, content);
    if (field->number == 3) content.changes_texts = changes_texts(field->bytes, origin);
    if (field->number == 5) changes_texts(field->bytes, origin);  // for the check of its table
  }
  return content;
}

}  // namespace capstan
