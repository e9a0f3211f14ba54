#include "nn/layers/text_ngrams.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "nn/layers/ngram_config.hpp"

namespace capstan {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_inside_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || static_cast<uint8_t>(c) >= 0x80;
}

struct Buckets {
  int shift;
  std::vector<uint32_t> found;
  void add(uint64_t hash) { found.push_back(static_cast<uint32_t>(hash >> shift)); }
};

std::vector<NgramCount> counted(std::vector<uint32_t>& found) {
  std::sort(found.begin(), found.end());
  std::vector<NgramCount> counts;
  for (size_t begin = 0; begin < found.size();) {
    size_t end = begin + 1;
    while (end < found.size() && found[end] == found[begin]) ++end;
    counts.emplace_back(found[begin], static_cast<uint32_t>(std::min<size_t>(end - begin, 255)));
    begin = end;
  }
  return counts;
}

/// `word` in lower case.
void add_characters(std::string_view word, const std::vector<int64_t>& orders, std::vector<size_t>& starts,
                    std::string& marked, Buckets& out) {
  marked.assign(1, '\x02');  // white space to the splitter, so that no word has it
  marked += word;
  marked += '\x03';
  starts.clear();
  for (size_t at = 0; at < marked.size(); ++at)
    if ((static_cast<uint8_t>(marked[at]) & 0xc0) != 0x80) starts.push_back(at);
  starts.push_back(marked.size());
  const std::string_view all = marked;
  for (const int64_t order : orders)
    for (size_t first = 0; first + static_cast<size_t>(order) < starts.size(); ++first) {
      const size_t begin = starts[first], end = starts[first + static_cast<size_t>(order)];
      out.add(mixed_bits(hash_path(all.substr(begin, end - begin)) + 0x9e3779b97f4a7c15u));
    }
}

}  // namespace

TextNgrams count_ngrams(std::string_view text, const NgramOrders& orders, int bits) {
  check(bits >= 1 && bits <= most_bucket_bits, "count_ngrams: {} bits", bits);
  Buckets words{64 - bits, {}}, characters{64 - bits, {}};
  std::vector<uint64_t> hashes;  // of the words
  std::vector<size_t> starts;
  std::string word, marked;
  for (size_t at = 0; at < text.size();) {
    if (is_blank(text[at])) {
      ++at;
      continue;
    }
    size_t end = at + 1;
    if (is_inside_word(text[at]))
      while (end < text.size() && is_inside_word(text[end])) ++end;
    word.assign(text.substr(at, end - at));
    for (char& c : word)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    at = end;
    if (!orders.words.empty()) hashes.push_back(hash_path(word));
    if (!orders.characters.empty()) add_characters(word, orders.characters, starts, marked, characters);
  }
  const bool ends = orders.text_ends && !hashes.empty();
  if (ends) {
    hashes.insert(hashes.begin(), hash_path("\x02"));  // no word has these characters
    hashes.push_back(hash_path("\x03"));
  }
  for (const int64_t order : orders.words) {
    const size_t length = static_cast<size_t>(order), skipped = ends && length == 1 ? 1 : 0;
    for (size_t begin = skipped; begin + length + skipped <= hashes.size(); ++begin) {
      uint64_t h = mixed_bits(static_cast<uint64_t>(order));
      for (size_t i = begin; i < begin + length; ++i) h = mixed_bits(h * 0x9e3779b97f4a7c15u + hashes[i]);
      words.add(h);
    }
  }
  return {counted(words.found), counted(characters.found)};
}

void join_buckets(std::vector<NgramCount>& counts, int bits, int fewer) {
  check(fewer <= bits, "join_buckets: {} bits from {}", fewer, bits);
  size_t kept = 0;
  for (const NgramCount& entry : counts) {
    const uint32_t bucket = entry.bucket() >> (bits - fewer);
    if (kept > 0 && counts[kept - 1].bucket() == bucket)
      counts[kept - 1] = {bucket, counts[kept - 1].count() + entry.count()};
    else
      counts[kept++] = {bucket, entry.count()};
  }
  counts.erase(counts.begin() + static_cast<std::ptrdiff_t>(kept), counts.end());
}

float count_weight(uint32_t count) {
  static const std::array<float, 256> weights = [] {
    std::array<float, 256> table{};
    for (size_t n = 1; n < table.size(); ++n) table[n] = static_cast<float>(1 + std::log(static_cast<double>(n)));
    return table;
  }();
  return weights[count & 255];
}

int bits_of(int64_t buckets) {
  int bits = 0;
  while ((int64_t{1} << bits) < buckets) ++bits;
  return bits;
}

}  // namespace capstan
