// Lines are found by event and step, so that one which is absent does not make all that follow it differ; their order
// is compared once all have been found. tests/cli/runs/test_replay.cpp.
#include "run/training/replay_metrics.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>

#include "core/io/json.hpp"

namespace capstan {
namespace {

using nlohmann::json;

/// The first field in which two lines differ, in words.
std::optional<std::string> first_difference(const json& saved, const json& computed) {
  const auto text = [](const json& line, const std::string& field) {
    return line.contains(field) ? json_text(line[field]) : std::string("nothing");
  };
  for (const json* const line : {&saved, &computed})
    for (const auto& [field, value] : line->items())
      if (!saved.contains(field) || !computed.contains(field) || saved[field] != computed[field])
        return fmt::format("{}: saved {}, computed {}", field, text(saved, field), text(computed, field));
  return std::nullopt;
}

/// What is wrong with the saved lines, each found by its name.
std::vector<std::string> differences_of(const MetricsPiece& saved, const MetricsPiece& computed,
                                        const StepRange& steps) {
  std::vector<std::string> differ;
  for (const int64_t number : saved.unreadable)
    differ.push_back(fmt::format("line {}, it is not a line that a run writes", number));
  std::map<std::string, const json*> found;
  for (const MetricsLine& line : computed.lines) found[line.name] = &line.event;
  std::set<std::string> seen;
  for (const auto& [name, event] : saved.lines) {
    std::optional<std::string> what;
    if (!seen.insert(name).second)
      what = "it is there more than once";
    else if (const auto other = found.find(name); other == found.end())
      what = "it was not computed";
    else
      what = first_difference(event, *other->second);
    if (what) differ.push_back(fmt::format("{}, {}", name, *what));
  }
  // Where training ends, it writes a last line about fewer steps than usual. A run that went on from there, or was
  // killed behind its last checkpoint, lacks that line.
  const std::string last = fmt::format("train of step {}", steps.to);
  std::vector<std::string> order;
  for (const MetricsLine& line : computed.lines) {
    if (seen.count(line.name) > 0)
      order.push_back(line.name);
    else if (line.name != last || steps.ends_with_line)
      differ.push_back(line.name + ", it was not saved");
  }
  if (!differ.empty()) return differ;
  for (size_t i = 0; i < order.size(); ++i)
    if (saved.lines[i].name != order[i])
      return {fmt::format("{}, it is where {} should be", saved.lines[i].name, order[i])};
  return {};
}

}  // namespace

MetricsPiece metrics_of(const std::filesystem::path& folder, const StepRange& steps) {
  MetricsPiece piece;
  std::ifstream file(folder / "metrics.jsonl");
  int64_t number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    json event = try_parse_json(text);
    const auto field = event.is_object() ? event.find("step") : event.end();
    const std::optional<int64_t> step = field == event.end() ? std::nullopt : whole_number(*field, 0);
    if (!step) {
      if (!file.eof()) piece.unreadable.push_back(number);
      continue;
    }
    if (!steps.contains(*step)) continue;
    for (const char* const own : {"seconds", "tokens_per_second", "rss_bytes", "peak_rss_bytes"}) event.erase(own);
    const auto kind = event.find("event");
    std::string name = fmt::format("{} of step {}",
                                   kind != event.end() && kind->is_string() ? kind->get<std::string>() : "line", *step);
    piece.lines.push_back({std::move(name), std::move(event)});
  }
  return piece;
}

std::set<int64_t> validated_steps(const MetricsPiece& piece) {
  std::set<int64_t> steps;
  for (const MetricsLine& line : piece.lines)
    if (line.event.value("event", json()) == "valid") steps.insert(line.event.at("step").get<int64_t>());
  return steps;
}

std::string metrics_difference(const MetricsPiece& saved, const MetricsPiece& computed, const StepRange& steps) {
  const std::vector<std::string> differ = differences_of(saved, computed, steps);
  if (differ.empty()) return "";
  return fmt::format("metrics.jsonl: {}{}", differ.front(),
                     differ.size() > 1 ? fmt::format(" ({} lines differ)", differ.size()) : "");
}

}  // namespace capstan
