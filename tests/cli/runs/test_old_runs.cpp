// Runs of 0.4.0 and later versions (tests/fixtures/runs): every command reads them, and training goes on to the same
// losses. Others are refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/cli/support/samples.hpp"
#include "tests/support/forged_checkpoint.hpp"
#include "tests/support/source_dir.hpp"

namespace capstan::testing {
namespace {

/// A run of the fixtures, and a text of the kind that it reads.
struct OldRun {
  std::string name, text;
  Words text_commands;  // the commands for texts that apply to it
};

const std::vector<OldRun> old_runs = {
    {"language-model", "the tape turns", {"score", "embed"}},
    {"classifier", "the goal of day 3", {"predict", "embed"}},
    {"linear", "the goal of day 3", {"predict"}},
};

std::vector<fs::path> versions() {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(source_path("tests/fixtures/runs")))
    if (entry.is_directory()) folders.push_back(entry.path());
  REQUIRE(!folders.empty());
  return folders;
}

/// The folder of a version, where commands may write.
struct VersionPlace : Workplace {
  explicit VersionPlace(const fs::path& version) {
    for (const char* const part : {"data", "runs"}) copy_files(version / part, *this / part);
  }
};

std::string folder_of(const OldRun& run) { return "runs/" + run.name; }

/// The losses and measures in metrics.jsonl, with the step and the event as their name.
std::map<std::string, double> measures(const std::string& metrics) {
  std::map<std::string, double> found;
  for (const std::string& line : lines_of(metrics)) {
    const nlohmann::json event = nlohmann::json::parse(line);
    for (const char* const name : {"loss", "accuracy", "micro_f1", "macro_f1", "grad_norm"})
      if (event.contains(name) && event[name].is_number())
        found[event["event"].get<std::string>() + " " + std::to_string(event["step"].get<int64_t>()) + " " + name] =
            event[name].get<double>();
  }
  return found;
}

/// Another machine rounds in another way.
void check_close(const std::map<std::string, double>& got, const std::map<std::string, double>& expected) {
  CHECK(got.size() == expected.size());
  for (const auto& [name, value] : expected) {
    INFO(name);
    REQUIRE(got.count(name) == 1);
    CHECK(got.at(name) == doctest::Approx(value).epsilon(1e-4));
  }
}

TEST_CASE("every command reads the runs of earlier versions") {
  for (const fs::path& version : versions()) {
    const VersionPlace place(version);
    const auto before = place.content("runs");
    for (const OldRun& run : old_runs) {
      INFO(version.filename().string(), ": ", run.name);
      const std::string folder = folder_of(run);
      for (const Words& command :
           {Words{"eval", folder}, Words{"inspect", folder}, Words{"inspect", folder, "--tensors"}})
        CHECK(!succeed(place, command).out.empty());
      succeed(place, {"report", folder, "-o", "report.html"});
      CHECK(contains(place.read("report.html"), run.name));
      if (run.text_commands.front() == "score")
        CHECK(!succeed(place, {"generate", folder, "--prompt", "the ", "--tokens", "8"}).out.empty());
      for (const std::string& command : run.text_commands)
        CHECK(!succeed(place, {command, folder}, run.text + "\n").out.empty());
      CHECK(contains(succeed(place, {"verify", folder}).out, folder + ": whole"));
      for (const Words command : {"config check", "config print", "data check"})
        succeed(place, command + Words{"--config", folder + "/config.yaml"});
    }
    Words compare{"compare"};
    for (const OldRun& run : old_runs) compare.push_back(folder_of(run));
    const std::string table = succeed(place, compare).out;
    for (const OldRun& run : old_runs) CHECK_MESSAGE(contains(table, run.name), table);
    CHECK(place.content("runs") == before);
  }
}

/// Replaces all weights of a run by NaN; the checksums are right.
void spoil_weights(const Workplace& place, const std::string& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(place / folder)) {
    if (entry.path().filename() != "model.safetensors") continue;
    change_tensors(entry.path(), [](const std::string&, std::vector<float>& values) {
      std::fill(values.begin(), values.end(), NAN);
    });
  }
  for (const auto& checkpoint : fs::directory_iterator(place / (folder + "/checkpoints")))
    if (checkpoint.is_directory()) forge_state(checkpoint.path());
}

