// A file is known by bytes at a fixed place. Documents of Office are zip archives, which the names of their first files
// tell apart.
#include "data/files/file_kind.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace capstan {
namespace {

using std::string_view_literals::operator""sv;

struct FileKind {
  size_t place;  // of the bytes in the file
  std::string_view bytes;
  const char* what;
  const char* remedy;
};

constexpr const char *save_as_text = "save it as text or CSV (UTF-8)", *give_text = "give a file of text",
                     *as_it_is = "unpack it; of packed files, .gz and .zst are read";

constexpr FileKind kinds[] = {
    {0, "\x1f\x8b", "compressed (gzip)", "unpack it with gzip -dc, or give it a name that ends in .gz"},
    {0, "\x28\xb5\x2f\xfd", "compressed (zstd)", "unpack it with zstd -dc, or give it a name that ends in .zst"},
    {0, "\xfd\x37zXZ\0"sv, "compressed (xz)", "unpack it with xz -dc, or compress it with gzip or zstd"},
    {4, "1AY&SY", "compressed (bzip2)", "unpack it with bzip2 -dc, or compress it with gzip or zstd"},
    {0, "\x04\x22\x4d\x18", "compressed (lz4)", "unpack it with lz4 -dc, or compress it with gzip or zstd"},
    {30, "mimetypeapplication/epub+zip", "an e-book (EPUB)", "convert it to text, as with pandoc -t plain"},
    {30, "mimetypeapplication/vnd.oasis.opendocument", "a document of LibreOffice", save_as_text},
    {0, "PK\3\4", "a zip archive", as_it_is},
    {0, "PK\5\6", "a zip archive", as_it_is},
    {0, "7z\xbc\xaf\x27\x1c", "a 7-Zip archive", as_it_is},
    {0, "Rar!\x1a\7", "a RAR archive", as_it_is},
    {257, "ustar", "a tar archive", as_it_is},
    {0, "%PDF-", "a PDF document", "convert it to text, as with pdftotext"},
    {0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a document of Microsoft Office", save_as_text},
    {0, "PAR1\x15", "a Parquet file", "write it as CSV or JSONL"},
    {0, "ARROW1\0\0"sv, "an Arrow file", "write it as CSV or JSONL"},
    {0, "SQLite format 3\0"sv, "a database (SQLite)", "write it as CSV or JSONL"},
    {0,
     "\x7f"
     "ELF",
     "a program", give_text},
    {0, "MZ\x90\0"sv, "a program", give_text},
    {0, "\xcf\xfa\xed\xfe", "a program", give_text},
    {0, "\x89PNG\r\n", "a picture (PNG)", give_text},
    {0, "\xff\xd8\xff", "a picture (JPEG)", give_text},
};

bool is_kind(const FileKind& kind, std::string_view content) {
  return content.substr(std::min(kind.place, content.size()), kind.bytes.size()) == kind.bytes;
}

/// What a zip archive is, by the names of its files.
const char* document_in(std::string_view archive) {
  if (archive.find("word/document.xml") != std::string_view::npos) return "a document of Word";
  if (archive.find("xl/workbook.xml") != std::string_view::npos) return "a workbook of Excel";
  return nullptr;
}

}  // namespace

void check_not_packed(std::string_view content, const std::string& file) {
  const auto* const found =
      std::find_if(std::begin(kinds), std::end(kinds), [&](const FileKind& kind) { return is_kind(kind, content); });
  if (found == std::end(kinds)) return;
  const char* const document = found->remedy == as_it_is ? document_in(content) : nullptr;
  throw NotTextError(fmt::format("{}: is {}; {}", file, document != nullptr ? document : found->what,
                                 document != nullptr ? save_as_text : found->remedy));
}

}  // namespace capstan
