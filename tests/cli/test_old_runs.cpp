// Runs of earlier versions (tests/fixtures/runs): every command reads them, and training goes on to the same losses.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/io/hash.hpp"
#include "core/io/json.hpp"
#include "tests/cli/samples.hpp"
#include "tests/support/source_dir.hpp"

namespace capstan::testing {
namespace fs = std::filesystem;
namespace {

using Words = std::vector<std::string>;

/// A run of the fixtures, and a text of the kind that it reads.
struct OldRun {
  std::string name, text;
  Words text_commands;  // the commands for texts that apply to it
};

const std::vector<OldRun>& old_runs() {
  static const std::vector<OldRun> runs = {
      {"language-model", "the tape turns", {"score", "embed"}},
      {"masked", "the <mask> turns", {"predict", "embed"}},
      {"classifier", "the goal of day 3", {"predict", "embed"}},
      {"multi-label", "the goal of 00", {"predict", "embed"}},
      {"pairs", "1 2 3\t3 2 1", {"predict", "score", "embed"}},
      {"generated", "[MAX 1 2 ]", {"predict", "embed"}},
      {"warm", "the goal of day 3", {"predict", "embed"}},
      {"linear", "the goal of day 3", {"predict"}},
      {"linear-warm", "the goal of day 3", {"predict"}},
  };
  return runs;
}

std::vector<fs::path> versions() {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(source_path("tests/fixtures/runs")))
    if (entry.is_directory()) folders.push_back(entry.path());
  REQUIRE(!folders.empty());
  return folders;
}

/// The folder of a version, where commands may write.
void copy_version(const fs::path& version, const Workplace& place) {
  for (const char* const part : {"data", "runs"}) copy_files(version / part, place / part);
}

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
    const Workplace place;
    copy_version(version, place);
    const auto before = place.content("runs");
    for (const OldRun& run : old_runs()) {
      INFO(version.filename().string(), ": ", run.name);
      const std::string folder = folder_of(run);
      for (const Words& command : {Words{"eval", folder}, Words{"inspect", folder},
                                   Words{"inspect", folder, "--tensors"}, Words{"metrics", folder}})
        CHECK(!succeed(place, command).out.empty());
      succeed(place, {"report", folder, "-o", "report.html"});
      CHECK(contains(place.read("report.html"), run.name));
      for (const std::string& command : run.text_commands)
        CHECK(!succeed(place, {command, folder}, run.text + "\n").out.empty());
      CHECK(contains(succeed(place, {"verify", folder}).out, folder + ": whole"));
      for (const Words& command : {Words{"config", "check"}, Words{"config", "print"}, Words{"data", "check"}}) {
        Words words = command;
        words.insert(words.end(), {"--config", folder + "/config.yaml"});
        succeed(place, words);
      }
    }
    CHECK(!succeed(place, {"generate", "runs/language-model", "--prompt", "the ", "--tokens", "8"}).out.empty());
    Words compare{"compare"};
    for (const OldRun& run : old_runs()) compare.push_back(folder_of(run));
    const std::string table = succeed(place, compare).out;
    for (const OldRun& run : old_runs()) CHECK_MESSAGE(contains(table, run.name), table);
    CHECK(place.content("runs") == before);
  }
}

TEST_CASE("weights of earlier versions evaluate to the loss that their run recorded") {
  for (const fs::path& version : versions()) {
    const Workplace place;
    copy_version(version, place);
    for (const OldRun& run : old_runs()) {
      INFO(version.filename().string(), ": ", run.name);
      double best = NAN;
      for (const std::string& line : lines_of(place.read(folder_of(run) + "/metrics.jsonl")))
        if (const nlohmann::json event = nlohmann::json::parse(line);
            event["event"] == "valid" && event["best"] == true)
          best = event["loss"].get<double>();
      const std::string out = succeed(place, {"eval", folder_of(run), "--format", "json"}).out;
      CHECK(nlohmann::json::parse(out).at("loss").get<double>() == doctest::Approx(best).epsilon(1e-4));
    }
  }
}

TEST_CASE("runs of earlier versions go on to the losses that they would have reached there") {
  for (const fs::path& version : versions()) {
    for (const OldRun& run : old_runs()) {
      INFO(version.filename().string(), ": ", run.name);
      const Workplace place;
      copy_version(version, place);
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
      for (const auto& [name, value] : again)
        if (!linear || !contains(name, "train")) CHECK(value == doctest::Approx(expected.at(name)).epsilon(1e-4));
    }
  }
}

TEST_CASE("a run of a newer version is refused by every command, and nothing of it is changed") {
  const Workplace place;
  copy_version(versions().front(), place);
  const std::string name = "runs/masked/checkpoints/step-6/state.json";
  nlohmann::json state = nlohmann::json::parse(place.read(name));
  state["state"]["format"] = 1000;
  state["xxh3_128"] = hash_hex(json_text(state["state"]));
  place.write(name, state.dump());
  for (const char* const key : {"", "new_key: 1\n"}) {  // whether or not its configuration can be read
    place.write("runs/masked/config.yaml", key + place.read("runs/masked/config.yaml"));
    const auto before = place.content("runs/masked");
    for (const Words& command :
         {Words{"eval", "runs/masked"}, Words{"predict", "runs/masked"}, Words{"inspect", "runs/masked"},
          Words{"train", "--config", "runs/classifier/config.yaml", "--set", "name=new",
                "train.init_from=runs/masked"}})
      check_refused(place, {key, {}, command, 1, {"state.json", "a newer version of Capstan", "1000", "use that version"}});
    CHECK(contains(run(place, {"verify", "runs/masked"}).out, "a newer version of Capstan"));
    CHECK(place.content("runs/masked") == before);
  }
  place.write("runs/masked/config.yaml",
              place.read("runs/masked/config.yaml").substr(std::string("new_key: 1\n").size()));
  const auto before = place.content("runs/masked/checkpoints");
  check_refused(place, {"train", {}, {"train", "--config", "runs/masked/config.yaml"}, 1, {"a newer version"}});
  CHECK(place.content("runs/masked/checkpoints") == before);
}

TEST_CASE("runs of this version start from the weights of earlier versions") {
  for (const fs::path& version : versions()) {
    const Workplace place;
    copy_version(version, place);
    for (const OldRun& run : old_runs()) {
      INFO(version.filename().string(), ": ", run.name);
      const std::string folder = folder_of(run);
      const Outcome outcome = succeed(
          place, {"train", "--config", folder + "/config.yaml", "--set", "name=new", "train.init_from=" + folder});
      CHECK(contains(outcome.err, "start"));
      fs::remove_all(place / "runs/new");
    }
  }
}

}  // namespace
}  // namespace capstan::testing
