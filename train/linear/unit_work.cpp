// The file of finished units: their count, then of each its number, the bytes of its result, and the result.
// tests/train/linear/test_unit_work.cpp breaks work off and goes on.
#include "train/linear/unit_work.hpp"

#include <cstring>
#include <utility>

#include <fmt/core.h>

#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

std::string bytes_of(const std::vector<StridedNumbers>& result) {
  std::string bytes;
  for (const StridedNumbers& numbers : result)
    for (int64_t i = 0; i < numbers.count; ++i) bytes.append(numbers.at(i), numbers.size);
  return bytes;
}

/// Puts what bytes_of() has written into its place. False, with nothing changed, if it has another size.
bool take_bytes(const std::string& bytes, const std::vector<StridedNumbers>& result) {
  size_t size = 0;
  for (const StridedNumbers& numbers : result) size += static_cast<size_t>(numbers.count) * numbers.size;
  if (bytes.size() != size) return false;
  const char* from = bytes.data();
  for (const StridedNumbers& numbers : result)
    for (int64_t i = 0; i < numbers.count; ++i, from += numbers.size) std::memcpy(numbers.at(i), from, numbers.size);
  return true;
}

}  // namespace

UnitWork::UnitWork(const WorkPlace& place, std::string name, std::string identity, Units units)
    : place_(place),
      name_(std::move(name)),
      identity_(std::move(identity)),
      units_(std::move(units)),
      file_(place, name_, identity_),
      done_(static_cast<size_t>(units_.count), 0) {
  load();
}

/// Takes the results of the file, up to the first one that is damaged.
void UnitWork::load() {
  auto saved = file_.load();
  int64_t count = 0;
  if (!saved || !saved->read(&count, sizeof(count))) return;
  for (int64_t i = 0; i < count; ++i) {
    int64_t head[2];  // unit, bytes
    if (!saved->read(head, sizeof(head)) || head[0] < 0 || head[0] >= units_.count || head[1] < 0 ||
        static_cast<uint64_t>(head[1]) > saved->file.size())
      return;
    std::string bytes(static_cast<size_t>(head[1]), '\0');
    if (!saved->read(bytes.data(), bytes.size())) return;
    if (is_done(head[0]) || !take_bytes(bytes, units_.result(head[0]))) return;
    done_[static_cast<size_t>(head[0])] = 1;
    in_order_.push_back(head[0]);
  }
}

void UnitWork::run(Progress* progress, const std::function<void(int64_t unit, UnitRun& run)>& solve) {
  if (progress != nullptr)
    for (const int64_t unit : in_order_) progress->skip(units_.work(unit));
  parallel_units(units_.count, [&](int64_t unit) {
    if (is_done(unit)) return;
    UnitRun run{file_of(unit), progress, units_.work(unit)};
    solve(unit, run);
    run.tell(1);
  });
}

void UnitWork::finished(const std::vector<int64_t>& units) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const int64_t unit : units) {
    done_[static_cast<size_t>(unit)] = 1;
    in_order_.push_back(unit);
  }
  if (!file_.due()) return;
  file_.save([&](FileWriter& to) {
    const auto count = static_cast<int64_t>(in_order_.size());
    to.write(&count, sizeof(count));
    for (const int64_t unit : in_order_) {
      const std::string bytes = bytes_of(units_.result(unit));
      const int64_t head[2] = {unit, static_cast<int64_t>(bytes.size())};
      to.write(head, sizeof(head));
      to.write(bytes);
    }
  });
  // Only now: until the results are saved, a unit's own file has the only record of its work.
  for (; cleared_ < in_order_.size(); ++cleared_) file_of(in_order_[cleared_]).remove();
}

WorkFile UnitWork::file_of(int64_t unit) const {
  return {place_, fmt::format("{}-{}", name_, unit), fmt::format("{} {}", identity_, unit)};
}

}  // namespace capstan