TEST_CASE("no command gives results of weights that are not finite: the error names the text") {
  for (const fs::path& version : versions()) {
    const VersionPlace place(version);
    for (const OldRun& run : old_runs) {
      INFO(version.filename().string(), ": ", run.name);
      const std::string folder = folder_of(run);
      spoil_weights(place, folder);
      Outcome outcome = check_refused(place, "eval", {"eval", folder}, "valid split, text \" ... nan");
      CHECK(outcome.out.empty());
      std::vector<Words> commands;
      for (const std::string& command : run.text_commands) commands.push_back({command, folder});
      if (run.name == "linear") commands.push_back({"predict", folder, "--explain"});
      if (run.text_commands.front() == "score") commands.push_back({"generate", folder, "--interactive"});
      for (const Words& command : commands) {
        outcome = check_refused(place, command.front(), command, "stdin:1: ", 1, run.text + "\n");
        CHECK_FALSE(contains(outcome.out, "nan"));
      }
      CHECK(contains(succeed(place, {"verify", folder}).out, folder + ": whole"));  // it is what was saved
    }
  }
}

TEST_CASE("weights of earlier versions evaluate to the loss that their run recorded") {
  for (const fs::path& version : versions()) {
    const VersionPlace place(version);
    for (const OldRun& run : old_runs) {
      INFO(version.filename().string(), ": ", run.name);
      const auto best = best_validation(place, run.name).at("loss").get<double>();
      CHECK(eval_json(place, {folder_of(run)}).at("loss").get<double>() == doctest::Approx(best).epsilon(1e-4));
    }
  }
}

TEST_CASE("runs of earlier versions go on to the losses that they would have reached there") {
  for (const fs::path& version : versions()) {
    for (const OldRun& run : old_runs) {
      INFO(version.filename().string(), ": ", run.name);
      const VersionPlace place(version);
      const std::string folder = folder_of(run), config = folder + "/config.yaml";
      const bool linear = contains(run.name, "linear");
      succeed(place, {"train", "--config", config, "--set", linear ? "seed=3" : "train.steps=10"});
      const auto expected = measures(place.read((version / "expected" / (run.name + ".jsonl")).string()));
      check_close(measures(place.read(folder + "/metrics.jsonl")), expected);
      CHECK(contains(succeed(place, {"verify", folder}).out, folder + ": whole"));
      // From the beginning, under another name: the configuration means what it meant.
      succeed(place, {"train", "--config", config, "--set", "name=again", linear ? "seed=3" : "train.steps=6"});
      const auto again = measures(place.read("runs/again/metrics.jsonl"));
      CHECK(!again.empty());
      for (const auto& [name, value] : again) CHECK(value == doctest::Approx(expected.at(name)).epsilon(1e-4));
    }
  }
}

TEST_CASE("a run of another version is refused by every command, with the version to use, and nothing is changed") {
  const VersionPlace place(source_path("tests/fixtures/runs/0.4.0"));
  const std::string name = "runs/classifier/checkpoints/step-6/state.json";
  const auto set_format = [&](int64_t format) { forge_state((place / name).parent_path(), {{"format", format}}); };
  const std::string config = place.read("runs/classifier/config.yaml");
  for (const auto& [format, says] : std::vector<std::pair<int64_t, std::string>>{{1000, "a newer version of Capstan"},
                                                                                 {3, "Capstan 0.3 or older"}}) {
    set_format(format);
    for (const char* const key : {"", "new_key: 1\n"}) {  // whether or not its configuration can be read
      place.write("runs/classifier/config.yaml", key + config);
      const auto before = place.content("runs/classifier/checkpoints");
      const Says refusal = "state.json ... " + says + " made this run ... use that version";
      for (const Words& command : {Words("eval runs/classifier/checkpoints/step-6"),
                                   Words("train --config runs/linear/config.yaml --set name=new "
                                         "train.init_from=runs/classifier/checkpoints/step-6")})
        check_refused(place, key, command, refusal);
      const Outcome verified = run(place, "verify runs/classifier");
      CHECK(verified.code == 1);
      CHECK(contains(verified.err, says));
      CHECK_FALSE(contains(verified.out, "DAMAGED"));
      CHECK(place.content("runs/classifier/checkpoints") == before);
    }
    place.write("runs/classifier/config.yaml", config);
    const auto before = place.content("runs/classifier/checkpoints");
    check_refused(place, "train", "train --config runs/classifier/config.yaml", {says});
    CHECK(place.content("runs/classifier/checkpoints") == before);
  }
}

}  // namespace
}  // namespace capstan::testing
