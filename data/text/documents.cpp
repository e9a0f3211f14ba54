// Finds where documents end, in a whole text and, by DocumentCutter, in one that comes in pieces of any length:
// tests/data/test_documents.cpp.
#include "data/text/documents.hpp"

#include <algorithm>

namespace capstan {
namespace {

constexpr std::string_view blanks = " \t\r", blanks_and_ends = " \t\r\n";

bool is_blank(std::string_view text) { return text.find_first_not_of(blanks) == std::string_view::npos; }

/// Bytes [begin, end) of a text that separate two documents and belong to neither.
struct Gap {
  size_t begin, end;
};

/// The first line of blanks alone, together with the line end in front of it: the gap of `blank-line` documents.
std::optional<Gap> blank_line(std::string_view text) {
  for (size_t at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) {
    const size_t next = text.find_first_not_of(blanks, at + 1);
    if (next != std::string_view::npos && text[next] == '\n') return Gap{at, next + 1};
  }
  return std::nullopt;
}

std::optional<Gap> first_gap(const DocumentsConfig& config, std::string_view text) {
  if (std::holds_alternative<BlankLineDocumentsConfig>(config)) return blank_line(text);
  const auto* const marker = std::get_if<MarkerDocumentsConfig>(&config);
  if (marker == nullptr && !std::holds_alternative<LineDocumentsConfig>(config)) return std::nullopt;
  const std::string_view sought = marker != nullptr ? std::string_view(marker->text) : "\n";
  const size_t at = text.find(sought);
  if (at == std::string_view::npos) return std::nullopt;
  return Gap{at, at + sought.size()};
}

void drop_blank_lines_before(std::string_view& text) {
  for (size_t end = text.find('\n'); end != std::string_view::npos && is_blank(text.substr(0, end));
       end = text.find('\n'))
    text.remove_prefix(end + 1);
}

void drop_blank_lines_behind(std::string_view& text) {
  for (size_t end = text.rfind('\n'); end != std::string_view::npos && is_blank(text.substr(end + 1));
       end = text.rfind('\n'))
    text = text.substr(0, end);
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
}

/// Where `text` ends with a beginning of the marker, whose rest may be in the next piece; text.size() if nowhere.
size_t marker_begin(std::string_view text, std::string_view marker) {
  for (size_t length = std::min(marker.size() - 1, text.size()); length > 0; --length)
    if (text.substr(text.size() - length) == marker.substr(0, length)) return text.size() - length;
  return text.size();
}

}  // namespace

std::optional<int32_t> end_of_document(const DocumentsConfig& config, const Tokenizer& tokenizer) {
  if (!has_documents(config)) return std::nullopt;
  return static_cast<int32_t>(tokenizer.vocabulary_size());
}

size_t document_boundary(const DocumentsConfig& config, std::string_view text, size_t at) {
  if (at >= text.size()) return text.size();
  text = text.substr(0, at);
  if (const auto* const marker = std::get_if<MarkerDocumentsConfig>(&config)) {
    const size_t begin = text.rfind(marker->text);
    return begin == std::string_view::npos ? 0 : begin + marker->text.size();
  }
  const bool lines = std::holds_alternative<LineDocumentsConfig>(config);
  if (!lines && !std::holds_alternative<BlankLineDocumentsConfig>(config)) return 0;
  for (size_t end = text.rfind('\n'); end != std::string_view::npos; end = text.rfind('\n')) {
    text = text.substr(0, end);
    const size_t last = text.find_last_not_of(blanks);
    if (lines || (last != std::string_view::npos && text[last] == '\n')) return end + 1;
  }
  return 0;
}

void DocumentCutter::push(std::string_view text, const Visit& visit) {
  kept_ += text;
  if (kept_.size() >= enough_) cut(visit);
}

void DocumentCutter::cut(const Visit& visit) {
  std::string_view left = kept_;
  for (auto gap = first_gap(config_, left); gap; gap = first_gap(config_, left)) {
    end_document(left.substr(0, gap->begin), visit);
    left.remove_prefix(gap->end);
  }
  if (!open_) drop_blank_lines_before(left);
  if (const size_t end = certain(left); end > 0) {
    visit(left.substr(0, end), false);
    left.remove_prefix(end);
    open_ = true;
  }
  kept_.erase(0, kept_.size() - left.size());
  enough_ = 2 * kept_.size();
}

void DocumentCutter::finish(const Visit& visit) {
  cut(visit);
  enough_ = 0;
  end_document(kept_, visit);
  kept_.clear();
}

void DocumentCutter::end_document(std::string_view text, const Visit& visit) {
  if (!open_) {
    drop_blank_lines_before(text);
    if (is_blank(text)) text = {};
  }
  drop_blank_lines_behind(text);
  if (open_ || !text.empty()) visit(text, true);
  open_ = false;
}

/// The length of the beginning of `text` that belongs to the document, whatever text follows.
size_t DocumentCutter::certain(std::string_view text) const {
  if (text.empty()) return 0;
  const auto* const marker = std::get_if<MarkerDocumentsConfig>(&config_);
  const size_t end = marker != nullptr ? marker_begin(text, marker->text) : text.size();
  const size_t last = text.substr(0, end).find_last_not_of(blanks_and_ends);
  if (last == std::string_view::npos) return 0;
  return boundary_(text, std::min(last + 1, text.size() - 1));  // the end of `text` itself would count as a boundary
}

void number_documents(Batch& batch, int32_t end_of_document) {
  const int64_t length = batch.tokens.dim(1);
  Ids segments = Ids::zeros(batch.tokens.shape());
  int32_t* const ids = segments.mutable_data();
  for (int64_t row = 0; row < batch.tokens.dim(0); ++row) {
    int32_t document = 1;
    for (int64_t t = row * length; t < (row + 1) * length && batch.segment_ids[t] != 0; ++t) {
      if (t > row * length && batch.tokens[t] == end_of_document) ++document;
      ids[t] = document;
    }
  }
  batch.segment_ids = std::move(segments);
}

}  // namespace capstan
