#include "core/base/random.hpp"
#include "core/strings/utf8.hpp"
#include "data/tokenizers/normalisation.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "tests/data/support.hpp"

using namespace capstan;

namespace {

const Normalisation none{}, nfc{NormalForm::nfc, false}, nfkc{NormalForm::nfkc, false}, fold{NormalForm::none, true},
    nfkc_fold{NormalForm::nfkc, true};

const std::string e_acute = "\xc3\xa9", acute = "\xcc\x81", capital_e_acute = "\xc3\x89", ligature_fi = "\xef\xac\x81",
                  sharp_s = "\xc3\x9f", full_width_a = "\xef\xbc\xa1", no_break_blank = "\xc2\xa0",
                  angstrom = "\xe2\x84\xab", a_ring = "\xc3\xa5", capital_a_ring = "\xc3\x85",
                  hangul_han = "\xed\x95\x9c", jamo_h = "\xe1\x84\x92", jamo_a = "\xe1\x85\xa1",
                  jamo_n = "\xe1\x86\xab", sigma = "\xcf\x83", final_sigma = "\xcf\x82", capital_sigma = "\xce\xa3";

/// ASCII, letters with accents in one and in two, marks, ligatures, Hangul, everything mixed.
std::string mixed_text(uint64_t seed, int pieces) {
  const std::vector<std::string> parts = {"e",          acute,  capital_e_acute, " ",          "\n",   "X",
                                          ligature_fi,  jamo_h, jamo_a,          jamo_n,       a_ring, "\xcc\xa7",
                                          full_width_a, "z ",   angstrom,        capital_sigma};
  RandomStream random(random_key(seed, "mixed"));
  std::string text;
  for (int i = 0; i < pieces; ++i) text += parts[random.below(parts.size())];
  return text;
}

}  // namespace

TEST_CASE("normal forms and case folding") {
  struct Row {
    const char* what;
    Normalisation rule;
    std::string text, expected;
  };
  for (const Row& row :
       std::vector<Row>{{"nothing", none, "Ae" + acute + ligature_fi, "Ae" + acute + ligature_fi},
                        {"composed", nfc, "Caf" + std::string("e") + acute + "!", "Caf" + e_acute + "!"},
                        {"accent at the front", nfc, acute + "e", acute + "e"},
                        {"singleton", nfc, angstrom, capital_a_ring},
                        {"Hangul", nfc, jamo_h + jamo_a + jamo_n, hangul_han},
                        {"nfc keeps ligatures", nfc, ligature_fi + full_width_a, ligature_fi + full_width_a},
                        {"nfkc", nfkc, ligature_fi + full_width_a + no_break_blank + "x", "fiA x"},
                        {"case alone", fold, "STRASSE Stra" + sharp_s + "e " + capital_e_acute + "E" + acute,
                         "strasse strasse " + e_acute + "e" + acute},
                        {"every sigma", fold, capital_sigma + sigma + final_sigma, sigma + sigma + sigma},
                        {"all of it", nfkc_fold, "E" + acute + full_width_a + capital_a_ring, e_acute + "a" + a_ring},
                        {"empty", nfkc_fold, "", ""}})
    CHECK_MESSAGE(normalised(row.text, row.rule) == row.expected, row.what);
}

TEST_CASE("normalising twice changes nothing more, and a cut at a boundary changes nothing") {
  for (uint64_t seed = 0; seed < 50; ++seed)
    for (const Normalisation& rule : {nfc, nfkc, fold, nfkc_fold}) {
      const std::string text = mixed_text(seed, 40), whole = normalised(text, rule);
      CHECK_NOTHROW(check_utf8(whole, "normalised"));
      CHECK(normalised(whole, rule) == whole);
      for (size_t at = 0; at <= text.size(); ++at) {
        const size_t boundary = normalisation_boundary(text, at);
        CHECK(boundary <= at);
        CHECK(normalised(text.substr(0, boundary), rule) + normalised(text.substr(boundary), rule) == whole);
      }
    }
}

TEST_CASE("marks in a row take a time that grows with their number, not with its square") {
  std::string text = "a", accents;
  for (int i = 0; i < 100000; ++i) text += "\u0300\u0327";                      // in the wrong order
  CHECK(normalised(text, {NormalForm::nfc, false}).size() == text.size() - 1);  // the letter takes one accent
  for (int i = 0; i < 400; ++i) accents += "\u0300\u0327";
  const std::string ordered = normalised("q" + accents, {NormalForm::nfc, false});  // few enough to be ordered at once
  CHECK(ordered.find("\u0300") == 1 + 2 * 400);
}

TEST_CASE("marks are counted as they are ordered: after decomposition") {
  struct Row {
    std::string what;
    std::string marks;
    Normalisation rule;
    std::string last;  // in the order of Unicode
  };
  for (const Row& row : std::vector<Row>{{"no mark, but decomposed to two", "\u0f73", nfc, "\u0f72"},
                                         {"no mark, but compatible with one", "\u0301\uff9e", nfkc, "\u0301"},
                                         {"the same with case folding", "\u0301\uff9e", nfkc_fold, "\u0301"}}) {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += row.marks;
    CHECK_MESSAGE(normalised(text, row.rule).find(row.last) < 5000, row.what);  // not after all others: in parts
    text.clear();
    for (int i = 0; i < 150; ++i) text += row.marks;
    CHECK_MESSAGE(normalised(text, row.rule).find(row.last) >= 300, row.what);
  }
}

TEST_CASE("tokenizers normalise what they learn from and what they read, also when read back") {
  const std::string learnt = "Caf" + e_acute + " STRASSE", asked = "cafe" + acute + " stra" + sharp_s + "e";
  CharTokenizerConfig chars;
  chars.normalisation = nfkc_fold;
  WordTokenizerConfig words;
  words.normalisation = nfkc_fold;
  for (const TokenizerConfig& config : {TokenizerConfig(chars), TokenizerConfig(words)}) {
    const auto tokenizer = make_tokenizer(config, {learnt});
    CHECK(tokenizer->encode(asked) == tokenizer->encode(learnt));
    CHECK(tokenizer->decode(tokenizer->encode(asked)) == "caf" + e_acute + " strasse");
    const auto copy = tokenizer_from_json(tokenizer->to_json());
    CHECK(copy->encode(asked) == tokenizer->encode(learnt));
    CHECK(copy->fingerprint() == tokenizer->fingerprint());
  }
  WordTokenizerConfig plain;
  CHECK(make_tokenizer(plain, {learnt})->fingerprint() != make_tokenizer(words, {learnt})->fingerprint());
}

TEST_CASE("texts are cut only where normalised tokens do not change") {
  CharTokenizerConfig chars;
  WordTokenizerConfig words;
  for (uint64_t seed = 0; seed < 10; ++seed)
    for (const Normalisation& rule : {nfc, nfkc, fold, nfkc_fold}) {
      const std::string text = mixed_text(seed, 60);
      chars.normalisation = words.normalisation = rule;
      for (const TokenizerConfig& config : {TokenizerConfig(chars), TokenizerConfig(words)})
        check_boundaries(*make_tokenizer(config, {text}), config, text);
    }
}

TEST_CASE("tokenizers frozen before there was normalisation keep their text and their fingerprint") {
  for (const char* json : {R"({"code_points":[97,98],"kind":"char"})",
                           R"({"kind":"word","lower_case":true,"split":"blanks","words":["a","b"]})"})
    CHECK(tokenizer_from_json(json)->to_json() == json);
}
