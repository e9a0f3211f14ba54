// Hashes are sorted to see which occur twice: with few copies, little more than that is in memory.
#include "data/checks/copies.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "core/io/hash.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {

uint64_t copy_hash(std::string_view text) { return hash_bits(text)[0]; }

std::vector<Copy> find_copies(const std::vector<uint64_t>& hashes) {
  constexpr int64_t not_met = -1;
  std::unordered_map<uint64_t, int64_t> first;  // of hashes that occur twice: the place of the first
  {
    std::vector<uint64_t> sorted(hashes);
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i] == sorted[i - 1]) first.emplace(sorted[i], not_met);
  }
  std::vector<Copy> copies;
  if (first.empty()) return copies;
  for (size_t place = 0; place < hashes.size(); ++place) {
    const auto met = first.find(hashes[place]);
    if (met == first.end()) continue;
    if (met->second == not_met)
      met->second = static_cast<int64_t>(place);
    else
      copies.push_back({static_cast<int64_t>(place), met->second});
  }
  return copies;
}

std::vector<Copy> find_copies(int64_t count, const std::function<uint64_t(int64_t)>& hash) {
  constexpr int64_t texts_at_once = 2048;
  std::vector<uint64_t> hashes(static_cast<size_t>(count));
  parallel_for(count, texts_at_once, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (i % texts_at_once == 0) stop_point();
      hashes[static_cast<size_t>(i)] = hash(i);
    }
  });
  return find_copies(hashes);
}

std::vector<uint64_t> connected_hashes(const std::vector<uint64_t>& texts, const std::vector<uint64_t>& groups) {
  std::vector<int64_t> above(texts.size());  // trees over the texts, whose roots are the first of each set
  std::iota(above.begin(), above.end(), int64_t{0});
  const auto up = [&](int64_t text) -> int64_t& { return above[static_cast<size_t>(text)]; };
  const auto root = [&](int64_t text) {
    while (up(text) != text) text = up(text) = up(up(text));
    return text;
  };
  for (const auto* const hashes : {&texts, &groups})
    for (const Copy& copy : find_copies(*hashes)) {
      const int64_t a = root(copy.first), b = root(copy.place);
      up(std::max(a, b)) = std::min(a, b);
    }
  std::vector<uint64_t> connected;
  for (size_t i = 0; i < texts.size(); ++i)
    connected.push_back(texts[static_cast<size_t>(root(static_cast<int64_t>(i)))]);
  return connected;
}

std::vector<size_t> places_but(const std::vector<Copy>& copies, size_t count) {
  std::vector<size_t> places;
  places.reserve(count - copies.size());
  auto copy = copies.begin();
  for (size_t place = 0; place < count; ++place)
    if (copy != copies.end() && copy->place == static_cast<int64_t>(place))
      ++copy;
    else
      places.push_back(place);
  return places;
}

}  // namespace capstan
