// The index of a token cache, of texts with 2, 1 and 0 files.
#include "data/files/token_row.hpp"
#include "data/text/token_cache.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {
namespace {

void read_index(std::string_view input) {
  constexpr FileCounts files = {2, 1, 0};
  const int64_t vocabulary = choose(input, 2) == 0 ? 200 : 70000;
  const TokenIndex index = index_from_json(std::string(input), files, vocabulary);
  require(index.width == TokenRow::width_for(vocabulary), "tokens have the width of the vocabulary");
  for (const TokenIndex::Split& split : index.splits)
    for (const TokenIndex::File& file : split.files) {
      require(file.list < 3 && file.number < files[file.list], "a piece names a file that is there");
      require(0 <= file.begin && file.begin <= file.end && file.end <= split.size, "a piece lies within the tokens");
      require(0 <= file.text_begin && file.text_begin <= file.text_end, "a piece is a range of text");
    }
}

const Registered cache_index_target("cache_index", read_index);

}  // namespace
}  // namespace capstan::fuzz
