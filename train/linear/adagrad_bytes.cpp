// The weights and rows of AdaGradSolver as bytes: in the file of unfinished work, and between ranks.
// tests/train/linear/test_fit_adagrad.cpp, test_rank_work.cpp.
#include <algorithm>

#include "train/linear/adagrad.hpp"
#include "train/linear/unit_work.hpp"

namespace capstan {

void AdaGradSolver::write(FileWriter& to) const {
  std::vector<float> numbers;
  const auto flush = [&] {
    to.write(numbers.data(), numbers.size() * sizeof(float));
    numbers.clear();
  };
  for_used([&](int64_t f) {
    const auto first = weights_.begin() + f * width_;
    numbers.insert(numbers.end(), first, first + columns_);
    numbers.push_back(accumulators_[static_cast<size_t>(f)]);
    if (numbers.size() > size_t{1} << 18) flush();
  });
  flush();
}

bool AdaGradSolver::read(WorkFile::Saved& from) {
  std::vector<float> numbers(static_cast<size_t>(columns_) + 1);
  bool whole = true;
  for_used([&](int64_t f) {
    whole = whole && from.read(numbers.data(), numbers.size() * sizeof(float));
    std::copy_n(numbers.begin(), columns_, weights_.begin() + f * width_);
    accumulators_[static_cast<size_t>(f)] = numbers.back();
  });
  return whole;
}

void AdaGradSolver::share() {
  ranks_.broadcast_numbers(weights_);
  ranks_.broadcast_numbers(accumulators_);
}

/// What an update needs of the rows [begin, end) of the batch, for other ranks, which may have the entries themselves.
std::string AdaGradSolver::bytes_of(int64_t begin, int64_t end) const {
  size_t entries = 0;
  for (int64_t i = begin; i < end; ++i) entries += batch_[static_cast<size_t>(i)].values.all.size();
  std::string bytes;
  bytes.reserve((entries_are_sent_ ? entries * sizeof(NgramValue) : 0) +
                static_cast<size_t>(end - begin) * (64 + static_cast<size_t>(width_) * sizeof(float)));
  for (int64_t i = begin; i < end; ++i) {
    const Row& row = batch_[static_cast<size_t>(i)];
    append_bytes(bytes, row.gradients.data(), row.gradients.size());
    append_bytes(bytes, &row.squares, 1);
    if (!entries_are_sent_) continue;
    const uint64_t sizes[2] = {row.values.all.size(), row.values.words};
    append_bytes(bytes, sizes, 2);
    append_bytes(bytes, row.values.all.data(), row.values.all.size());
  }
  return bytes;
}

/// Fills the rows [begin, end) of the batch by what another rank has sent.
void AdaGradSolver::take_rows(const std::string& bytes, int64_t begin, int64_t end) {
  ByteReader from(bytes);
  for (int64_t i = begin; i < end; ++i) {
    Row& row = batch_[static_cast<size_t>(i)];
    row.gradients.resize(static_cast<size_t>(width_));
    from.next(row.gradients.data(), row.gradients.size());
    row.squares = from.next<float>();
    if (!entries_are_sent_) continue;
    row.values.all.resize(from.next<uint64_t>());
    row.values.words = from.next<uint64_t>();
    from.next(row.values.all.data(), row.values.all.size());
  }
}

}  // namespace capstan
