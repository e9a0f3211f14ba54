// The n-grams of a text, counted by bucket.
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "nn/layers/text_ngrams.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

int64_t total(const std::vector<NgramCount>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0},
                         [](int64_t sum, const NgramCount& entry) { return sum + entry.count(); });
}

std::map<uint32_t, uint32_t> as_map(const std::vector<NgramCount>& counts) {
  std::map<uint32_t, uint32_t> map;
  for (const NgramCount& entry : counts) map[entry.bucket()] = entry.count();
  return map;
}

bool same(const std::vector<NgramCount>& a, const std::vector<NgramCount>& b) {
  return a.size() == b.size() && as_map(a) == as_map(b);
}

const NgramOrders all_orders{{1, 2}, {2, 3, 4, 5}};

TEST_CASE("n-grams of a text: words, pairs, and characters between the signs of start and end") {
  // Weights on disk depend on these.
  const TextNgrams found = count_ngrams("Don't stop", {{1}, {2}}, 24);
  std::vector<uint32_t> buckets;
  for (const NgramCount& entry : found.words) buckets.push_back(entry.bucket());
  CHECK(buckets == std::vector<uint32_t>{4052193, 6518827, 6628237, 9598489});
  REQUIRE_FALSE(found.characters.empty());
  CHECK(found.characters[0].bucket() == 2969632);
  // don ' t stop: 4 words, 3 pairs; n-grams of 2 characters: 4, 2, 2, 5
  CHECK(total(found.words) == 4);
  CHECK(total(count_ngrams("Don't stop", {{2}, {}}, 24).words) == 3);
  CHECK(total(found.characters) == 13);
  CHECK(total(count_ngrams("Don't stop", {{}, {5}}, 24).characters) == 1 + 2);  // \2don\3; \2stop, stop\3
  CHECK(total(count_ngrams("Don't stop", {{}, {7}}, 24).characters) == 0);
}

TEST_CASE("n-grams of a text: what does not matter, and what does") {
  const auto of = [](std::string_view text) { return count_ngrams(text, all_orders, 20); };
  const TextNgrams usual = of("a fine film, a FINE end");
  for (const char* const alike : {"A Fine film, a fine end", "  a fine\tfilm ,\na fine\r\n end\n"}) {
    INFO(alike);
    CHECK(same(usual.words, of(alike).words));
    CHECK(same(usual.characters, of(alike).characters));
  }
  CHECK_FALSE(same(usual.words, of("a fine film; a fine end").words));
  CHECK_FALSE(same(usual.words, of("a film fine, a fine end").words));  // other pairs
  CHECK_FALSE(same(of("ab c").words, of("a bc").words));
  CHECK_FALSE(same(of("ab c").characters, of("a bc").characters));
}

TEST_CASE("n-grams of a text: its ends count as words in n-grams of two words or more, if that is wished") {
  const auto buckets = [](const std::string& text, const NgramOrders& orders) {
    std::vector<uint32_t> all;
    for (const NgramCount& entry : count_ngrams(text, orders, max_bucket_bits).words) all.push_back(entry.bucket());
    return all;
  };
  const auto shared = [](const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
    std::vector<uint32_t> both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return both.size();
  };
  CHECK(buckets("a b", {{1}, {}, true}) == buckets("a b", {{1}, {}, false}));
  CHECK(buckets("a b", {{2}, {}, false}).size() == 1);
  CHECK(buckets("a b", {{2}, {}, true}).size() == 3);  // ^ a, a b, b $
  CHECK(shared(buckets("a b", {{2}, {}, true}), buckets("a b", {{2}, {}, false})) == 1);
  CHECK(shared(buckets("a b", {{2}, {}, true}), buckets("a c", {{2}, {}, true})) == 1);
  CHECK(shared(buckets("a b", {{2}, {}, true}), buckets("c b", {{2}, {}, true})) == 1);
  CHECK(shared(buckets("a a", {{2}, {}, true}), buckets("b a a b", {{2}, {}, true})) == 1);
  CHECK(buckets("a", {{3}, {}, true}).size() == 1);
  CHECK(buckets(" ", {{2}, {}, true}).empty());
}

TEST_CASE("n-grams of a text: any bytes, and any length") {
  for (const std::string& text :
       {std::string(), std::string(" \n\t"), std::string(3, '\0'), std::string("\xff\xfe\x80"), std::string("\xe4\xb8"),
        std::string(100000, 'x'), std::string(3000, '\x80')}) {
    const TextNgrams found = count_ngrams(text, all_orders, 24);
    for (const auto* const counts : {&found.words, &found.characters})
      for (const NgramCount& entry : *counts) {
        CHECK(entry.bucket() < (1u << 24));
        CHECK(entry.count() >= 1);
        CHECK(entry.count() <= 255);
      }
  }
  CHECK(count_ngrams("", all_orders, 24).words.empty());
  // Characters of UTF-8 count as one: \2 and two letters of two bytes, and \3.
  CHECK(total(count_ngrams("\xc3\xa4\xc3\xb6", {{}, {2}}, 24).characters) == 3);
  CHECK(total(count_ngrams(std::string(1000, 'x') + " x", {{}, {1}}, 24).characters) < 1000);  // counts end at 255
}

