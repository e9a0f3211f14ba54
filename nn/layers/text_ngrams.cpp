// A text is folded into one case, cut into words, and each n-gram of words or of a word's characters hashed (XXH3, then
// SplitMix64's finaliser); the bucket is the upper part of the hash. Words that were met before give their n-grams of
// characters from memory (NgramMemory): a text's words are mostly those of other texts.
#include "nn/layers/text_ngrams.hpp"

#define XXH_INLINE_ALL  // most hashes are of a few bytes: a call would take longer than the hash
#include <fmt/core.h>
#include <utf8proc.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/math.hpp"
#include "core/base/random.hpp"
#include "core/strings/utf8.hpp"
#include "nn/layers/ngram_config.hpp"

namespace capstan {
namespace {

/// How a character divides a text into words. `alone`: the character is a word, in a script written without blanks;
/// `other`: it is a word, too, such as a punctuation mark, and no n-gram of characters goes past it.
enum class Kind { blank, inside_word, alone, other };

/// One character of a text: how it divides words, and its length.
struct Character {
  Kind kind;
  size_t bytes;
};

/// Whether a character is of a script without blanks between words. Hangul has blanks: U+3130 to 318F are left out.
bool has_no_blanks(uint32_t point) {
  constexpr uint32_t ranges[][2] = {
      {0x0e00, 0x109f},    // Thai, Lao, Tibetan, Burmese
      {0x1780, 0x17ff},    // Khmer
      {0x1950, 0x1aaf},    // Tai Le, New Tai Lue, Khmer's symbols, Buginese, Tai Tham
      {0x2e80, 0x312f},    // radicals, kana, Bopomofo
      {0x3190, 0xa4cf},    // Chinese characters, Yi
      {0xa980, 0xa9ff},    // Javanese, Burmese
      {0xaa60, 0xaadf},    // Burmese, Tai Viet
      {0xf900, 0xfaff},    // Chinese characters
      {0xff66, 0xff9f},    // kana of half width
      {0x16fe0, 0x1b2ff},  // Tangut, Khitan, kana, Nushu
      {0x20000, 0x3ffff},  // Chinese characters
  };
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [&](const auto& range) { return point >= range[0] && point <= range[1]; });
}

Kind kind_of(uint32_t point) {
  const int category = utf8proc_category(static_cast<utf8proc_int32_t>(point));
  if (category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP) return Kind::blank;
  const bool letter_mark_or_number = category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO;
  if (!letter_mark_or_number && category != UTF8PROC_CATEGORY_CF) return Kind::other;
  return has_no_blanks(point) ? Kind::alone : Kind::inside_word;
}

/// The kind of each character of ASCII.
constexpr std::array<Kind, 128> ascii_kinds = [] {
  std::array<Kind, 128> kinds{};
  for (size_t c = 0; c < kinds.size(); ++c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'), digit = c >= '0' && c <= '9';
    kinds[c] = c == ' ' || (c >= '\t' && c <= '\r') ? Kind::blank : letter || digit ? Kind::inside_word : Kind::other;
  }
  return kinds;
}();

/// The first character of a text that is not empty. Bytes that are not valid UTF-8 count as inside a word.
Character first_of(std::string_view text, bool unicode) {
  if (const auto byte = static_cast<uint8_t>(text[0]); byte < 0x80) return {ascii_kinds[byte], 1};
  if (!unicode) return {Kind::inside_word, 1};
  const Utf8Character character = first_character(text);
  if (character.state != Utf8Character::State::valid) return {Kind::inside_word, character.bytes};
  return {kind_of(character.code_point), character.bytes};
}

/// Appends one character with its case and width folded. Only full-width and half-width forms are replaced by their
/// compatible characters: for others the replacement takes characters apart, such as Thai's "am".
void append_folded(std::string& out, uint32_t point) {
  std::array<utf8proc_int32_t, 32> parts{};  // a character decomposes to 18 at most
  const auto capacity = static_cast<utf8proc_ssize_t>(parts.size());
  int boundclass = UTF8PROC_BOUNDCLASS_START;
  const bool other_width = point >= 0xff00 && point <= 0xffef;
  const auto options =
      static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD | (other_width ? UTF8PROC_COMPAT : 0));
  utf8proc_ssize_t size =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(point), parts.data(), capacity, options, &boundclass);
  size = utf8proc_normalize_utf32(parts.data(), std::clamp<utf8proc_ssize_t>(size, 0, capacity), options);
  for (utf8proc_ssize_t i = 0; i < size; ++i) append_utf8(out, static_cast<uint32_t>(parts[static_cast<size_t>(i)]));
}

