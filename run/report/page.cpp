// Writes the data of a report as JSON into the page that report.js draws. JSON that is inside a <script> has no "<", so
// that nothing in it can end the element: tests/run/test_report_page.cpp.
#include "run/report/page.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/strings/quantities.hpp"
#include "core/strings/strings.hpp"
#include "run/report/page_files.hpp"
#include "run/summaries/run_table.hpp"
#include "run/yaml/config.hpp"

namespace capstan {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t max_points = 500;  // of a curve

/// A value of each point; of more than max_points, the means of neighbours.
template <class Point, class Value>
Json column(const std::vector<Point>& points, const Value& value) {
  const size_t count = std::min(points.size(), max_points);
  Json numbers = Json::array();
  for (size_t i = 0; i < count; ++i) {
    const size_t begin = i * points.size() / count, end = (i + 1) * points.size() / count;
    double sum = 0;
    for (size_t k = begin; k < end; ++k) sum += static_cast<double>(value(points[k]));
    numbers.push_back(sum / static_cast<double>(end - begin));
  }
  return numbers;
}

Json training_curves(const std::vector<TrainPoint>& points) {
  return {{"step", column(points, [](const TrainPoint& point) { return point.step; })},
          {"seconds", column(points, [](const TrainPoint& point) { return point.seconds; })},
          {"loss", column(points, [](const TrainPoint& point) { return point.loss; })},
          {"learning_rate", column(points, [](const TrainPoint& point) { return point.learning_rate; })},
          {"gradient_norm", column(points, [](const TrainPoint& point) { return point.gradient_norm; })},
          {"tokens_per_second", column(points, [](const TrainPoint& point) { return point.tokens_per_second; })}};
}

Json validation_curves(const std::vector<ValidPoint>& points) {
  Json curves{{"step", column(points, [](const ValidPoint& point) { return point.step; })},
              {"seconds", column(points, [](const ValidPoint& point) { return point.seconds; })}};
  for (const Metric& metric : metrics())
    curves[metric.name] = column(points, [&](const ValidPoint& point) { return point.value(metric.name); });
  return curves;
}

/// Three digits: what a colour or the pointer shows.
double rounded(float value) {
  if (value == 0 || !std::isfinite(value)) return static_cast<double>(value);
  const double size = std::pow(10.0, 2 - std::floor(std::log10(std::abs(static_cast<double>(value)))));
  return std::round(static_cast<double>(value) * size) / size;
}

/// Rows of values, each up to the last one that there is.
Json to_json(const WeightMap& map) {
  Json rows = Json::array();
  for (size_t t = 0; t < map.length; ++t) {
    Json row = Json::array();
    for (size_t s = 0; s < map.length; ++s) row.push_back(rounded(map.at(t, s)));
    while (!row.empty() && std::isnan(row.back().get<double>())) row.erase(row.size() - 1);
    rows.push_back(std::move(row));
  }
  return rows;
}

Json to_json(const std::vector<WeightMap>& maps) {
  Json list = Json::array();
  for (const WeightMap& map : maps) list.push_back(to_json(map));
  return list;
}

Json to_json(const ModelView& view) {
  Json layers = Json::array();
  for (const LayerView& layer : view.layers) {
    Json weights = Json::array();
    for (const WeightsView& kind : layer.weights)
      weights.push_back({{"name", kind.name}, {"maps", to_json(kind.maps)}, {"words", kind.words}});
    layers.push_back(
        {{"name", layer.name}, {"position_bias", to_json(layer.position_bias)}, {"weights", std::move(weights)}});
  }
  return {{"words", view.words.texts}, {"word_of_token", view.words.of_token}, {"layers", std::move(layers)}};
}

/// What `capstan eval --format json` prints, with the first pairs and without the curves of classes.
Json evaluation_of(const EvalReport& report) {
  Json json = eval_json(report);
  if (json.contains("classes"))
    for (Json& of_class : json["classes"]) of_class.erase("curve");
  if (report.pairs)
    for (const PairExample& example : report.pairs->examples)
      json["examples"].push_back({example.source, example.target, example.written});
  return json;
}

Json to_json(const ReportedRun& run, const std::string& name) {
  Json json{{"name", name},
            {"train", training_curves(run.record.train)},
            {"valid", validation_curves(run.record.valid)},
            {"best", run.record.best ? Json(run.record.best->step) : Json()},
            {"ngrams", Json::array()},
            {"sample", run.sample},
            {"notes", run.notes},
            {"config", to_yaml(run.record.config)}};
  for (const ClassNgrams& of_class : run.ngrams)
    json["ngrams"].push_back({{"name", of_class.name}, {"ngrams", of_class.ngrams}});
  if (run.evaluation) json["evaluation"] = evaluation_of(*run.evaluation);
  if (run.model) json["model"] = to_json(*run.model);
  return json;
}

/// What the folders of all runs begin with, up to a slash.
std::string common_folder(const std::vector<RunRecord>& runs) {
  std::string common = runs.front().folder;
  for (const RunRecord& run : runs) {
    const auto end = std::mismatch(common.begin(), common.end(), run.folder.begin(), run.folder.end()).first;
    common.erase(end, common.end());
  }
  return common.substr(0, common.rfind('/') + 1);
}

/// "runs/mine/lr=1" of one run, "lr=1" of several below runs/mine.
std::vector<std::string> names_of(const std::vector<RunRecord>& runs) {
  std::vector<std::string> names;
  const size_t common = runs.size() > 1 ? common_folder(runs).size() : 0;
  for (const RunRecord& run : runs) names.push_back(run.folder.substr(common));
  return names;
}

std::string title_of(const std::vector<RunRecord>& runs) {
  if (runs.size() == 1) return runs.front().folder;
  std::string folder = common_folder(runs);
  if (!folder.empty()) folder.pop_back();
  return folder.empty() ? fmt::format("{} runs", runs.size()) : fmt::format("{}: {} runs", folder, runs.size());
}

/// The name of the data that the figures of a run's best validation are from.
std::string held_out(const RunRecord& run) { return run.best && !run.best->by.empty() ? run.best->by : "validation"; }

/// Sentences: what was trained on what, and when; and which run is the best.
std::vector<std::string> lead_of(const std::vector<RunRecord>& runs, const std::string& best_name) {
  const RunRecord& best = runs.front();
  std::vector<std::string> files;
  for (const SourceFiles& source : facts_of(best.config.data).files)
    if (files.empty()) files = source.paths;
  std::string trained = fmt::format("A {} on data of type {}{}{}.", type_of(best.config.model),
                                    type_of(best.config.data), files.empty() ? "" : ": ", join_first(files));
  if (!best.ended.empty())
    trained += fmt::format(" Trained {}{}.", best.begun, best.begun == best.ended ? "" : " to " + best.ended);
  if (runs.size() == 1 || comparable(runs).size() > 1) return {trained};
  return {trained, fmt::format("The best of {} runs: {}", runs.size(), best_name)};
}

/// The figures of a run's best validation, and what it took: names and values.
Table results_of(const RunRecord& run) {
  Table figures;
  for (const Metric& metric : metrics()) {
    const double value = run.best ? run.best->value(metric.name) : NAN;
    if (!std::isfinite(value)) continue;
    const bool share = metric.unit == Metric::Unit::share;
    figures.push_back({fmt::format("{} {}", held_out(run), metric.monitor),
                       share ? fmt::format("{:.2f} %", 100 * value) : fmt::format("{:.4f}", value)});
  }
  if (run.best && run.step > 1) figures.push_back({"at step", fmt::format("{} of {}", run.best->step, run.step)});
  if (!run.best) figures.push_back({"training loss", fmt::format("{:.4f}", run.train_loss)});
  figures.push_back({"training time", short_time(run.seconds)});
  figures.push_back({"tokens per second", short_count(run.tokens_per_second)});
  figures.push_back({"memory", fmt::format("{:.0f} MB", static_cast<double>(run.peak_rss_bytes) / 1e6)});
  return figures;
}

/// The tables of `capstan compare`, one for each group of comparable() runs.
Json groups_of(const std::vector<RunRecord>& runs, const std::vector<std::string>& names) {
  Json groups = Json::array();
  for (const std::vector<RunRecord>& group : comparable(runs)) {
    auto [common, table] = compared(group);
    std::vector<size_t> places;
    for (size_t i = 0; i < group.size(); ++i) {
      const auto same = [&](const RunRecord& run) { return run.folder == group[i].folder; };
      places.push_back(static_cast<size_t>(std::find_if(runs.begin(), runs.end(), same) - runs.begin()));
      table[i + 1][0] = names[places.back()];
    }
    groups.push_back({{"what", what_is_compared(group)},
                      {"runs", places},
                      {"common", common},
                      {"table", table},
                      {"seeds", seed_table(group)}});
  }
  return groups;
}

Json page_data(const std::vector<ReportedRun>& runs) {
  std::vector<RunRecord> records;
  for (const ReportedRun& run : runs) records.push_back(run.record);
  const std::vector<std::string> names = names_of(records);
  const ModelFacts facts = facts_of(records.front().config.model);
  Json data{{"title", title_of(records)},
            {"lead", lead_of(records, names.front())},
            {"results", results_of(records.front())},
            {"groups", runs.size() > 1 ? groups_of(records, names) : Json::array()},
            {"loss_unit", facts.classifies() ? "nats per example" : "nats per token"},
            {"curves", !facts.is_solved},
            {"metrics", Json::array()},
            {"runs", Json::array()}};
  for (const Metric& metric : metrics())
    if (metric.unit != Metric::Unit::nats)
      data["metrics"].push_back(
          {{"name", metric.name}, {"title", metric.title}, {"share", metric.unit == Metric::Unit::share}});
  for (size_t i = 0; i < runs.size(); ++i) data["runs"].push_back(to_json(runs[i], names[i]));
  return data;
}

/// The JSON in ASCII and without "<", which it has in strings alone.
std::string in_script(const Json& data) {
  std::string out;
  for (const char c : data.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace))
    out += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return out;
}

}  // namespace

std::string report_page(const std::vector<ReportedRun>& runs) {
  return fmt::format(R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>Capstan</title>
<style>{}</style></head>
<body><main></main>
<noscript><p>JavaScript draws this report from the figures in it. Without it, <code>capstan compare</code> and <code>capstan eval</code> print them.</p></noscript>
<script type="application/json" id="data">{}</script>
<script>{}</script></body></html>
)",
                     report_style, in_script(page_data(runs)), report_script);
}

}  // namespace capstan
