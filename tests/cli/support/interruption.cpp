#include "tests/cli/support/interruption.hpp"
#include "core/io/json.hpp"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

namespace capstan::testing {
namespace {

constexpr int64_t steps = 120;

std::string metrics_of(const std::string& name) { return "runs/" + name + "/metrics.jsonl"; }

/// The lines of metrics.jsonl without what depends on the machine's load.
std::vector<nlohmann::json> events(const Workplace& place, const std::string& name) {
  std::vector<nlohmann::json> result = events_of(place, name);
  for (nlohmann::json& event : result)
    for (const char* const key : {"seconds", "tokens_per_second", "rss_bytes", "peak_rss_bytes"}) event.erase(key);
  return result;
}

bool left_half_a_checkpoint(const Workplace& place, const std::string& name) {
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(place / ("runs/" + name + "/checkpoints"), absent))
    if (entry.path().filename().string().front() == '.') return true;
  return false;
}

}  // namespace

const std::vector<Training>& trainings() {
  static const std::vector<Training> list = {
      {"accumulated", "lm.yaml", {"train.accumulate=2", "train.micro_batch_tokens=64", "train.log_every=1"}},
      {"windows", "lm.yaml", {"data.windows=random", "train.optimizer.type=sgd", "train.lr=0.05", "train.log_every=3"}},
      {"muon", "lm.yaml", {"train.optimizer.type=muon"}},
      {"classifier",
       "classifier.yaml",
       {"train.batch_tokens=48", "model.layers.0.mixer.type=aft-conv", "train.log_every=1", "model.ngrams.orders=[1,2]",
        "model.ngrams.buckets=500", "model.ngrams.width=8", "model.ngrams.dropout=0.1",
        "model.class_weights=balanced"}},
  };
  return list;
}

Words train_command(const Training& training, const std::string& name, const Words& more) {
  const Words settings =
      "train.valid_every=40 train.keep_last=1 name=" + name + " train.steps=" + std::to_string(steps);
  return train_words(training.config, settings) + training.overrides + more;
}

int64_t steps_done(const Workplace& place, const std::string& name) {
  const std::vector<std::string> lines = lines_of(place.read(metrics_of(name)));
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const nlohmann::json event = try_parse_json(*line);  // the last line may be half-written
    if (event.is_object() && event.contains("step")) return event["step"].get<int64_t>();
  }
  return 0;
}

bool wait_for_step(Process& process, const Workplace& place, const std::string& name, int64_t step) {
  while (!process.ended()) {
    if (steps_done(place, name) >= step) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

Kills train_and_kill(const Workplace& place, const Words& command, const std::string& name, int count,
                     int64_t last_step, std::mt19937& random) {
  std::vector<int64_t> moments{0};
  while (static_cast<int>(moments.size()) < count)
    moments.push_back(1 + static_cast<int64_t>(random() % static_cast<uint32_t>(last_step)));
  std::sort(moments.begin(), moments.end());
  Kills kills;
  for (const int64_t moment : moments) {
    Process process(place, command);
    const bool running = wait_for_step(process, place, name, moment);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % (moment == 0 ? 60000 : 12000)));
    process.send(SIGKILL);
    const Outcome outcome = process.wait();
    INFO("killed near step ", moment, ": ", outcome.err);
    CHECK(running);
    CHECK(outcome.signal == SIGKILL);
    ++kills.made;
    kills.while_saving += left_half_a_checkpoint(place, name) ? 1 : 0;
  }
  succeed(place, command);
  return kills;
}

void check_same_weights(const Workplace& place, const std::string& name, const std::string& unbroken) {
  INFO(name, " and ", unbroken);
  for (const char* const file : {"model.safetensors", "optimizer.safetensors"}) {
    const std::string here = place.read("runs/" + name + "/checkpoints/last/" + file);
    const std::string there = place.read("runs/" + unbroken + "/checkpoints/last/" + file);
    REQUIRE(there.size() > 100);
    CHECK_MESSAGE((here == there), file, " differs");
  }
}

void check_same_metrics(const Workplace& place, const std::string& name, const std::string& unbroken) {
  INFO(name, " and ", unbroken);
  const std::vector<nlohmann::json> here = events(place, name), there = events(place, unbroken);
  std::set<std::pair<std::string, int64_t>> seen;
  for (const nlohmann::json& event : here)
    CHECK(seen.emplace(event.at("event").get<std::string>(), event.at("step").get<int64_t>()).second);
  REQUIRE(here.size() == there.size());
  for (size_t i = 0; i < here.size(); ++i) CHECK(json_text(here[i]) == json_text(there[i]));
}

}  // namespace capstan::testing