bool is_ascii(std::string_view text) {
  uint8_t bits = 0;
  for (const char c : text) bits = static_cast<uint8_t>(bits | static_cast<uint8_t>(c));
  return bits < 0x80;
}

/// A-Z as a-z; with `unicode`, each character that is not ASCII folded.
std::string folded(std::string_view text, bool unicode) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c + (c >= 'A' && c <= 'Z' ? 'a' - 'A' : 0));
  if (!unicode || is_ascii(text)) return out;
  const std::string lower = std::exchange(out, "");
  for (size_t at = 0; at < text.size();) {
    if (static_cast<uint8_t>(text[at]) < 0x80) {
      out.push_back(lower[at++]);
      continue;
    }
    const Utf8Character character = first_character(text.substr(at));
    if (character.state == Utf8Character::State::valid)
      append_folded(out, character.code_point);
    else
      out += text.substr(at, character.bytes);
    at += character.bytes;
  }
  return out;
}

/// Sorts numbers below 2^bits in ascending order: a radix sort by digits of `width` bits, the lowest digit first.
template <int width>
void sort_by_digits(std::vector<uint32_t>& numbers, int bits) {
  std::vector<uint32_t> sorted(numbers.size());
  constexpr uint32_t last = (1U << width) - 1;
  for (int shift = 0; shift < bits; shift += width) {
    std::array<uint32_t, last + 1> next{};  // where the next number with a digit goes
    for (const uint32_t number : numbers) ++next[number >> shift & last];
    uint32_t begin = 0;
    for (uint32_t& at : next) begin += std::exchange(at, begin);
    for (const uint32_t number : numbers) sorted[next[number >> shift & last]++] = number;
    numbers.swap(sorted);
  }
}

/// A word of a text, or the start or end of the text as a word without characters, and its bytes [begin, end).
struct Word {
  uint64_t hash;
  size_t begin, end;
};

constexpr char start_mark = '\x02', end_mark = '\x03';  // of a word or text; control characters are in no word

/// Calls visit(hash, characters) for the n-grams of characters of a word, its start_mark and end_mark included.
template <class Visit>
void for_characters(std::string_view word, const std::vector<int64_t>& orders, const Visit& visit) {
  std::string marked(1, start_mark);
  marked += word;
  marked += end_mark;
  const std::string_view characters = marked;
  const auto take = [&](std::string_view ngram) {
    visit(mixed_bits(XXH3_64bits(ngram.data(), ngram.size()) + 0x9e3779b97f4a7c15u), ngram);
  };
  if (is_ascii(word)) {
    for (const int64_t order : orders)
      for (size_t first = 0, size = static_cast<size_t>(order); first + size <= characters.size(); ++first)
        take(characters.substr(first, size));
    return;
  }
  std::vector<size_t> starts;
  for (size_t at = 0; at < marked.size(); ++at)
    if ((static_cast<uint8_t>(marked[at]) & 0xc0) != 0x80) starts.push_back(at);
  starts.push_back(marked.size());
  for (const int64_t order : orders)
    for (size_t first = 0; first + static_cast<size_t>(order) < starts.size(); ++first)
      take(characters.substr(starts[first], starts[first + static_cast<size_t>(order)] - starts[first]));
}

