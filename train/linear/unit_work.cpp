// Numbers change only while no other thread changes or saves them, so a file has those of finished units, and zeros.
// tests/train/linear/test_unfinished.cpp breaks work off and goes on.
#include "train/linear/unit_work.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {

UnitWork::UnitWork(WorkFile file, int64_t units, std::vector<FilledNumbers> numbers)
    : file_(std::move(file)), numbers_(std::move(numbers)), finished_(static_cast<size_t>(units), 0) {
  numbers_.push_back({"finished", {units}, finished_.data()});
  if (const auto saved = file_.load())
    for (const FilledNumbers& part : numbers_) {
      const FileTensor& tensor = saved->at(part.name);
      check(tensor.shape == part.shape, "{}: the shape of {} is another one", saved->path(), part.name);
      tensor.copy_to(part.values);
    }
}

void UnitWork::run(Progress* progress, double work, const std::function<FillIn(int64_t, const TellShare&)>& solve) {
  if (progress != nullptr) progress->skip(work * std::accumulate(finished_.begin(), finished_.end(), 0.0));
  parallel_units(static_cast<int64_t>(finished_.size()), [&](int64_t unit) {
    if (finished_[static_cast<size_t>(unit)] != 0) return;
    double told = 0;
    const TellShare tell = [&](double share) {
      const double done = std::max(told, work * std::min(share, 1.0));
      if (progress != nullptr) progress->add(done - told);
      told = done;
    };
    finish(unit, solve(unit, tell));
    tell(1);
  });
}

void UnitWork::finish(int64_t unit, const FillIn& fill_in) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (fill_in) fill_in();
  finished_[static_cast<size_t>(unit)] = 1;
  if (!file_.due()) return;
  std::vector<TensorToWrite> tensors;
  for (const FilledNumbers& part : numbers_) tensors.push_back({part.name, DType::f32, part.shape, part.values});
  file_.save(tensors);
}

}  // namespace capstan
