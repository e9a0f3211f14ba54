// What the program writes goes to its own files only, whatever it finds in their place and however it is started.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "core/io/json.hpp"
#include "tests/cli/support/interruption.hpp"

namespace capstan::testing {
TEST_CASE("closed standard descriptors: no file of the run gets the log") {
  for (const char* const closed : {"<&-", ">&-", "2>&-", "<&- >&-", ">&- 2>&-", "<&- >&- 2>&-"}) {
    INFO(closed);
    const SamplePlace place;
    CHECK(run_shell(place, std::string("\"$capstan\" train --config lm.yaml ") + closed).code == 0);
    CHECK(place.read("runs/lm/.lock").empty());
    const auto lines = lines_of(place.read("runs/lm/metrics.jsonl"));
    CHECK(lines.size() == 8);  // 6 steps, 2 evaluations
    for (const std::string& line : lines) CHECK_MESSAGE(try_parse_json(line).is_object(), line);
    CHECK(run_shell(place, "\"$capstan\" verify runs/lm").code == 0);
    // Results that nobody can get are an error.
    CHECK(run_shell(place, "\"$capstan\" eval runs/lm >&-").code == 1);
  }
}

TEST_CASE_FIXTURE(Trained, "the first process of a container ends at SIGTERM while it waits for texts") {
  if (run_shell(place, "unshare --user --map-root-user --pid --fork true").code != 0) {
    MESSAGE("skipped: no container can be made here");
    return;
  }
  // The pipe stays open and empty. The signal is sent from outside, where the process has another number than 1.
  const Outcome outcome = run_shell(place,
                                    "mkfifo pipe; exec 3<>pipe; unshare --user --map-root-user --pid --fork "
                                    "\"$capstan\" predict runs/classifier <pipe & "
                                    "sleep 2; pkill -TERM -P $!; wait $!");
  CHECK(outcome.code == 128 + 15);
}

TEST_CASE_FIXTURE(Trained, "an output that is a device, a pipe or a link") {
  place.write("precious", "mine");
  fs::create_symlink("precious", place / "link");
  REQUIRE(mkfifo((place / "pipe").c_str(), 0600) == 0);
  const bool device = mknod((place / "device").c_str(), S_IFCHR | 0600, makedev(1, 7)) == 0;  // as /dev/full
  if (!device) MESSAGE("skipped: a device, which only root can make");
  for (const auto& [name, kind] : std::vector<std::pair<std::string, std::string>>{
           {"link", "a symbolic link"}, {"pipe", "a pipe"}, {"device", "a device"}}) {
    if (name == "device" && !device) continue;
    check_refused(place, "report to " + name, {"report", "runs/lm", "--curves-only", "-o", name},
                  {"cannot write " + name, kind, "choose another path"});
  }
  CHECK(place.read("precious") == "mine");
  CHECK(fs::is_fifo(place / "pipe"));
  CHECK(fs::is_character_file(place / "device") == device);
}

TEST_CASE_FIXTURE(Trained, "an output that belongs to a run, or is read") {
  place.write("new.tsv", "label\ttext\ngood\ta fine day\n");
  place.write("texts.npy", "the tape\n");
  fs::create_hard_link(place / "new.tsv", place / "same.tsv");
  const auto before = place.content(".");
  std::vector<std::pair<std::string, std::string>> refused = {
      {"report runs/classifier -o train.tsv", "is one of the files of data.train of the run classifier"},
      {"report runs/lm -o text/a.txt", "data.train"},
      {"predict runs/classifier new.tsv -o train.tsv", "data.train"},
      {"predict runs/classifier new.tsv -o same.tsv", "same.tsv is the file that is read"},
      {"embed runs/lm texts.npy -o ./texts.npy", "is the file that is read"},
      {"predict runs/classifier new.tsv -o runs/lm/config.yaml", "belongs to the run lm"},
      {"embed runs/lm new.tsv -o runs/lm/checkpoints/step-6/v.npy", "belongs to the run lm"},
      {"slim runs/lm -o runs/lm/checkpoints/step-9", "belongs to the run lm"},
      {"export runs/lm --format huggingface --output runs/lm/checkpoints/step-9", "belongs to the run"},
  };
  for (const char* const own :
       {"config.yaml", "tokenizer.json", "metrics.jsonl", "train.log", ".lock", "checkpoints/step-6/state.json",
        "checkpoints/run.json", "checkpoints/page.html", "../classifier/classes.txt"})
    refused.emplace_back(std::string("report runs/lm --curves-only -o runs/lm/") + own, "belongs to the run");
  for (const auto& [command, says] : refused) check_refused(place, command, command, {says}, 2);
  CHECK(place.content(".") == before);
  succeed(place, "report runs/lm --curves-only -o runs/lm/report.html");
}

TEST_CASE("an output over a run's data from another folder than that of its training") {
  const TrainedPlace place;  // its runs were trained elsewhere
  succeed(place, "train --config classifier.yaml --set name=first folder=deep/below");
  fs::create_directory(place / "other");
  place.write("other/new.tsv", "label\ttext\ngood\ta fine day\n");
  const auto before = place.content(".");
  for (const char* const command :
       {"report ../runs/classifier --curves-only --output ../train.tsv", "report ../runs/lm -o ../text/a.txt",
        "predict ../runs/classifier new.tsv --output ../train.tsv",
        "predict ../deep/below/first new.tsv --output ../train.tsv"}) {
    CAPTURE(command);
    const Outcome outcome = run_shell(place, std::string("cd other && \"$capstan\" ") + command);
    CHECK(outcome.code == 2);
    CHECK(contains(outcome.err, "is one of the files of data.train of the run"));
    CHECK(place.content(".") == before);
  }
}

TEST_CASE("the folder of a run is one that a user has: files that training did not write stay as they are") {
  const SamplePlace place;
  const Words linear =
      "train --config classify --set folder=. name=project data.train=[train.tsv] data.test=[] threads=1";
  const Words own =
      "thesis.work/chapter1 hours.work notes.txt chapter.3.tmp folds-notes.work .unfinished/mine.txt "
      ".unfinished/a.safetensors checkpoints/notes.txt "
      "checkpoints/.unfinished-me checkpoints/.replaced-me/a";
  for (const std::string& name : own) place.write("project/" + name, "mine\n");
  succeed(place, linear);
  for (const std::string& name : own) CHECK_MESSAGE(place.read("project/" + name) == "mine\n", name);
  // A name that training itself needs is an error.
  for (const std::string& name : Words("config.yaml tokenizer.json classes.txt metrics.jsonl train.log")) {
    fs::remove_all(place / "project");
    place.write("project/" + name, "mine\n");
    check_refused(place, name, linear, "project/" + name + " ... belongs to no run");
    CHECK(place.read("project/" + name) == "mine\n");
  }
}

TEST_CASE_FIXTURE(Samples, "a file of the user's in the folder of a checkpoint is not removed with it") {
  succeed(place, "train --config lm.yaml --set train.steps=4");
  place.write("runs/lm/checkpoints/step-4/notes.txt", "mine\n");
  succeed(place, "train --config lm.yaml --set train.steps=12 train.keep_last=1 train.keep_optimizer=false");
  CHECK(place.read("runs/lm/checkpoints/step-4/notes.txt") == "mine\n");
}

TEST_CASE_FIXTURE(Samples, "a name that leaves the folder of runs") {
  for (const std::string& name : {std::string("../away"), (place / "away").string(), std::string("a/../../away"),
                                  std::string("."), std::string("a//b"), std::string("a/"), std::string(".cache")}) {
    check_refused(place, name, train_words("lm.yaml", {"name=" + name}), "name ... expected the name of a folder below",
                  2);
    CHECK_FALSE(fs::exists(place / "away"));
    CHECK_FALSE(fs::exists(place / "runs"));
  }
  succeed(place, "train --config lm.yaml --set name=first/second");
  CHECK(fs::exists(place / "runs/first/second/checkpoints/last"));
}

TEST_CASE("a text that is cut while a run trains on it: the file is named, and the run goes on when it is back") {
  const SamplePlace place;
  const Training training{"lm", "lm.yaml", "data.cache=runs/.cache train.save_every=1"};
  REQUIRE(run(place, train_command(training, "whole")).code == 0);
  std::string tokens;
  for (const auto& [name, content] : place.content("runs/.cache"))
    if (fs::path(name).filename() == "train.tokens") tokens = name;
  REQUIRE(!tokens.empty());
  const std::string content = place.read(tokens);
  Process process(place, train_command(training, "cut"));
  REQUIRE(wait_for_step(process, place, "cut", 5));
  fs::resize_file(place / tokens, 0);
  const Outcome outcome = process.wait();
  INFO(outcome.err);
  CHECK(outcome.code == 1);
  CHECK(indecency(outcome) == "");
  CHECK(contains(outcome.err, "error: " + tokens + ": a part of this file can no longer be read"));
  // The cache is made again.
  CHECK(run(place, train_command(training, "cut")).code == 0);
  check_same_weights(place, "cut", "whole");
  check_same_metrics(place, "cut", "whole");
}

TEST_CASE("a run that was moved: eval names the data that it does not find, and where the run was trained") {
  const TrainedPlace place;
  fs::create_directories(place / "archive");
  fs::rename(place / "runs/lm", place / "archive/lm");
  const Outcome outcome = run_shell(place, "cd archive && \"$capstan\" eval lm");
  CHECK(outcome.code == 1);
  check_contains(outcome.err,
                 {"not found from " + (place / "archive").string() + ": data.train: text; run the command in ",
                  "--set data.train=[...]"});
  CHECK(run_shell(place, "cd archive && \"$capstan\" eval lm --set data.train=[../text]").code == 0);
}

}  // namespace capstan::testing