/// Calls of_words(hash, first, last), with pointers to the words, for each n-gram of words of the folded text `all`,
/// and of_run(run) for each run of characters within which n-grams of characters are counted: a word, or a run of a
/// script without blanks.
template <class OfWords, class OfRun>
void for_ngrams(std::string_view all, const NgramOrders& orders, const OfWords& of_words, const OfRun& of_run) {
  std::vector<Word> words;
  const auto add_word = [&](size_t begin, size_t end) {
    if (!orders.words.empty()) words.push_back({hash_path(all.substr(begin, end - begin)), begin, end});
  };
  for (size_t begin = 0; begin < all.size();) {
    const Kind kind = first_of(all.substr(begin), orders.unicode).kind;
    size_t end = begin;
    while (end < all.size()) {
      const Character next = first_of(all.substr(end), orders.unicode);
      if (end > begin && (next.kind != kind || kind == Kind::other)) break;
      if (kind == Kind::alone) add_word(end, end + next.bytes);
      end += next.bytes;
    }
    if (kind != Kind::blank && kind != Kind::alone) add_word(begin, end);
    if (kind != Kind::blank && !orders.characters.empty()) of_run(all.substr(begin, end - begin));
    begin = end;
  }
  const bool ends = orders.text_ends && !words.empty();
  if (ends) {
    words.insert(words.begin(), {hash_path({&start_mark, 1}), 0, 0});
    words.push_back({hash_path({&end_mark, 1}), all.size(), all.size()});
  }
  for (const int64_t order : orders.words) {
    const size_t length = static_cast<size_t>(order), skipped = ends && length == 1 ? 1 : 0;
    for (size_t begin = skipped; begin + length + skipped <= words.size(); ++begin) {
      uint64_t h = mixed_bits(static_cast<uint64_t>(order));
      for (size_t i = begin; i < begin + length; ++i) h = mixed_bits(h * 0x9e3779b97f4a7c15u + words[i].hash);
      of_words(h, &words[begin], &words[begin + length - 1]);
    }
  }
}

/// The name of an n-gram of words of the folded text `all`.
std::string name_of(std::string_view all, const Word& first, const Word& last) {
  // An end of the text is a word without characters.
  const bool starts = first.begin == first.end, ends = last.begin == last.end;
  const Word &inner = starts ? (&first)[1] : first, &outer = ends ? (&last)[-1] : last;
  return fmt::format("{}{}{}", starts ? "^ " : "", all.substr(inner.begin, outer.end - inner.begin), ends ? " $" : "");
}

/// The name of an n-gram of characters between the marks of a word.
std::string name_of(std::string_view ngram) {
  const bool starts = ngram.front() == start_mark, ends = ngram.back() == end_mark;
  if (starts) ngram.remove_prefix(1);
  if (ends && !ngram.empty()) ngram.remove_suffix(1);
  return fmt::format("{}{}{}", starts ? "_" : "\u00b7", ngram, ends ? "_" : "\u00b7");
}

}  // namespace

void sort_numbers(std::vector<uint32_t>& numbers, int bits) {
  constexpr size_t few = 128, many = 1024;  // below `few`, and with wide digits below `many`, radix sorts are slower
  if (numbers.size() < few)
    std::sort(numbers.begin(), numbers.end());
  else if (numbers.size() < many)
    sort_by_digits<8>(numbers, bits);
  else
    sort_by_digits<11>(numbers, bits);
}

std::vector<NgramCount> counted(std::vector<uint32_t>& found, int bits) {
  sort_numbers(found, bits);
  std::vector<NgramCount> counts;
  counts.reserve(found.size());
  for (size_t begin = 0; begin < found.size();) {
    size_t end = begin + 1;
    while (end < found.size() && found[end] == found[begin]) ++end;
    counts.emplace_back(found[begin], static_cast<uint32_t>(std::min<size_t>(end - begin, 255)));
    begin = end;
  }
  return counts;
}

size_t NgramMemory::place_of(std::string_view word, uint64_t hash) const {
  const size_t last = entries_.size() - 1;
  for (size_t at = hash & last;; at = (at + 1) & last) {
    const Entry& entry = entries_[at];
    if (entry.size == 0 || (entry.hash == hash && words_.compare(entry.word, entry.size, word) == 0)) return at;
  }
}

bool NgramMemory::append(std::string_view word, std::vector<uint32_t>& to) const {
  if (entries_.empty()) return false;
  const Entry& entry = entries_[place_of(word, XXH3_64bits(word.data(), word.size()))];
  if (entry.size == 0) return false;
  const auto first = numbers_.begin() + entry.numbers;
  to.insert(to.end(), first, first + entry.count);
  return true;
}

