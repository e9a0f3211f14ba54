#include "train/records/run_records.hpp"

#include <nlohmann/json.hpp>

namespace capstan {

RunRecords::RunRecords(const Options& options, const MetricsFile::Warn& warn)
    : metrics_(options.metrics_path, options.step, options.mark, options.own, warn) {
  if (!options.event_folder.empty())
    events_ = std::make_unique<EventFile>(options.event_folder, options.step, options.open_window, warn);
}

void RunRecords::add(const nlohmann::json& line) {
  metrics_.add(line);
  if (events_) events_->add(line);
}

MetricsMark RunRecords::sync() {
  const MetricsMark mark = metrics_.sync();
  if (events_) events_->sync();
  return mark;
}

}  // namespace capstan
