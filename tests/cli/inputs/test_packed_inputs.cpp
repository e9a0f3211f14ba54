// Every reader refuses what is packed or no text, by what it is: the first bytes are looked at in one place.
#include <doctest/doctest.h>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

using std::string_literals::operator""s;

const std::vector<std::pair<std::string, std::string>> kinds = {
    {"\xfd\x37zXZ\0\0\4"s, "compressed (xz) ... xz -dc"},     {"BZh91AY&SY\1", "compressed (bzip2) ... bzip2 -dc"},
    {"PK\3\4\x14\0\0\0\0\0"s, "a zip archive ... unpack it"}, {"%PDF-1.7\n", "a PDF document ... pdftotext"},
    {"\177ELF\2\1\1", "a program ... give a file of text"},
};

TEST_CASE_FIXTURE(Trained, "what is packed or no text is refused by every command that reads") {
  const Words of_input[] = {"predict runs/classifier", "score runs/lm", "embed runs/lm",
                            "generate runs/lm --prompt-file -"};
  const Words of_file[] = {"train --config lm.yaml --set name=new data.train=[new.bin]",
                           "train --config lm.yaml --set name=new data.train=[new.bin] data.tokenizer=word",
                           "train --config classifier.yaml --set name=new data.train=[new.bin] data.format=tsv",
                           "train --config classifier.yaml --set name=new data.test=[new.bin] data.format=csv",
                           "data check --config classifier.yaml --set data.train=[new.bin] data.format=tsv",
                           "eval runs/lm --split test --set data.test=[new.bin]",
                           "predict runs/classifier new.bin",
                           "score runs/lm new.bin",
                           "embed runs/lm new.bin",
                           "generate runs/lm --prompt-file new.bin"};
  for (const auto& [begin, kind] : kinds) {
    const std::string content = begin + "some words\nand more\n";
    place.write("new.bin", content);
    for (const Words& command : of_file)
      check_refused(place, command[0] + " of " + kind, command, "new.bin: is " + kind);
    for (const Words& command : of_input)
      check_refused(place, command[0] + " of standard input, " + kind, command, "stdin: is " + kind, 1, content);
  }
}

}  // namespace
}  // namespace capstan::testing
