// data/text/documents: the documents of a text do not depend on the pieces it comes in.
#include "data/text/documents.hpp"

#include "data/tokenizers/tokenizer.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {
namespace {

std::vector<std::string> documents_of(const DocumentsConfig& config, std::string_view text, size_t piece) {
  const ByteTokenizer bytes;
  DocumentCutter cutter(config, boundary_of(bytes));
  std::vector<std::string> documents(1);
  const auto visit = [&](std::string_view part, bool last) {
    documents.back() += part;
    if (last) documents.emplace_back();
  };
  while (!text.empty()) cutter.push(take(text, piece), visit);
  cutter.finish(visit);
  require(documents.back().empty(), "the last document ends with the text");
  return documents;
}

void cut_documents(std::string_view input) {
  const size_t kind = choose(input, 4), piece = 1 + choose(input, 32);
  const DocumentsConfig config = kind == 0   ? DocumentsConfig(FileDocumentsConfig{})
                                 : kind == 1 ? DocumentsConfig(LineDocumentsConfig{})
                                 : kind == 2 ? DocumentsConfig(BlankLineDocumentsConfig{})
                                             : DocumentsConfig(MarkerDocumentsConfig{"<s>"});
  input = input.substr(0, 2000);
  require(documents_of(config, input, piece) == documents_of(config, input, input.size() + 1),
          "documents do not depend on the pieces");
  require(document_boundary(config, input, input.size() / 2) <= input.size(), "a boundary is within the text");
}

const Registered documents_target("documents", cut_documents);

}  // namespace
}  // namespace capstan::fuzz
