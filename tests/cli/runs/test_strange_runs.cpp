// Run folders from others: what reading commands write, and what they use outside of the run.
#include <doctest/doctest.h>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

const std::string secret = "the combination of the safe is 4711";

void point(const Workplace& place, const std::string& link, const std::string& target) {
  fs::remove_all(place / link);
  fs::create_symlink(target, place / link);
}

TEST_CASE_FIXTURE(Trained, "reading commands write nothing, whatever the configuration of the run names") {
  edit(place, "runs/lm/config.yaml", "cache: ", "cache: elsewhere/cache #");
  const fs::path page = fs::temp_directory_path() / (place.folder().filename().string() + ".html");
  const auto before = place.content(".");
  for (const std::string& command :
       {"report runs/lm -o " + page.string(), "report runs/lm --trust -o " + page.string(),
        std::string("inspect runs/lm"), std::string("verify runs/lm"), std::string("eval runs/lm"),
        std::string("predict runs/classifier"), std::string("score runs/lm"), std::string("embed runs/lm"),
        std::string("generate runs/lm -n 4"), std::string("compare"), std::string("compare runs/lm runs/classifier")}) {
    INFO(command);
    succeed(place, command, "the sea\n");
    CHECK(place.content(".") == before);
  }
  CHECK_FALSE(fs::exists(place / "elsewhere"));
  fs::remove(page);
}

TEST_CASE("report shows text of files outside of a run only if they are those of its training, or with --trust") {
  const TrainedPlace place;
  place.write("secret.txt", text_of(Words(50, secret)));
  const auto page = [&](const std::string& folder, const Words& more = {}) {
    succeed(place, Words{"report", folder, "-o", "page.html"} + more);
    return place.read("page.html");
  };
  CHECK(contains(page("runs/lm"), "\"notes\":[]"));
  CHECK(contains(page("runs/classifier"), "\"notes\":[]"));
  // No state has the fingerprint of test data. Their figures are shown, as by eval.
  edit(place, "runs/classifier/config.yaml", "test: []", "test: [train.tsv]");
  const std::string test = page("runs/classifier", {"--split", "test"});
  check_contains(test,
                 {"\"split\":\"test\"", "train.tsv could not be read, or may not be what the run was trained with"});
  edit(place, "runs/lm/config.yaml", "train: ", "train: [secret.txt] #");
  edit(place, "runs/classifier/config.yaml", "train: ", "train: [secret.txt] #");  // not labelled: an error quotes it
  for (const char* const folder : {"runs/lm", "runs/classifier"}) {
    const std::string shown = page(folder);
    check_contains(shown, {"secret.txt", "could not be read, or may not be what the run was trained with"});
    CHECK_FALSE(contains(shown, "combination"));
  }
  CHECK(contains(page("runs/lm", {"--trust"}), "has changed since training"));
}

TEST_CASE_FIXTURE(Trained, "report, inspect and verify follow no link out of a run, unless with --trust") {
  place.write("names.txt", place.read("runs/classifier/classes.txt"));
  point(place, "runs/classifier/classes.txt", "../../names.txt");
  for (const Words command :
       {"report runs/classifier -o page.html", "inspect runs/classifier", "verify runs/classifier"}) {
    check_refused(place, command[0], command, "runs/classifier/classes.txt ... ../../names.txt ... --trust");
    succeed(place, command + "--trust");
  }
  point(place, "runs/classifier/classes.txt", "../classifier/names.txt");
  fs::rename(place / "names.txt", place / "runs/classifier/names.txt");
  succeed(place, "verify runs/classifier");  // it stays inside
}

TEST_CASE("a split that there is not: the error says what to evaluate, and no trained text is held out later") {
  const TrainedPlace place;
  succeed(place, "train --config classify --set data.train=[train.tsv]");
  succeed(place, "train --config lm.yaml --set name=all data.valid_fraction=0 train.valid_every=0");
  const std::string files = "--set data.test=[FILE] --split test";
  const std::vector<Refusal> rows{
      {"no test", "eval runs/classifier --split test", {"--split valid", files}},
      {"none of text", "eval runs/all", {files, "another run", "data.valid_fraction=0.1"}},
      {"no test of text", "eval runs/lm --split test", "--split valid ... data.test_fraction=0.1"},
      {"none of a linear one", "eval runs/classify", {files, "data.valid_fraction=0.1", "cross-validation"}},
      {"held out later",
       "eval runs/classify --set data.valid_fraction=0.2",
       {"valid_fraction: 0.2", "was trained on", files},
       2},
      {"another part", "eval runs/classifier --set data.valid_fraction=0.3", {"valid_fraction: 0.3", files}, 2},
  };
  check_all_refused(place, rows);
  const Outcome no_test = check_refused(place, rows.front());
  CHECK_FALSE(contains(no_test.err, "fraction"));  // labelled data have no data.test_fraction
  CHECK(succeed(place, "eval runs/classify --set data.valid=[train.tsv]").out.rfind("split valid", 0) == 0);
}

TEST_CASE_FIXTURE(Trained, "a folder that is no run: the error names the one that was meant") {
  fs::create_directories(place / "runs/search");
  copy_files(place / "runs/lm", place / "runs/search/first");
  for (const char* const command : {"eval", "inspect", "verify", "compare"}) {
    CAPTURE(command);
    const std::vector<Refusal> rows{
        {"mistyped", {command, "runs/clasifier"}, "runs/clasifier: there is no such folder; is runs/classifier"},
        {"another name", {command, "runs/zzz"}, "below runs there are the runs classifier, lm"},
        {"a pattern", {command, "runs/q*"}, "runs/q*: no folder matches this pattern"},
    };
    check_all_refused(place, rows);
  }
  check_refused(place, "without runs", "eval lm", "is runs/lm meant?");
  check_refused(place, "a search", "eval runs/search", "a folder of runs ... such as runs/search/first");
  check_refused(place, "runs", "verify --replay runs", "a folder of runs ... such as runs/classifier");
}

TEST_CASE_FIXTURE(Trained, "a folder that may not be read is named, and hides no run beside it") {
  fs::create_directory(place / "runs/sealed");
  fs::permissions(place / "runs/sealed", fs::perms::none);
  // Without the capabilities by which root reads every folder.
  const std::string as_others =
      "reads() { if [ $(id -u) = 0 ]; then setpriv --bounding-set=-dac_override,-dac_read_search \"$capstan\" \"$@\"; "
      "else \"$capstan\" \"$@\"; fi; }; reads ";
  for (const char* const command : {"compare", "compare runs", "verify runs"}) {
    CAPTURE(command);
    const Outcome outcome = run_shell(place, as_others + command);
    check_contains(outcome.out + outcome.err, {"runs/lm", "runs/classifier", "runs/sealed: Permission denied"});
    CHECK_FALSE(contains(outcome.err, "write to"));
    CHECK_FALSE(contains(outcome.out, "days"));  // its age is the folder's
    CHECK(outcome.code == (command == std::string("verify runs") ? 1 : 0));
    CHECK(indecency(outcome) == "");
  }
  const Outcome alone = run_shell(place, as_others + "eval runs/sealed");
  CHECK(alone.code == 1);
  CHECK(contains(alone.err, "cannot read runs/sealed/config.yaml: Permission denied"));
  fs::permissions(place / "runs/sealed", fs::perms::owner_all);
}

}  // namespace
}  // namespace capstan::testing
