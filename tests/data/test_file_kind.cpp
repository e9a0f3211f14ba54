// Archives, documents and programs are no texts, by whatever way they are read.
#include "core/base/error.hpp"
#include "data/files/file_kind.hpp"
#include "data/files/file_list.hpp"
#include "data/files/text_file.hpp"
#include "support.hpp"

using namespace capstan;
using std::string_literals::operator""s;

namespace {

struct Case {
  const char* name;
  std::string begin;
  const char *kind, *remedy;
};

const std::string zip = "PK\3\4\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"s;  // 30 bytes, then a name

const std::vector<Case> cases = {
    {"a.xz", "\xfd\x37zXZ\0\0\4"s, "compressed (xz)", "xz -dc"},
    {"a.bz2", "BZh91AY&SY\1", "compressed (bzip2)", "bzip2 -dc"},
    {"a.lz4", "\x04\x22\x4d\x18\x40", "compressed (lz4)", "lz4 -dc"},
    {"a.txt", "\x1f\x8b\x08", "compressed (gzip)", "name that ends in .gz"},
    {"b.txt", "\x28\xb5\x2f\xfd", "compressed (zstd)", "name that ends in .zst"},
    {"a.zip", zip + "a.txt", "a zip archive", "unpack it"},
    {"a.docx", zip + "[Content_Types].xml" + zip + "word/document.xml", "a document of Word", "save it as text"},
    {"a.xlsx", zip + "[Content_Types].xml" + zip + "xl/workbook.xml", "a workbook of Excel", "CSV (UTF-8)"},
    {"a.epub", zip + "mimetypeapplication/epub+zip", "an e-book (EPUB)", "convert it to text"},
    {"a.odt", zip + "mimetypeapplication/vnd.oasis.opendocument.text", "a document of LibreOffice", "save it as text"},
    {"a.7z", "7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "unpack it"},
    {"a.tar", "a.txt" + std::string(252, '\0') + "ustar  ", "a tar archive", "unpack it"},
    {"a.pdf", "%PDF-1.7\n", "a PDF document", "pdftotext"},
    {"a.doc", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a document of Microsoft Office", "save it as text"},
    {"a.parquet", "PAR1\x15\x04", "a Parquet file", "CSV or JSONL"},
    {"program",
     "\x7f"
     "ELF\2\1\1",
     "a program", "give a file of text"},
    {"a.exe", "MZ\x90\0\3"s, "a program", "give a file of text"},
    {"a.png", "\x89PNG\r\n\x1a\n", "a picture", "give a file of text"},
};

}  // namespace

TEST_CASE("what is no text is named with its remedy, whole, in pieces, by lines and packed") {
  const TemporaryFolder folder;
  for (const Case& c : cases) {
    INFO(c.name);
    const std::string content = c.begin + std::string(600, 'x');
    const std::string path = folder.write(c.name, content), packed = write_gzip(folder, c.name + ".gz"s, content);
    std::string line;
    for (const std::string& file : {path, packed})
      for (const std::function<void()>& read : std::vector<std::function<void()>>{
               [&] { read_text_file(file); }, [&] { TextReader(file).piece(); },
               [&] { TextReader::input(file).read_line(line); }, [&] { check_is_text(content, file); }}) {
        const std::string message = message_of(read);
        for (const std::string& part : {file + ": is " + c.kind, std::string(c.remedy)})
          CHECK_MESSAGE(message.find(part) != std::string::npos, message);
      }
    CHECK(looks_binary(path));
  }
}

TEST_CASE("texts that begin like such files are texts") {
  const TemporaryFolder folder;
  for (const char* const text : {"PK and more", "BZh9 is how bzip2 begins", "%PDF", "MZ", "7z", "PAR1 and PAR2", "Rar!",
                                 "ustar", "{\\rtf1 text}", "xl/workbook.xml",
                                 "\xef\xbb\xbf"
                                 "a"}) {
    INFO(text);
    CHECK(read_text_file(folder.write("a.txt", text)) == text);
    CHECK_FALSE(looks_binary(folder.path("a.txt")));
  }
}
