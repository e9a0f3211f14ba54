#include "data/text/text_corpus.hpp"

#include <numeric>

namespace capstan {

int64_t TextCorpus::bytes() const {
  return std::accumulate(files.begin(), files.end(), int64_t{0},
                         [](int64_t sum, const File& file) { return sum + file.bytes; });
}

}  // namespace capstan
