// Labels that are written in several ways: as the same class (common_form, for ClassNames), as probably the same class
// (folded_label, for warnings), and for messages. tests/data/labelled/test_labelled_source.cpp and
// test_tables_people_have.cpp.
#pragma once

#include <string>

namespace capstan {

/// A label as all formats could have written it: "true" for "True", 1 for 1.0, without quotes around it.
std::string common_form(const std::string& label);

/// A label without differences of case, blanks and invisible characters. Labels with equal results are probably meant
/// to be the same.
std::string folded_label(const std::string& label);

/// A label for a message: blanks other than U+0020 and invisible characters become escapes such as \u00a0.
std::string visible_label(const std::string& label);

}  // namespace capstan
