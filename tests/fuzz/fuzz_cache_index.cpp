// The index of a token cache, of a text with two weighted sources.
#include "data/files/token_row.hpp"
#include "data/text/token_cache.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {
namespace {

void read_index(std::string_view input) {
  const int64_t vocabulary = choose(input, 2) == 0 ? 200 : 70000;
  const TokenIndex index = index_from_json(std::string(input), 2, vocabulary);
  require(index.width == TokenRow::width_for(vocabulary), "tokens have the width of the vocabulary");
  require(index.source_ends.size() == 2, "each source has an end");
  require(0 <= index.source_ends[0] && index.source_ends[0] <= index.source_ends[1] &&
              index.source_ends[1] <= index.splits.train.size,
          "sources lie within the tokens, in their order");
}

const Registered cache_index_target("cache_index", read_index);

}  // namespace
}  // namespace capstan::fuzz
