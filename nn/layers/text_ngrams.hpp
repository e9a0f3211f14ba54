// The n-grams of a text, of words and of the characters within words, counted by bucket: the features of linear
// classifiers, which train/linear solves for and nn/layers/ngram_table reads. Trained weights depend on what a word is
// and on the hash, so neither can change without a key: tests/nn/layers/test_text_ngrams.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/array/row_index.hpp"

namespace capstan {

/// The most bits that a bucket's number may have: an NgramCount has 32, of which 8 are its count.
constexpr int max_bucket_bits = 24;

/// A bucket and how often its n-grams occur in a text, at most 255 times.
class NgramCount {
 public:
  NgramCount(uint32_t bucket, uint32_t count) : bits_(bucket << 8 | (count < 255 ? count : 255)) {}
  uint32_t bucket() const { return bits_ >> 8; }
  uint32_t count() const { return bits_ & 255; }

 private:
  uint32_t bits_;
};

/// The n-grams of a text in two blocks, each sorted by bucket, with each bucket at most once.
struct TextNgrams {
  std::vector<NgramCount> words, characters;
};

/// Which n-grams are counted.
struct NgramOrders {
  std::vector<int64_t> words, characters;  // lengths of n-grams of words, and of characters within words
  bool text_ends = false;  // the start and the end of the text count as words in n-grams of two words or more
  bool unicode = false;    // words, case and width are those of Unicode
};

/// Counts the n-grams of a text in 2^bits buckets, bits <= max_bucket_bits. A run of ASCII letters, digits and bytes
/// beyond ASCII is a word; so is every other character that is not white space. A-Z count as a-z. With `unicode`, a
/// word is a run of letters, marks and digits of Unicode, all in one case and width, but in a run of a script that is
/// written without blanks each character is a word. The characters of a word, or of such a run, are those of UTF-8 (a
/// byte that is none counts as one), between a sign for its start and one for its end; n-grams of words go across ends
/// of lines. The bucket is the high part of a stable hash, so that one of fewer bits joins neighbours of more bits.
TextNgrams count_ngrams(std::string_view text, const NgramOrders& orders, int bits);

/// Remembers words with the numbers of their n-grams of characters, so that these are not hashed again: most words of a
/// text were in earlier texts.
class NgramMemory {
 public:
  /// Appends the numbers of the word's n-grams to `to`; false if the word is not known.
  bool append(std::string_view word, std::vector<uint32_t>& to) const;
  /// Keeps the numbers of a word that is not known yet. When the memory is full, it forgets all words first.
  void keep(std::string_view word, const uint32_t* numbers, size_t count);

 private:
  struct Entry {
    uint64_t hash;
    uint32_t word, size, numbers, count;  // the word is at `word` of words_, its numbers at `numbers`; size 0: no entry
  };
  size_t place_of(std::string_view word, uint64_t hash) const;

  std::vector<Entry> entries_;  // a hash table: each at the place of its hash, or at the next free one
  size_t used_ = 0;
  std::string words_;
  std::vector<uint32_t> numbers_;
};

/// The n-grams of a text as numbers: buckets or rows, one for each occurrence, in no particular order.
struct NgramNumbers {
  std::vector<uint32_t> words, characters;
};

/// Replaces `found` with the n-grams that count_ngrams() counts: their buckets or, with an index, the places of the
/// buckets that are in the index. `memory`, unless null, must only see the same orders, bits and index. `found` is
/// an argument so that its memory is used again.
void find_ngrams(std::string_view text, const NgramOrders& orders, int bits, const RowIndex* index, NgramMemory* memory,
                 NgramNumbers& found);
/// Sorts numbers below 2^bits in ascending order.
void sort_numbers(std::vector<uint32_t>& numbers, int bits);
/// Sorts `found`, numbers below 2^bits, and returns how often each of them occurs, in ascending order.
std::vector<NgramCount> counted(std::vector<uint32_t>& found, int bits);

/// An n-gram as people read it, with its case folded. Words have the text between them; "^" is the start, "$" the end
/// of the text. Around characters, "_" is the edge of a word, and "·" means that the word goes on.
struct NamedNgram {
  uint32_t bucket;
  std::string name;
};

/// The named n-grams of a text: those of words and those of characters.
struct NamedNgrams {
  std::vector<NamedNgram> words, characters;
};

/// The names of the n-grams that count_ngrams() counts, in the order of the text, where the bucket is `wanted`.
NamedNgrams named_ngrams(std::string_view text, const NgramOrders& orders, int bits,
                         const std::function<bool(uint32_t bucket)>& wanted);

/// The n-grams that count_ngrams() would find with fewer bits: neighbours are joined in place.
void join_buckets(std::vector<NgramCount>& counts, int bits, int fewer);

/// By count; 0 for 0.
extern const std::array<float, 256> count_weights;
/// The weight of an n-gram that occurs `count` times in a text: 1 + ln count, for counts of 1 to 255.
inline float count_weight(uint32_t count) { return count_weights[count & 255]; }
/// The least b with 2^b >= buckets.
int bits_of(int64_t buckets);

}  // namespace capstan
