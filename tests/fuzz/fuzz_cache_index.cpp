// The index of a token cache, of a text with two weighted sources.
#include "data/text/token_cache.hpp"
#include "tests/fuzz/target.hpp"

namespace capstan::fuzz {
namespace {

void read_index(std::string_view input) {
  const TextData data = index_from_json(std::string(input), 2);
  const auto& sources = data.train.sources;
  require(sources.size() == 2, "each source has an end");
  require(0 == sources[0].begin && sources[0].begin <= sources[0].end && sources[0].end == sources[1].begin &&
              sources[1].begin <= sources[1].end,
          "sources follow each other");
}

const Registered cache_index_target("cache_index", read_index);

}  // namespace
}  // namespace capstan::fuzz
