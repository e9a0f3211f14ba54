// Where a document ends and the next one begins, in text and in tokens (data.documents), for text_loading and
// text_windows. tests/data/test_documents.cpp holds that neither pieces nor threads change the documents.
//
// With documents, the text between two of them is not encoded. Instead every document is followed by one token, the end
// of a document. Its id is the first one after the tokenizer's vocabulary, so tokenizers do not depend on it. Documents
// can therefore be found in any part of a row of tokens.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/array/batch.hpp"
#include "core/config/schema.hpp"
#include "data/tokenizers/tokenizer.hpp"

namespace capstan {

struct NoDocumentOptions {};
template <class Fields>
void describe(Fields&, NoDocumentOptions&) {}

struct NoDocumentsConfig : NoDocumentOptions {
  static constexpr const char* type_name = "none";
};
struct FileDocumentsConfig : NoDocumentOptions {
  static constexpr const char* type_name = "file";
};
struct LineDocumentsConfig : NoDocumentOptions {
  static constexpr const char* type_name = "line";
};
struct BlankLineDocumentsConfig : NoDocumentOptions {
  static constexpr const char* type_name = "blank-line";
};
struct MarkerDocumentsConfig {
  static constexpr const char* type_name = "marker";
  std::string text = "<|endoftext|>";
};
template <class Fields>
void describe(Fields& f, MarkerDocumentsConfig& c) {
  f("text", c.text, not_empty(), "the marker between two documents, on a line of its own or within one");
}

/// YAML: documents: line, or documents: {type: marker, text: "<s>"}. The end of a file is the end of a document in all
/// of them but `none`.
using DocumentsConfig = std::variant<NoDocumentsConfig, FileDocumentsConfig, LineDocumentsConfig,
                                     BlankLineDocumentsConfig, MarkerDocumentsConfig>;

inline bool has_documents(const DocumentsConfig& config) { return !std::holds_alternative<NoDocumentsConfig>(config); }

/// The token after every document; none without documents.
std::optional<int32_t> end_of_document(const DocumentsConfig& config, const Tokenizer& tokenizer);

/// A position <= `at`, as near as possible, where a document ends, the text between it and the next one included; 0
/// when there is none.
size_t document_boundary(const DocumentsConfig& config, std::string_view text, size_t at);

/// Cuts a text that comes in pieces into documents. Blank lines before and after a document are not part of it, nor is
/// the end of its last line; a document of nothing else is none. What it gives does not depend on the pieces.
class DocumentCutter {
 public:
  /// Takes a part of a document; with the last part, which may be empty, the document ends. Parts are cut where the
  /// boundary allows it.
  using Visit = std::function<void(std::string_view part, bool last)>;

  /// boundary: Tokenizer::boundary().
  DocumentCutter(const DocumentsConfig& config, Boundary boundary) : config_(config), boundary_(std::move(boundary)) {}

  /// Holds back the end of the text while it may be part of what separates documents.
  void push(std::string_view text, const Visit& visit);
  /// Ends the text: the last document ends with its file.
  void finish(const Visit& visit);

 private:
  void cut(const Visit& visit);
  void end_document(std::string_view text, const Visit& visit);
  size_t certain(std::string_view text) const;

  DocumentsConfig config_;
  Boundary boundary_;
  std::string kept_;
  size_t enough_ = 0;  // bytes of kept_ that are worth a search, so that not every piece searches them again
  bool open_ = false;  // a part of the present document has been given
};

/// Gives the documents of every row segment ids 1, 2, ... . A token `end_of_document` is the first token of the
/// document after it, since that document's first token is predicted from it. Padding stays padding.
void number_documents(Batch& batch, int32_t end_of_document);

}  // namespace capstan
