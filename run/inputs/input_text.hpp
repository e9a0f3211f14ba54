// A text that is given to a model, with the place that messages name, and loops over several texts whose error names
// the text. Predictions, the server and the Python package use it. tests/cli/runs/test_predictions.cpp holds the
// errors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/base/error.hpp"

namespace capstan {

struct InputText {
  InputText() = default;
  /// One text, which is no pair.
  InputText(std::string given) : text(std::move(given)), columns{text}, place("text") {}  // NOLINT: implicit on purpose
  InputText(const char* given) : InputText(std::string(given)) {}                         // NOLINT

  std::string text;                  // its columns, joined by a space
  std::vector<std::string> columns;  // of a text pair; otherwise the text
  std::string label;                 // of tables that are read with labels: the class, or the target of a pair
  std::vector<std::string> labels;   // of tables that are read with labels: the classes, where a text has any number
  std::string place;                 // where it is from, for messages: file:line
  int64_t line = 0;                  // in its file, from 1; 0: not known
};

/// One of several texts cannot be used.
class TextError : public Error {
 public:
  TextError(size_t index, const Error& cause) : TextError(index, cause.what(), cause) {}
  /// `what` in place of the words of the cause.
  TextError(size_t index, const std::string& what, const Error& cause) : Error(what), index_(index) {
    const auto* const text = dynamic_cast<const TextError*>(&cause);
    not_finite_ = text != nullptr ? text->not_finite_ : dynamic_cast<const NotFinite*>(&cause) != nullptr;
  }
  /// Which of them, from 0.
  size_t index() const { return index_; }
  /// Is it the model's fault, which computes what is not finite, rather than the text's?
  bool not_finite() const { return not_finite_; }

 private:
  size_t index_;
  bool not_finite_;
};

[[noreturn]] void throw_not_finite(const std::string& place, double value);
/// Throws NotFinite naming `place` unless all of what a model has computed for the text there is finite.
template <class T>
void require_finite(const T* values, int64_t count, const std::string& place) {
  const T* const bad = std::find_if(values, values + count, [](T value) { return !std::isfinite(value); });
  if (bad != values + count) throw_not_finite(place, static_cast<double>(*bad));
}
inline void require_finite(double value, const std::string& place) { require_finite(&value, 1, place); }

/// encode(text) of every text. Throws TextError for the first for which that throws Error.
template <class Encode>
auto encode_all(const std::vector<InputText>& texts, const Encode& encode) {
  std::vector<decltype(encode(texts.front()))> encoded;
  for (size_t i = 0; i < texts.size(); ++i) {
    try {
      encoded.push_back(encode(texts[i]));
    } catch (const Error& error) {
      throw TextError(i, error);
    }
  }
  return encoded;
}

/// body(i) for each of `count` texts, in parallel, each on one thread. Throws TextError for the first for which that
/// throws Error.
void for_each_text(size_t count, const std::function<void(size_t)>& body);

}  // namespace capstan
