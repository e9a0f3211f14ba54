// One spelling for texts that mean the same: Unicode's normal forms and case folding, by utf8proc. Tokenizers apply it
// to what they learn from and to what they read. Saved in tokenizer.json, where runs older than these keys have
// nothing: tests/data/tokenizers/test_normalisation.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/config/schema.hpp"

namespace capstan {

/// nfc: an accent and its letter become one character. nfkc: also, forms of the same character (full-width letters,
/// ligatures, no-break blanks) become that character (Unicode Standard Annex 15).
enum class NormalForm { none, nfc, nfkc };
inline std::vector<EnumName<NormalForm>> enum_names(NormalForm) {
  return {{NormalForm::none, "none"}, {NormalForm::nfc, "nfc"}, {NormalForm::nfkc, "nfkc"}};
}

struct Normalisation {
  NormalForm form = NormalForm::none;
  bool case_fold = false;
};

/// For the structs of tokenizers: they hold a Normalisation, and show its fields as their own.
template <class Fields>
void describe_normalisation(Fields& f, Normalisation& c) {
  f("normalise", c.form, any(),
    "Unicode normalisation; nfkc also turns full-width letters, ligatures and no-break spaces into plain ones");
  f("case_fold", c.case_fold, any(), "treat upper and lower case as the same, in all of Unicode");
}

inline bool changes_nothing(const Normalisation& rule) { return rule.form == NormalForm::none && !rule.case_fold; }

/// The text in the form of the rule. `text` must be valid UTF-8. A text that is cut in front of an ASCII character
/// gives the same in two pieces: no rule joins such a character to what precedes it.
std::string normalised(std::string_view text, const Normalisation& rule);

/// The largest position <= `at` with an ASCII character after it, or the text's end:
/// normalised() may work on the two sides alone.
size_t normalisation_boundary(std::string_view text, size_t at);

/// What case folding makes of the characters that it changes although they are in lower case: U+00DF becomes "ss". A
/// program that lowers each letter and then makes these replacements folds as this one does (exports for transformers).
std::vector<std::pair<std::string, std::string>> folded_lower_case();

/// Adds the options that differ from their defaults to the JSON of a tokenizer. Tokenizers of runs older than these
/// options so keep their JSON and fingerprints.
void add_to_json(const Normalisation& rule, nlohmann::json& json);
Normalisation normalisation_from(const nlohmann::json& json);

}  // namespace capstan
