// Texts of Python, and arrays of NumPy with what a model makes of them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "python/bindings/engine.hpp"
#include "run/inputs/input_text.hpp"

namespace capstan::python {

template <class T>
using Rows = nb::ndarray<nb::numpy, T, nb::ndim<2>>;
using FloatRows = Rows<float>;

/// The number of texts between two checks whether the caller has cancelled.
constexpr size_t chunk = 256;

inline std::string utf8_of(nb::handle text) {
  Py_ssize_t bytes = 0;
  const char* const characters = PyUnicode_AsUTF8AndSize(text.ptr(), &bytes);
  if (characters == nullptr) throw nb::python_error();
  return std::string(characters, static_cast<size_t>(bytes));
}

inline nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }

/// The texts of a list whose elements are strings or, for texts of several columns, tuples of strings.
inline std::vector<InputText> input_texts(const nb::list& texts) {
  std::vector<InputText> all;
  all.reserve(texts.size());
  for (const nb::handle given : texts) {
    InputText& text = all.emplace_back();
    text.place = fmt::format("text {}", all.size() - 1);
    if (!nb::isinstance<nb::tuple>(given)) {
      text.text = utf8_of(given);
      text.columns = {text.text};
      continue;
    }
    for (const nb::handle column : given) text.columns.push_back(utf8_of(column));
    for (const std::string& column : text.columns) text.text += (text.text.empty() ? "" : " ") + column;
  }
  return all;
}

/// (rows, columns), from rows that are appended one after the other.
template <class T>
Rows<T> as_array(std::vector<T> values, size_t rows, size_t columns) {
  auto* const kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* values_kept) noexcept { delete static_cast<std::vector<T>*>(values_kept); });
  return Rows<T>(kept->data(), {rows, columns}, owner);
}

/// body(some) for pieces of the texts.
template <class Body>
void for_chunks(const std::vector<InputText>& texts, const Body& body) {
  for (size_t begin = 0; begin < texts.size(); begin += chunk) {
    const auto first = texts.begin() + static_cast<std::ptrdiff_t>(begin);
    body(std::vector<InputText>(first, first + static_cast<std::ptrdiff_t>(std::min(chunk, texts.size() - begin))));
  }
}

/// Are they so few that a model without products reads them within a moment?
inline bool are_short(const std::vector<InputText>& texts) {
  constexpr size_t max_bytes = 1 << 18;
  size_t bytes = 0;
  for (const InputText& text : texts) bytes += text.text.size();
  return texts.size() <= chunk && bytes <= max_bytes;
}

/// rows(texts) for pieces of the texts, `columns` floats for each text. `without_products`: what the model computes.
template <class Compute>
FloatRows rows_of(bool without_products, const nb::list& texts, size_t columns, const Compute& rows) {
  const std::vector<InputText> all = input_texts(texts);
  const auto work = [&] {
    std::vector<float> found;
    found.reserve(all.size() * columns);
    for_chunks(all, [&](const std::vector<InputText>& some) {
      for (const std::vector<float>& row : rows(some)) found.insert(found.end(), row.begin(), row.end());
    });
    return found;
  };
  return as_array(without_products && are_short(all) ? compute_here(work) : compute(work), all.size(), columns);
}

}  // namespace capstan::python
