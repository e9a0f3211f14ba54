// What all ranks say to each other at once: gathering goes in ceil(log2 R) rounds, broadcasting along a binary tree.
// tests/train/test_communicator.cpp.
#include <algorithm>
#include <cstring>

#include "core/strings/strings.hpp"
#include "train/ranks/communicator.hpp"

namespace capstan {
namespace {

/// Bytes that are gathered or passed on at once; longer texts go in pieces.
constexpr size_t max_at_once = size_t{64} << 20;

}  // namespace

/// In round k, a rank knows the blocks of 2^k ranks, its own first, and gets those of the next 2^k ranks.
/// Bruck et al. 1997, "Efficient algorithms for all-to-all communications in multiport message-passing systems".
void Communicator::gather_blocks(void* all, size_t block) {
  if (size_ == 1 || block == 0) return;
  char* const blocks = static_cast<char*>(all);
  std::vector<char> known(block * static_cast<size_t>(size_));  // of this rank, of the next one, ...
  std::memcpy(known.data(), blocks + block * static_cast<size_t>(rank_), block);
  for (int count = 1; count < size_; count *= 2) {
    const size_t bytes = block * static_cast<size_t>(std::min(count, size_ - count));
    std::vector<Pending> both{
        receive((rank_ + count) % size_, known.data() + block * static_cast<size_t>(count), bytes),
        send((rank_ + size_ - count) % size_, known.data(), bytes)};
    wait(both);
  }
  for (int i = 0; i < size_; ++i)
    std::memcpy(blocks + block * static_cast<size_t>((rank_ + i) % size_),
                known.data() + block * static_cast<size_t>(i), block);
}

/// In pieces, so that texts of any length take no more memory and no longer messages than max_at_once.
std::vector<std::string> Communicator::gather(std::string_view mine) {
  const std::vector<uint64_t> sizes = gather_values<uint64_t>(mine.size());
  const size_t widest = *std::max_element(sizes.begin(), sizes.end()), ranks = sizes.size();
  const size_t piece = std::min(widest, std::max<size_t>(max_at_once / ranks, 1));
  std::vector<std::string> texts(ranks);
  for (size_t i = 0; i < ranks; ++i) texts[i].reserve(sizes[i]);
  std::string all(piece * ranks, '\0');
  for (size_t at = 0; at < widest; at += piece) {
    const size_t block = std::min(piece, widest - at);
    const std::string_view own = mine.substr(std::min(at, mine.size()), block);
    std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(block * static_cast<size_t>(rank_)));
    gather_blocks(all.data(), block);
    for (size_t i = 0; i < ranks; ++i) texts[i].append(all, block * i, std::min(block, sizes[i] - texts[i].size()));
  }
  return texts;
}

std::vector<std::vector<std::string>> Communicator::gather_lists(const std::vector<std::string>& mine) {
  constexpr std::string_view separator("\0", 1);
  std::vector<std::vector<std::string>> lists;
  for (const std::string& text : gather(join(mine, separator))) {
    const std::vector<std::string_view> parts = split(text, separator);
    lists.emplace_back(parts.begin(), parts.end());
  }
  return lists;
}

/// Along a binary tree: a rank gets the text from the rank whose number lacks its lowest bit, and passes it on to those
/// whose numbers have one lower bit more.
std::string Communicator::broadcast(std::string_view of_first) {
  if (size_ == 1) return std::string(of_first);
  int lowest = 1;
  while (lowest < size_ && (rank_ & lowest) == 0) lowest *= 2;
  uint64_t size = of_first.size();
  std::string text(of_first);
  const auto pass_on = [&](void* bytes, size_t count) {
    if (!first()) wait_for(receive(rank_ - lowest, bytes, count));
    std::vector<Pending> sent;
    for (int bit = lowest / 2; bit > 0; bit /= 2)
      if (rank_ + bit < size_) sent.push_back(send(rank_ + bit, bytes, count));
    wait(sent);
  };
  pass_on(&size, sizeof(size));
  if (!first()) text.assign(size, '\0');
  for (size_t at = 0; at < size; at += max_at_once) pass_on(text.data() + at, std::min(max_at_once, size - at));
  return text;
}

void Communicator::barrier() { gather_values<char>(0); }

}  // namespace capstan
