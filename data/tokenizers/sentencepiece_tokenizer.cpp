// A text is encoded line by line, and a line word by word where the pieces of the model allow it. What the model does
// with blanks is found by encoding short texts (learn_manners).
#include "data/tokenizers/sentencepiece_tokenizer.hpp"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/strings/base64.hpp"
#include "core/strings/utf8.hpp"
#include "data/files/text_file.hpp"
#include "data/tokenizers/sentencepiece_model.hpp"

namespace capstan {
namespace {

const std::string blank_mark = "\xe2\x96\x81";  // U+2581: a blank, inside of SentencePiece

/// Longer lines are cut where a word begins, and words of twice that anywhere: encoding takes some hundred bytes of
/// memory per character.
constexpr size_t longest_part = 1 << 16;

void check_status(const sentencepiece::util::Status& status, const std::string& origin) {
  if (!status.ok()) refuse_sentencepiece_model(origin, status.message());
}

std::string with_blanks(const std::string& piece) {
  std::string text;
  size_t begin = 0;
  for (size_t at = piece.find(blank_mark); at != std::string::npos; at = piece.find(blank_mark, begin)) {
    text.append(piece, begin, at - begin).push_back(' ');
    begin = at + blank_mark.size();
  }
  return text.append(piece, begin);
}

/// The byte of a piece "<0x41>".
char byte_of(const std::string& piece, const std::string& origin) {
  uint8_t byte = 0;
  const char* const end = piece.data() + piece.size();
  if (piece.size() != 6 || piece.compare(0, 3, "<0x") != 0 || piece.back() != '>' ||
      std::from_chars(end - 3, end - 1, byte, 16).ptr != end - 1)
    refuse_sentencepiece_model(origin, "a piece of a byte that names none");
  return static_cast<char>(byte);
}

/// Is there a blank after a character that is none, so that the piece holds the beginning of a further word?
bool reaches_across_words(const std::string& piece) {
  const size_t first = piece.find_first_not_of(' ');
  return first != std::string::npos && piece.find(' ', first) != std::string::npos;
}

bool begins_word(std::string_view text, size_t at) { return text[at] == ' ' && text[at - 1] != ' '; }

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(std::string model, const std::string& origin)
    : model_(std::move(model)), processor_(std::make_unique<sentencepiece::SentencePieceProcessor>()) {
  sentencepiece_content(model_, origin);  // whose tables the library follows without looking
  check_status(processor_->LoadFromSerializedProto(model_), origin);
  learn_pieces(origin);
  learn_manners();
}

SentencePieceTokenizer::~SentencePieceTokenizer() = default;
SentencePieceTokenizer::SentencePieceTokenizer(SentencePieceTokenizer&&) noexcept = default;

SentencePieceTokenizer SentencePieceTokenizer::from_file(const std::string& path) {
  return SentencePieceTokenizer(read_text_file(path), path);
}

std::optional<int32_t> SentencePieceTokenizer::unknown_token() const {
  const int id = processor_->unk_id();
  return id < 0 ? std::nullopt : std::optional<int32_t>(id);
}

void SentencePieceTokenizer::learn_pieces(const std::string& origin) {
  const auto& model = *processor_;
  const int newline = model.PieceToId("\n"), newline_byte = model.PieceToId("<0x0A>");
  end_of_line_ = newline != model.unk_id()        ? newline
                 : newline_byte != model.unk_id() ? newline_byte
                 : model.eos_id() >= 0            ? model.eos_id()
                                                  : model.unk_id();
  for (int id = 0; id < model.GetPieceSize(); ++id) {
    const std::string& piece = model.IdToPiece(id);
    if (id == end_of_line_)
      pieces_.emplace_back("\n");
    else if (model.IsUnknown(id))
      pieces_.emplace_back("\xef\xbf\xbd");
    else if (model.IsControl(id))
      pieces_.emplace_back();
    else if (model.IsByte(id))
      pieces_.emplace_back(1, byte_of(piece, origin));
    else
      pieces_.push_back(with_blanks(piece));
  }
}

/// The processor does not give its settings; they are inferred from what it does.
void SentencePieceTokenizer::learn_manners() {
  const auto back_and_forth = [this](std::string_view text) {
    std::vector<int32_t> ids;
    encode_part(text, ids);
    std::string decoded;
    for (const int32_t id : ids) decoded += pieces_[static_cast<size_t>(id)];
    return decoded;
  };
  const std::string a = back_and_forth("a");  // U+FFFD where the model does not know it
  invents_blank_ = a[0] == ' ';
  by_words_ = back_and_forth(" a  a ") == " " + a + "  " + a + " " &&
              processor_->PieceToId(blank_mark) != processor_->unk_id() &&
              std::none_of(pieces_.begin(), pieces_.end(), reaches_across_words);
}

void SentencePieceTokenizer::encode_part(std::string_view part, std::vector<int32_t>& ids) const {
  std::vector<int> part_ids;
  const auto status = processor_->Encode({part.data(), part.size()}, &part_ids);
  if (!status.ok()) throw Error(fmt::format("SentencePiece cannot encode a text: {}", status.message()));
  ids.insert(ids.end(), part_ids.begin(), part_ids.end());
}

void SentencePieceTokenizer::encode_line(std::string_view line, std::vector<int32_t>& ids) const {
  const size_t least = by_words_ ? 1 : longest_part;
  while (!line.empty()) {
    size_t end = std::min(least, line.size());
    // A blank that is invented within a word would stay there: such models get whole words.
    const size_t most = invents_blank_ ? line.size() : std::min(2 * longest_part, line.size());
    while (end < most && !begins_word(line, end)) ++end;
    if (end < line.size()) end = character_boundary(line, end);
    encode_part(line.substr(0, end), ids);
    if (end < line.size() && invents_blank_) ++end;  // the next part's invented blank is this one
    line.remove_prefix(end);
  }
}

std::vector<int32_t> SentencePieceTokenizer::encode(std::string_view text, const std::string& file) const {
  check_utf8(text, file);
  std::vector<int32_t> ids;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    encode_line(text.substr(0, end), ids);
    if (end < text.size()) ids.push_back(end_of_line_);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return ids;
}

std::string SentencePieceTokenizer::piece(int32_t id, int32_t previous) const {
  check_id(id);
  const std::string& text = pieces_[static_cast<size_t>(id)];
  const bool first_of_line = previous < 0 || previous == end_of_line_;
  return invents_blank_ && first_of_line && !text.empty() && text[0] == ' ' ? text.substr(1) : text;
}

std::string SentencePieceTokenizer::token_name(int32_t id) const {
  check_id(id);
  const auto& model = *processor_;
  const bool special = id != end_of_line_ && (model.IsByte(id) || model.IsControl(id) || model.IsUnknown(id));
  return special ? model.IdToPiece(id) : pieces_[static_cast<size_t>(id)];
}

size_t SentencePieceTokenizer::word_boundary(std::string_view text, size_t at) {
  if (at >= text.size()) return text.size();
  while (at > 0 && text[at] != '\n' && text[at - 1] != '\n' && !begins_word(text, at)) --at;
  return at;
}

size_t SentencePieceTokenizer::boundary(std::string_view text, size_t at) const {
  if (by_words_) return word_boundary(text, at);
  if (at >= text.size()) return text.size();
  while (at > 0 && text[at] != '\n' && text[at - 1] != '\n') --at;
  return at;
}

void SentencePieceTokenizer::save_to(nlohmann::json& json) const { json["model"] = to_base64(model_); }

}  // namespace capstan
