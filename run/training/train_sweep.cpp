#include "run/training/train_sweep.hpp"

#include <filesystem>

#include "core/base/error.hpp"
#include "core/io/log.hpp"
#include "run/summaries/run_table.hpp"
#include "train/loop/signals.hpp"

namespace capstan {
namespace fs = std::filesystem;

SweepEnd train_sweep(const Sweep& sweep, const TrainRunOptions& options, const Guard& guard, std::ostream& table,
                     size_t width) {
  if (fs::exists(sweep.folder / "config.yaml"))
    throw Error(fmt::format("{} is the folder of a single run: give the sweep another name", sweep.folder.string()));
  const StopSignals signals;
  const auto stopped = [] { return StopSignals::received() != 0; };
  SweepEnd end;
  std::vector<std::string> with_metrics;
  for (size_t i = 0; i < sweep.runs.size(); ++i) {
    const std::string folder = (sweep.folder / sweep.runs[i].name).string();
    const std::string count = fmt::format("run {} of {}", i + 1, sweep.runs.size());
    const bool finished = is_finished(sweep.runs[i]);
    log_info(fmt::format("{}: {}{}", count, folder, finished ? " is finished" : ""));
    if (!finished) {
      const Ending ending = train_in_child(sweep.runs[i], options, guard, stopped);
      if (ending.code == exit_interrupted || (stopped() && ending.code != exit_done)) {
        log_info(fmt::format("sweep interrupted during {}; the same command resumes it", count));
        end.interrupted = true;
        return end;
      }
      if (ending.code != exit_done) {
        end.failed.push_back(fmt::format("{}: {}", folder, describe_ending(ending)));
        log_error(fmt::format("{}: {}; the other runs continue", count, end.failed.back()));
      }
    }
    if (fs::exists(fs::path(folder) / "metrics.jsonl")) with_metrics.push_back(folder);
  }
  if (!with_metrics.empty()) print_comparison(read_records(with_metrics), table, width);
  return end;
}

}  // namespace capstan
