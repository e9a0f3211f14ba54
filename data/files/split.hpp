// The parts of data: what is trained on (train), and what is held out (valid, test). Used wherever something exists
// once per split: configurations, examples, token files.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"

namespace capstan {

enum class Split { train, valid, test };
constexpr Split all_splits[] = {Split::train, Split::valid, Split::test};

/// The member of a struct with the members train, valid and test that belongs to a split.
template <class Parts>
auto& part_of(Parts& parts, Split split) {
  return split == Split::train ? parts.train : split == Split::valid ? parts.valid : parts.test;
}

template <class T>
struct PerSplit {
  T train{}, valid{}, test{};

  T& operator[](Split split) { return part_of(*this, split); }
  const T& operator[](Split split) const { return part_of(*this, split); }
};

inline const char* to_string(Split split) { return PerSplit<const char*>{"train", "valid", "test"}[split]; }

/// Is it what people call a split: in a column, or as a folder?
inline bool names_split(std::string_view name) {
  for (const char* const split : {"train", "training", "valid", "validation", "val", "dev", "test", "testing"})
    if (name == split) return true;
  return false;
}

/// Moves the rows that are marked to the result; both keep their order.
template <class Row>
std::vector<Row> take_marked(std::vector<Row>& rows, const std::vector<bool>& marked) {
  std::vector<Row> kept, taken;
  for (size_t i = 0; i < rows.size(); ++i) (marked[i] ? taken : kept).push_back(std::move(rows[i]));
  rows = std::move(kept);
  return taken;
}

/// Returns what `read` returns. An Error that it throws gets the key of the split in front ("data.test: ..."), so that
/// a user finds the file in the configuration; a ConfigError has its key already.
template <class Read>
auto with_key(Split split, const Read& read) {
  try {
    return read();
  } catch (const ConfigError&) {
    throw;
  } catch (const Error& problem) {
    throw Error(fmt::format("data.{}: {}", to_string(split), problem.what()));
  }
}

}  // namespace capstan
