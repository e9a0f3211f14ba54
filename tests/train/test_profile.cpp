// A profiled stretch of a run, and its table.
#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <sstream>

#include "train/records/profile_table.hpp"
#include "train/support.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

struct Profiled {
  std::vector<real> weights;
  std::vector<Profile> reports;
};

/// `steps` steps, of which `profiled` are under a profile after 2 to warm up; 0: no profiler.
Profiled run(int64_t steps, int64_t profiled) {
  const TemporaryFolder folder;
  Setup setup(folder / "run");
  Profiled result;
  StepProfiler profiler(2, profiled, [&](const Profile& profile) { result.reports.push_back(profile); });
  if (profiled > 0) setup.inputs.profiler = &profiler;
  TrainConfig config = quiet_config(steps);
  train(setup.inputs, config);
  if (profiled > 0) profiler.finish();
  result.weights = setup.weights();
  return result;
}

/// Name and column "ms" of every row.
std::vector<std::pair<std::string, double>> milliseconds_of(const std::string& table) {
  std::vector<std::pair<std::string, double>> rows;
  std::istringstream lines(table);
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  const size_t end = line.find("ms") + 2;
  while (std::getline(lines, line) && line.rfind("Per step", 0) != 0)
    rows.emplace_back(line.substr(0, line.find("  ")), std::strtod(line.substr(end - 8, 8).c_str(), nullptr));
  return rows;
}

}  // namespace

TEST_CASE("a profiled run ends with the same weights, and its profile covers what a step does") {
  const Profiled plain = run(9, 0), profiled = run(9, 4);
  CHECK(plain.weights == profiled.weights);
  CHECK(plain.reports.empty());
  REQUIRE(profiled.reports.size() == 1);
  const Profile& profile = profiled.reports[0];
  CHECK(profile.steps() == 4);
  std::map<std::string, int64_t> calls;
  for (const ProfileRow& row : profile.rows()) calls[row.name] += row.calls;
  CHECK(calls == std::map<std::string, int64_t>{{"data", 4},
                                                {"gradient norm", 4},
                                                {"lookup", 8},
                                                {"optimizer", 4},
                                                {"sum of gradients", 8},
                                                {Profile::outside, 4}});
}

TEST_CASE("a run that ends within the stretch is reported as far as it went") {
  struct Case {
    int64_t steps, profiled, expected;
  };
  for (const Case& c : {Case{6, 4, 4}, Case{5, 4, 3}, Case{2, 4, 0}, Case{1, 1, 0}}) {
    const Profiled result = run(c.steps, c.profiled);
    REQUIRE(result.reports.size() == 1);
    CHECK(result.reports[0].steps() == c.expected);
  }
}

TEST_CASE("the table: longest first, what is outside last, and the step is the sum") {
  const std::string table = to_text(run(8, 5).reports.at(0), {50e9, 300e9});
  INFO(table);
  const auto rows = milliseconds_of(table);
  REQUIRE(rows.size() >= 3);
  CHECK(rows.back().first == "step");
  CHECK(rows[rows.size() - 2].first == Profile::outside);
  double sum = 0;
  for (size_t i = 0; i + 1 < rows.size(); ++i) {
    sum += rows[i].second;
    if (i + 3 < rows.size()) CHECK(rows[i].second >= rows[i + 1].second);
  }
  // Each row is rounded to a thousandth.
  CHECK(std::abs(sum - rows.back().second) <= 0.0005 * static_cast<double>(rows.size()));
  CHECK(contains(table, "profile of 5 steps; this machine: triad 50.0 GB/s, sgemm 300 GFLOP/s"));
  // The column GB/s, where there are bytes.
  const Profile profile = run(8, 5).reports.at(0);
  std::istringstream lines(to_text(profile, {50e9, 300e9}));
  std::string line;
  int rates = 0;
  while (std::getline(lines, line))
    for (const ProfileRow& row : profile.rows())
      if (line.rfind(fmt::format("{:<24}{:<9}", row.name,
                                 row.pass == Pass::none      ? ""
                                 : row.pass == Pass::forward ? "forward"
                                                             : "backward"),
                     0) == 0) {
        const std::string rate = line.substr(24 + 9 + 7 + 9 + 8 + 9 + 9, 7);
        const std::string expected =
            row.bytes == 0 || row.nanoseconds == 0
                ? ""
                : fmt::format("{:.1f}", static_cast<double>(row.bytes) / static_cast<double>(row.nanoseconds));
        CHECK(rate == fmt::format("{:>7}", expected));
        rates += expected.empty() ? 0 : 1;
      }
  CHECK(rates > 0);
  CHECK(contains(to_text(Profile(), {1, 1}), "ended before a step could be profiled"));
}
