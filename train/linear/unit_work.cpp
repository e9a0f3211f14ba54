// The file of finished units: their count, then of each its number, the bytes of its result, and the result. A rank
// saves what it has taken up and what it has done itself, so that no file that replaces another has less.
// tests/train/linear/test_unit_work.cpp and test_rank_work.cpp break work off and go on.
#include "train/linear/unit_work.hpp"

#include <filesystem>
#include <numeric>
#include <utility>

#include <fmt/core.h>

#include "core/base/error.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {
namespace {

/// The common file of a rank.
std::string file_of_rank(const std::string& name, int rank) {
  return rank == 0 ? name : fmt::format("{}.rank{}", name, rank);
}

/// The names of the common files that ranks of any earlier job have left.
std::vector<std::string> files_of_ranks(const WorkPlace& place, const std::string& name) {
  std::vector<std::string> files{name};
  if (place.folder.empty()) return files;
  for (const std::string& file : names_in_folder(place.folder))
    if (const std::filesystem::path path(file);
        path.extension() == WorkFile::ending && file.rfind(name + ".rank", 0) == 0)
      files.push_back(path.stem().string());
  return files;
}

}  // namespace

UnitWork::UnitWork(const WorkPlace& place, std::string name, std::string identity, Units units, RankWork& ranks)
    : place_(place),
      name_(std::move(name)),
      identity_(std::move(identity)),
      units_(std::move(units)),
      ranks_(ranks),
      file_(place, file_of_rank(name_, ranks.rank()), identity_),
      done_(static_cast<size_t>(units_.count), 0) {
  load();
}

/// Rank 0 reads the files and tells the others, which might see other files.
void UnitWork::load() {
  if (ranks_.first())
    for (const std::string& name : files_of_ranks(place_, name_)) load(WorkFile(place_, name, identity_));
  if (ranks_.size() == 1) return;
  std::string known;
  append_bytes(known, in_order_.data(), in_order_.size());
  known = ranks_.broadcast(known);
  ByteReader from(known);
  for (size_t i = 0; i < known.size() / sizeof(int64_t); ++i) {
    const auto unit = from.next<int64_t>();
    share(unit, 0);
    if (ranks_.first()) continue;
    in_order_.push_back(unit);
    ++cleared_;  // rank 0 removes their files
  }
}

/// Takes the results of a file, up to the first one that is damaged.
void UnitWork::load(const WorkFile& file) {
  auto saved = file.load();
  if (!saved || saved->numbers.size() != 1) return;
  for (int64_t i = 0; i < saved->numbers[0]; ++i) {
    int64_t head[2];  // unit, bytes
    if (!saved->read(head, sizeof(head)) || head[0] < 0 || head[0] >= units_.count || head[1] < 0 ||
        static_cast<uint64_t>(head[1]) > saved->rest.size())
      return;
    std::string bytes(static_cast<size_t>(head[1]), '\0');
    if (!saved->read(bytes.data(), bytes.size())) return;
    if (is_done(head[0])) continue;  // another rank's file has it, too
    if (!units_.take(head[0], bytes)) return;
    done_[static_cast<size_t>(head[0])] = 1;
    in_order_.push_back(head[0]);
  }
}

/// Collective: all get the result of a unit from the rank that has it.
void UnitWork::share(int64_t unit, int owner) {
  const bool own = ranks_.rank() == owner;
  const std::string bytes = ranks_.broadcast(own ? units_.bytes(unit) : "", owner);
  if (!own) check(units_.take(unit, bytes), "ranks: unit {} of {} has another size", unit, name_);
  done_[static_cast<size_t>(unit)] = 1;
}

/// By unit, the rank that does it, or -1 where it is done: units that take long come first, each to the rank that has
/// least to do. All ranks find the same.
std::vector<int> UnitWork::deal() const {
  const int64_t groups = (units_.count + units_.together - 1) / units_.together;
  std::vector<double> work(static_cast<size_t>(groups), 0), load(static_cast<size_t>(ranks_.size()), 0);
  for (int64_t unit = 0; unit < units_.count; ++unit)
    if (!is_done(unit)) work[static_cast<size_t>(unit / units_.together)] += units_.work(unit);
  std::vector<size_t> order(work.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return work[a] > work[b]; });
  std::vector<int> owner_of_group(work.size());
  for (const size_t group : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += work[group];
    owner_of_group[group] = static_cast<int>(least - load.begin());
  }
  std::vector<int> owners;
  for (int64_t unit = 0; unit < units_.count; ++unit)
    owners.push_back(is_done(unit) ? -1 : owner_of_group[static_cast<size_t>(unit / units_.together)]);
  return owners;
}

void UnitWork::run(Progress* progress, const std::function<void(int64_t unit, UnitRun& run)>& solve) {
  const std::vector<int> owners = deal();
  double done = 0, left = 0, own = 0;
  for (int64_t unit = 0; unit < units_.count; ++unit) {
    const int owner = owners[static_cast<size_t>(unit)];
    const double work = units_.work(unit);
    (owner < 0 ? done : left) += work;
    if (owner == ranks_.rank()) own += work;
  }
  if (progress != nullptr && done > 0) progress->skip(done);
  const double all_per_own = own > 0 ? left / own : 0;  // a rank's own units stand for those of all
  ranks_.run([&] {
    parallel_units(units_.count, [&](int64_t unit) {
      if (owners[static_cast<size_t>(unit)] != ranks_.rank()) return;
      UnitRun run{file_of(unit), progress, all_per_own * units_.work(unit)};
      solve(unit, run);
      run.tell(1);
    });
  });
  if (ranks_.size() == 1) return;
  for (int64_t unit = 0; unit < units_.count; ++unit)
    if (const int owner = owners[static_cast<size_t>(unit)]; owner >= 0) share(unit, owner);
}

void UnitWork::finished(const std::vector<int64_t>& units) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const int64_t unit : units) {
    done_[static_cast<size_t>(unit)] = 1;
    in_order_.push_back(unit);
  }
  if (!file_.due()) return;
  const auto write_results = [&](FileWriter& to) {
    for (const int64_t unit : in_order_) {
      const std::string bytes = units_.bytes(unit);
      const int64_t head[2] = {unit, static_cast<int64_t>(bytes.size())};
      to.write(head, sizeof(head));
      to.write(bytes);
    }
  };
  file_.save({static_cast<int64_t>(in_order_.size())}, write_results);
  // Only now: until the results are saved, a unit's own file has the only record of its work.
  for (; cleared_ < in_order_.size(); ++cleared_) file_of(in_order_[cleared_]).remove();
}

WorkFile UnitWork::file_of(int64_t unit) const {
  return {place_, fmt::format("{}-{}", name_, unit), fmt::format("{} {}", identity_, unit)};
}

}  // namespace capstan
