// metrics.jsonl, as a run that resumes finds it.
#include "tests/fuzz/target.hpp"
#include "train/records/metrics.hpp"

namespace capstan::fuzz {
namespace {

void read_metrics(std::string_view input) {
  const auto step = static_cast<int64_t>(choose(input, 16));
  const MetricsText text = readable_metrics(input, step);
  require(text.kept.size() <= input.size() + 1, "nothing is added but a line's end");
  require(text.kept.empty() || text.kept.back() == '\n', "only whole lines are kept");
  const MetricsText again = readable_metrics(text.kept, step);
  require(again.kept == text.kept && again.lines == text.lines && again.bad == 0, "what was kept is kept again");
}

const Registered metrics_target("metrics", read_metrics);

}  // namespace
}  // namespace capstan::fuzz