void NgramMemory::keep(std::string_view word, const uint32_t* numbers, size_t count) {
  constexpr size_t least = 256, most = 1 << 16, max_numbers = 1 << 21;  // of entries; together about 10 MB
  if (2 * used_ >= most || words_.size() + word.size() + numbers_.size() + count > max_numbers) *this = NgramMemory();
  if (word.empty() || word.size() + count > max_numbers / 16) return;
  if (2 * used_ >= entries_.size()) {
    const std::vector<Entry> before =
        std::exchange(entries_, std::vector<Entry>(std::max(least, 2 * entries_.size()), Entry{}));
    for (const Entry& entry : before)
      if (entry.size > 0)
        entries_[place_of(std::string_view(words_).substr(entry.word, entry.size), entry.hash)] = entry;
  }
  const uint64_t hash = XXH3_64bits(word.data(), word.size());
  const size_t place = place_of(word, hash);
  const Entry entry{hash, static_cast<uint32_t>(words_.size()), static_cast<uint32_t>(word.size()),
                    static_cast<uint32_t>(numbers_.size()), static_cast<uint32_t>(count)};
  numbers_.insert(numbers_.end(), numbers, numbers + count);
  words_ += word;
  entries_[place] = entry;
  ++used_;
}

void find_ngrams(std::string_view text, const NgramOrders& orders, int bits, const RowIndex* index, NgramMemory* memory,
                 NgramNumbers& found) {
  check(bits >= 1 && bits <= max_bucket_bits, "find_ngrams: {} bits", bits);
  found.words.clear();
  found.characters.clear();
  const auto add = [index, shift = 64 - bits](std::vector<uint32_t>& to, uint64_t hash) {
    const auto bucket = static_cast<int64_t>(hash >> shift),
               number = index != nullptr ? index->place_of(bucket) : bucket;
    if (number >= 0) to.push_back(static_cast<uint32_t>(number));
  };
  for_ngrams(
      folded(text, orders.unicode), orders, [&](uint64_t hash, const Word*, const Word*) { add(found.words, hash); },
      [&](std::string_view run) {
        if (memory != nullptr && memory->append(run, found.characters)) return;
        const size_t before = found.characters.size();
        for_characters(run, orders.characters, [&](uint64_t hash, std::string_view) { add(found.characters, hash); });
        if (memory != nullptr) memory->keep(run, found.characters.data() + before, found.characters.size() - before);
      });
}

TextNgrams count_ngrams(std::string_view text, const NgramOrders& orders, int bits) {
  NgramNumbers found;
  find_ngrams(text, orders, bits, nullptr, nullptr, found);
  return {counted(found.words, bits), counted(found.characters, bits)};
}

NamedNgrams named_ngrams(std::string_view text, const NgramOrders& orders, int bits,
                         const std::function<bool(uint32_t)>& wanted) {
  check(bits >= 1 && bits <= max_bucket_bits, "named_ngrams: {} bits", bits);
  NamedNgrams found;
  const std::string all = folded(text, orders.unicode);
  const auto bucket = [&](uint64_t hash) { return static_cast<uint32_t>(hash >> (64 - bits)); };
  for_ngrams(
      all, orders,
      [&](uint64_t hash, const Word* first, const Word* last) {
        if (wanted(bucket(hash))) found.words.push_back({bucket(hash), name_of(all, *first, *last)});
      },
      [&](std::string_view run) {
        for_characters(run, orders.characters, [&](uint64_t hash, std::string_view ngram) {
          if (wanted(bucket(hash))) found.characters.push_back({bucket(hash), name_of(ngram)});
        });
      });
  return found;
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

const std::array<float, 256> count_weights = [] {
  std::array<float, 256> table{};
  for (size_t n = 1; n < table.size(); ++n) table[n] = static_cast<float>(1 + math::log(static_cast<double>(n)));
  return table;
}();

int bits_of(int64_t buckets) {
  int bits = 0;
  while ((int64_t{1} << bits) < buckets) ++bits;
  return bits;
}

}  // namespace capstan