TEST_CASE("n-grams of a text: words, case and width of Unicode, and scripts without blanks, if that is wished") {
  const NgramOrders orders{{1, 2}, {2, 3}, false, true};
  const auto of = [&](std::string_view text) { return count_ngrams(text, orders, max_bucket_bits); };
  const auto words = [](std::string_view text) {
    return total(count_ngrams(text, {{1}, {}, false, true}, max_bucket_bits).words);
  };
  const auto characters = [](std::string_view text) {
    return total(count_ngrams(text, {{}, {1}, false, true}, max_bucket_bits).characters);
  };
  CHECK(total(count_ngrams("好看。好", {{1}, {}}, max_bucket_bits).words) == 1);
  for (const auto& [text, count] : std::vector<std::pair<std::string, int64_t>>{
           {"好看。好", 4},         // Chinese
           {"ひらカﾀ", 4},          // Japanese, one letter of half width
           {"ภาษาไทย", 7},          // Thai
           {"ລາວ", 3},              // Lao
           {"ខ្មែរ", 5},             // Khmer
           {"မြန်မာ", 6},            // Burmese
           {"좋은 책", 2},          // Korean has blanks
           {"Καλό βιβλίο!", 3},     // Greek
           {"хорошо — „да“", 5},    // Cyrillic, with punctuation beyond ASCII
           {"iPhone15很好 用", 4},  // mixed
           {"\xe3\x80\x80"
            "a\xc2\xa0"
            "b",
            2},  // blanks beyond ASCII
           {"na\xc3\xafve", 1},
       }) {
    INFO(text);
    CHECK(words(text) == count);
  }
  CHECK(characters("很好用 ok") == 3 + 2 + 2 + 2);  // a run of them is one for n-grams of characters
  for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{{"ＡＢＣ１２！", "abc12!"},
                                                                             {"STRASSE Élan", "straße élan"},
                                                                             {"ΣΟΦΟΣ", "σοφος"},
                                                                             {"ﾀ", "タ"},
                                                                             {"ДА", "да"}}) {
    INFO(a, " and ", b);
    CHECK(same(of(a).words, of(b).words));
    CHECK(same(of(a).characters, of(b).characters));
  }
  // ASCII is as it was, and bytes that are no UTF-8 do no harm.
  for (const std::string text : {"Don't stop, a FINE film", "\xff\xfe one \xe4\xb8", "\x80"}) {
    INFO(text);
    CHECK(same(of(text).words, count_ngrams(text, {{1, 2}, {2, 3}}, max_bucket_bits).words));
  }
}

TEST_CASE("n-grams of a text: fewer bits join neighbouring buckets") {
  std::string text;
  for (int i = 0; i < 400; ++i) text += " word" + std::to_string(i * i % 97);
  const TextNgrams most = count_ngrams(text, all_orders, max_bucket_bits);
  for (const int bits : {1, 4, 10, 23, 24}) {
    INFO(bits, " bits");
    const TextNgrams direct = count_ngrams(text, all_orders, bits);
    TextNgrams joined = most;
    join_buckets(joined.words, max_bucket_bits, bits);
    join_buckets(joined.characters, max_bucket_bits, bits);
    CHECK(same(direct.words, joined.words));
    CHECK(same(direct.characters, joined.characters));
  }
  for (const int bits : {0, 25}) CHECK_THROWS_AS(count_ngrams(text, all_orders, bits), std::invalid_argument);
}

TEST_CASE("n-grams of a text: the weight of a count, and the bits of a number of buckets") {
  CHECK(count_weight(1) == 1);
  CHECK(count_weight(2) == doctest::Approx(1 + std::log(2.0)));
  CHECK(count_weight(255) == doctest::Approx(1 + std::log(255.0)));
  CHECK(bits_of(0) == 0);
  CHECK(bits_of(16) == 4);
  CHECK(bits_of(17) == 5);
}

TEST_CASE("an n-gram's name is the part of a text that has it, with the edges that belong to it") {
  const NgramOrders orders{{1, 2}, {3}, true, false};
  for (const std::string text : {"The caf\u00e9", "  The  caf\u00e9\n"}) {
    const NamedNgrams named = named_ngrams(text, orders, 20, [](uint32_t) { return true; });
    const TextNgrams counted = count_ngrams(text, orders, 20);
    CHECK(static_cast<int64_t>(named.words.size()) == total(counted.words));
    CHECK(static_cast<int64_t>(named.characters.size()) == total(counted.characters));
    std::set<std::string> names;
    for (const auto* const ngrams : {&named.words, &named.characters})
      for (const NamedNgram& ngram : *ngrams) names.insert(ngram.name);
    std::set<std::string> expected{
        "the",       "caf\u00e9", "^ the",           "caf\u00e9 $",          "_th\u00b7",     "\u00b7the\u00b7",
        "\u00b7he_", "_ca\u00b7", "\u00b7caf\u00b7", "\u00b7af\u00e9\u00b7", "\u00b7f\u00e9_"};
    expected.insert(text.front() == ' ' ? "the  caf\u00e9" : "the caf\u00e9");
    CHECK(names == expected);
    const uint32_t the = count_ngrams("the", {{1}, {}}, 20).words[0].bucket();
    const NamedNgrams one = named_ngrams(text, orders, 20, [&](uint32_t bucket) { return bucket == the; });
    REQUIRE(one.words.size() == 1);
    CHECK(one.words[0].name == "the");
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
