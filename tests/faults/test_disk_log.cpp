// The model of a disk: what each kind of survival leaves, on logs whose outcome is known; and a sample of losses.
#include <doctest/doctest.h>

#include "tests/faults/disk_recorder.hpp"
#include "tests/faults/power_loss.hpp"
#include "tests/faults/traced_process.hpp"

namespace capstan::testing {
namespace {

using Names = Survival::Names;
using Data = Survival::Data;

/// "path=content path/" of what survives of the whole log.
std::string left(const DiskLog& log, Names names, Data data) {
  std::mt19937 random(1);
  std::string text;
  for (const auto& [path, entry] : log.after(log.length(), {names, data}, random))
    text += (text.empty() ? "" : " ") + path +
            (entry.kind == 'd'   ? "/"
             : entry.kind == 'l' ? "->" + entry.content
                                 : "=" + entry.content);
  return text;
}

TEST_CASE("data that were not synced are absent, zeros or torn") {
  const Workplace place;
  place.write("old", "before");
  DiskLog log(place.folder());
  const std::string root = std::filesystem::canonical(place.folder()).string();
  log.write(root + "/old", 0, "AFTER!");
  log.create_file(root + "/new");
  log.write(root + "/new", 0, "abcd");
  CHECK(left(log, Names::all, Data::all) == "new=abcd old=AFTER!");
  CHECK(left(log, Names::all, Data::synced) == "new= old=before");
  CHECK(left(log, Names::all, Data::torn) == "new=ab old=AFTore");
  CHECK(left(log, Names::synced, Data::all) == "old=AFTER!");
  std::string zeros = "new=old=";
  zeros.insert(8, 6, '\0').insert(4, 4, '\0').insert(8, " ");
  CHECK(left(log, Names::all, Data::zeros) == zeros);
  log.sync(root + "/new");
  CHECK(left(log, Names::all, Data::torn) == "new=abcd old=AFTore");
  CHECK(left(log, Names::journal, Data::synced) == "new=abcd old=before");
  CHECK(left(log, Names::synced, Data::synced) == "old=before");
}

TEST_CASE("names that were not synced are as before; a rename is whole or not there") {
  const Workplace place;
  place.write("runs/last", "1");
  DiskLog log(place.folder());
  const std::string root = std::filesystem::canonical(place.folder()).string();
  log.create_file(root + "/runs/last.tmp");
  log.write(root + "/runs/last.tmp", 0, "2");
  log.rename(root + "/runs/last.tmp", root + "/runs/last");
  CHECK(left(log, Names::all, Data::all) == "runs/ runs/last=2");
  CHECK(left(log, Names::all, Data::synced) == "runs/ runs/last=");  // the file of length zero after a rename
  CHECK(left(log, Names::synced, Data::all) == "runs/ runs/last=1");
  log.sync(root + "/runs");
  CHECK(left(log, Names::synced, Data::all) == "runs/ runs/last=2");
  log.create_folder(root + "/runs/deep");
  log.create_link(root + "/runs/deep/link", "x");
  log.sync(root + "/runs/deep");  // of no use: its own name in the folder above was not synced
  CHECK(left(log, Names::synced, Data::synced) == "runs/ runs/last=");
  CHECK(left(log, Names::journal, Data::all) == "runs/ runs/deep/ runs/deep/link->x runs/last=2");
  log.remove(root + "/runs/last");
  CHECK(left(log, Names::all, Data::all) == "runs/ runs/deep/ runs/deep/link->x");
}

TEST_CASE("a rename to another folder leaves the file in one of both") {
  const Workplace place;
  place.write("partial/index", "x");
  place.write("cache/other", "y");
  DiskLog log(place.folder());
  const std::string root = std::filesystem::canonical(place.folder()).string();
  log.rename(root + "/partial/index", root + "/cache/index");
  CHECK(left(log, Names::synced, Data::all) == "cache/ cache/other=y partial/ partial/index=x");
  SUBCASE("the new folder is synced") { log.sync(root + "/cache"); }
  SUBCASE("the old one is") { log.sync(root + "/partial"); }
  CHECK(left(log, Names::synced, Data::all) == "cache/ cache/index=x cache/other=y partial/");
}

TEST_CASE("a sample of power losses: the same command ends with the same bits") {
  if (!tracing_problem().empty()) {
    MESSAGE("skipped: " << tracing_problem());
    return;
  }
  const PowerLosses losses = lose_power(kind_called("often"), 20, 1);
  MESSAGE(losses.states, " states of the disk, ", losses.tried, " tried");
}

}  // namespace
}  // namespace capstan::testing
