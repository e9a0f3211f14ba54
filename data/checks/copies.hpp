// Copies of a text among the rows of a table, found by their hashes. Whatever is held out of training, a copy goes
// where the first one goes, or a model is judged by texts that it has learnt: data/labelled, data/pairs and
// train/linear hold out by it. tests/data/labelled/test_copies.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace capstan {

/// A text that equals an earlier one, by their places.
struct Copy {
  int64_t place, first;
};

/// What find_copies() compares: 64 bits, which two different texts among 10^8 share once in 3,700 tables.
uint64_t copy_hash(std::string_view text);
/// The copies among texts with these hashes, by place in ascending order.
std::vector<Copy> find_copies(const std::vector<uint64_t>& hashes);
/// The same, with hash(i) of each of `count` texts, which several threads ask for. May stop (core/base/stop.hpp).
std::vector<Copy> find_copies(int64_t count, const std::function<uint64_t(int64_t)>& hash);
/// One hash for all texts that are connected by being copies or of one group: that of the first of them.
std::vector<uint64_t> connected_hashes(const std::vector<uint64_t>& texts, const std::vector<uint64_t>& groups);

/// The places from 0 to count - 1 that are no copies, ascending.
std::vector<size_t> places_but(const std::vector<Copy>& copies, size_t count);
/// Marks copies as their first ones are marked.
template <class Marks>
void mark_copies(const std::vector<Copy>& copies, Marks& marks) {
  for (const Copy& copy : copies) marks[static_cast<size_t>(copy.place)] = marks[static_cast<size_t>(copy.first)];
}

}  // namespace capstan
