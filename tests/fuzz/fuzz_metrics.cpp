// metrics.jsonl, as a run that resumes finds it.
#include <nlohmann/json.hpp>

#include "core/io/file.hpp"
#include "tests/fuzz/target.hpp"
#include "train/records/metrics.hpp"

namespace capstan::fuzz {
namespace {

void read_metrics(std::string_view input) {
  const auto step = static_cast<int64_t>(choose(input, 16));
  const std::string path = file_in_memory(input, ".jsonl");
  { MetricsFile metrics(path, step); }
  const std::string kept = read_file(path);
  require(kept.empty() || kept.back() == '\n', "only whole lines are kept");
  { MetricsFile metrics(path, step); }
  require(read_file(path) == kept, "what was kept is kept again");
}

const Registered metrics_target("metrics", read_metrics);

}  // namespace
}  // namespace capstan::fuzz
