// Damaged run folders, checkpoints of something else, disks that cannot be written: refused, and nothing is lost.
#include <doctest/doctest.h>
#include <sys/mount.h>
#include <unistd.h>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

Words resume(const Words& overrides = {"seed=1"}, const std::string& config = "lm.yaml") {
  return train_words(config, overrides);
}

/// Behind step 6, so that a command has something to do.
const std::string last = "runs/lm/checkpoints/step-6/";

TEST_CASE("a damaged newest checkpoint: train goes on from the one before it, to the same bits") {
  struct Damage {
    const char* name;
    std::function<void(const Workplace&, const std::string&)> inflict;
  };
  const std::vector<Damage> damages = {
      {"cut in half",
       [](const Workplace& p, const std::string& f) { fs::resize_file(p / f, fs::file_size(p / f) / 2); }},
      {"cut in the header", [](const Workplace& p, const std::string& f) { fs::resize_file(p / f, 100); }},
      {"empty", [](const Workplace& p, const std::string& f) { fs::resize_file(p / f, 0); }},
      {"a bit flipped at the front", [](const Workplace& p, const std::string& f) { flip_bit(p, f, 0.01); }},
      {"a bit flipped in the middle", [](const Workplace& p, const std::string& f) { flip_bit(p, f, 0.6); }},
      {"a bit flipped at the end", [](const Workplace& p, const std::string& f) { flip_bit(p, f, 0.97); }},
      {"absent", [](const Workplace& p, const std::string& f) { fs::remove(p / f); }},
  };
  const TrainedPlace whole;
  for (const char* const part : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    for (const Damage& damage : damages) {
      INFO(part, " ", damage.name);
      const TrainedPlace place;
      damage.inflict(place, last + part);
      const Outcome outcome = succeed(place, resume());
      check_says(outcome,
                 {"warning: ", last + part, "damaged-step-6", "the run goes back to step 4", "step-4: step 4,"});
      for (const char* const file : {"model.safetensors", "optimizer.safetensors"})
        CHECK_MESSAGE((place.read(last + file) == whole.read(last + file)), file);
      CHECK(fs::exists(place / "runs/lm/checkpoints/damaged-step-6"));
    }
  }
}

TEST_CASE("--resume-from a damaged checkpoint is refused with the complete ones, and one of them continues") {
  const TrainedPlace place;
  flip_bit(place, last + "optimizer.safetensors", 0.5);
  const auto before = place.content("runs/lm/checkpoints");
  const auto from = [](const std::string& checkpoint) { return resume() + Words{"--resume-from", checkpoint}; };
  check_refused(place, "damaged", from("runs/lm/checkpoints/step-6"),
                {last + "optimizer.safetensors", "complete checkpoints: runs/lm/checkpoints/step-4",
                 "continue from one of them with --resume-from"});
  check_refused(place, "absent", from("nowhere"), "nowhere ... --resume-from");
  check_refused(
      place, "the run", from("runs/lm"),
      "runs/lm is the folder of a run: give that of a checkpoint ... complete checkpoints: runs/lm/checkpoints/step-4");
  CHECK(place.content("runs/lm/checkpoints") == before);
  const Outcome outcome = succeed(place, from("runs/lm/checkpoints/step-4"));
  CHECK(contains(outcome.err, "resumed from runs/lm/checkpoints/step-4"));
  CHECK(run(place, resume()).code == 0);
}

TEST_CASE_FIXTURE(Trained, "a link last that leads nowhere: the run goes back to the checkpoint before") {
  fs::rename(place / "runs/lm/checkpoints/step-6", place / "elsewhere");
  const Outcome outcome = succeed(place, resume());
  check_contains(outcome.err, {"runs/lm/checkpoints/step-6", "goes back to step 4"});
  CHECK(place.read(last + "model.safetensors") == place.read("elsewhere/model.safetensors"));
}

TEST_CASE("a checkpoint of another configuration is left alone") {
  struct Row {
    const char* name;
    Words command;
    Says says;
    std::function<void(const Workplace&)> prepare = {};
  };
  const std::vector<Row> rows = {
      {"another width", resume("model.width=32"), "another model ... width: 16 ... width: 32"},
      {"another depth", resume("model.layers.0.repeat=2"), "another model ... repeat: 1 ... repeat: 2"},
      {"another tokenizer", resume("data.tokenizer=byte"),
       "other data ... tokenizer: char ... another tokenizer ... 256 tokens"},
      {"another vocabulary", resume(), "other data: the content of the files has changed",
       [](const Workplace& place) { place.write("text/c.txt", "\xc3\xb1\xc3\xa5 zz\n"); }},
      {"other text", resume(), "other data ... the content of the files has changed",
       [](const Workplace& place) { place.write("text/c.txt", "the rope\n"); }},
      {"other files", resume("data.train=[text/a.txt]"),
       "other data: data.train was [text], is now [text/a.txt], with another content; continue with"},
      {"another sequence length", resume("data.sequence_length=16"),
       "other data ... sequence_length: 32 ... sequence_length: 16"},
      {"another batch", resume("train.batch_size=2"),
       "error: runs/lm holds a run ... another train.batch_size ... was 4, is now 2"},
      {"another optimizer", resume("train.optimizer=sgd"), "another train.optimizer ... adamw ... sgd"},
      {"another seed", resume("seed=2"), "another seed ... was 1, is now 2"},
      {"another task", resume("name=lm", "classifier.yaml"), "another model ... other data"},
  };
  for (const Row& row : rows) {
    const TrainedPlace place;
    if (row.prepare) row.prepare(place);
    const auto before = place.content("runs");
    std::vector<std::string> says = row.says;
    says.insert(says.end(), {"runs/", "--set name=NEW"});
    check_refused(place, row.name, row.command, says);
    auto after = place.content("runs");
    INFO(row.name);
    for (const auto& [file, content] : before)
      if (fs::path(file).filename() != "train.log") CHECK(after[file] == content);
  }
}

TEST_CASE("what is no run, or a damaged one, is refused by every command that wants one") {
  struct Row {
    const char* name;
    std::function<void(const Workplace&)> damage;
    std::string run;
    Says says;
    int code = 1;
  };
  const auto put = [](const std::string& name, const std::string& text) {
    return [=](const Workplace& place) { place.write(name, text); };
  };
  const auto drop = [](const std::string& name) {
    return [=](const Workplace& place) { fs::remove_all(place / name); };
  };
  const std::vector<Row> rows = {
      {"nothing", {}, "runs/absent", "runs/absent: there is no such folder ... classifier, lm"},
      {"a folder of text", {}, "text", "text ... no config.yaml ... classifier, lm"},
      {"a file", {}, "train.tsv", "train.tsv ... no config.yaml ... classifier, lm"},
      {"config.yaml absent", drop("runs/lm/config.yaml"), "runs/lm", "runs/lm ... no config.yaml"},
      {"config.yaml garbage", put("runs/lm/config.yaml", "garbage"), "runs/lm",
       "runs/lm/config.yaml:1:1 ... expected keys", 2},
      {"config.yaml empty", put("runs/lm/config.yaml", ""), "runs/lm",
       "runs/lm/config.yaml ... contains no configuration", 2},
      {"config.yaml with an unknown key",
       [](const Workplace& p) { p.write("runs/lm/config.yaml", "frob: 1\n" + p.read("runs/lm/config.yaml")); },
       "runs/lm", "runs/lm/config.yaml:1:1 ... frob", 2},
      {"config.yaml of another model", [](const Workplace& p) { edit(p, "runs/lm/config.yaml", "gelu", "relu"); },
       "runs/lm", "runs/lm/config.yaml ... not what ... trained with"},
      {"tokenizer.json absent", drop("runs/lm/tokenizer.json"), "runs/lm", "runs/lm/tokenizer.json ... cannot be read"},
      {"tokenizer.json empty", put("runs/lm/tokenizer.json", ""), "runs/lm",
       "runs/lm/tokenizer.json ... damaged ... another copy"},
      {"tokenizer.json cut", put("runs/lm/tokenizer.json", "{\"kind\": \"char\", "), "runs/lm",
       "runs/lm/tokenizer.json ... damaged ... another copy"},
      {"tokenizer.json without its characters", put("runs/lm/tokenizer.json", "{\"kind\": \"char\"}"), "runs/lm",
       "runs/lm/tokenizer.json ... damaged ... another copy"},
      {"tokenizer.json of no kind", put("runs/lm/tokenizer.json", "{\"kind\": \"frob\"}"), "runs/lm",
       "runs/lm/tokenizer.json ... frob ... not a saved tokenizer"},
      {"tokenizer.json of another run", put("runs/lm/tokenizer.json", "{\"kind\": \"byte\"}"), "runs/lm",
       "runs/lm/tokenizer.json ... not what ... trained with"},
      {"no checkpoints", drop("runs/lm/checkpoints"), "runs/lm", "runs/lm: this run has no checkpoint"},
      {"weights cut",
       [](const Workplace& p) { fs::resize_file(p / "runs/lm/checkpoints/best/model.safetensors", 900); }, "runs/lm",
       "model.safetensors ... damaged"},
      {"weights with a flipped bit",
       [](const Workplace& p) { flip_bit(p, "runs/lm/checkpoints/best/model.safetensors", 0.9); }, "runs/lm",
       "model.safetensors ... checksum"},
  };
  for (const Row& row : rows) {
    const TrainedPlace place;
    if (row.damage) row.damage(place);
    for (const char* const command : {"eval", "predict", "generate", "inspect"})
      check_refused(place, std::string(command) + ": " + row.name, {command, row.run}, row.says, row.code, "text\n");
  }
}

TEST_CASE("damaged classes are refused, and so is a model of the other kind") {
  const auto classes = [](const std::string& text) {
    return [=](const Workplace& p) { p.write("runs/classifier/classes.txt", text); };
  };
  const Words predict = "predict runs/classifier";
  std::vector<Refusal> rows = {
      {"absent", predict, "runs/classifier/classes.txt ... cannot be read", 1,
       [](const Workplace& p) { fs::remove(p / "runs/classifier/classes.txt"); }},
      {"empty", predict, "runs/classifier/classes.txt ... not what ... copy", 1, classes("")},
      {"one missing", predict, "runs/classifier/classes.txt ... not what ... copy", 1, classes("bad\ngood\n")},
      {"one more", predict, "runs/classifier/classes.txt ... not what ... copy", 1,
       classes("bad\ngood\nso so\nmore\n")},
      {"in another order", predict, "runs/classifier/classes.txt ... not what ... copy", 1,
       classes("good\nbad\nso so\n")},
      {"generate with a classifier", "generate runs/classifier",
       "classifier ... this needs a language-model ... capstan predict"},
      {"predict with a language model", "predict runs/lm", "lm ... this needs a text-classifier ... capstan generate"},
      {"a split that is not there", "eval runs/lm --split test", "no test split ... data.test_fraction"},
      {"data that are gone", "eval runs/lm", "text ... no such file or folder", 1,
       [](const Workplace& p) { fs::remove_all(p / "text"); }},
  };
  for (Refusal& row : rows) {
    const TrainedPlace place;
    row.input = "text\n";
    check_refused(place, row);
  }
}

/// A small file system in memory that goes away with it; `ready()` only for root.
class SmallDisk {
 public:
  SmallDisk(const fs::path& where, const char* options, unsigned long flags = 0) : where_(where) {
    fs::create_directories(where_);
    ready_ = mount("tmpfs", where_.c_str(), "tmpfs", flags, options) == 0;
  }
  ~SmallDisk() {
    if (ready_) umount2(where_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool ready() const { return ready_; }

 private:
  fs::path where_;
  bool ready_ = false;
};

TEST_CASE_FIXTURE(Samples, "a run folder that cannot be written") {
  check_refused(place, "below a file", resume("folder=train.tsv/runs"),
                "train.tsv/runs ... Not a directory ... choose another folder");
  check_refused(place,
                {"a file", resume("folder=taken"), {"taken/lm", "choose another folder"}, 1, [](const Workplace& p) {
                   p.write("taken/lm", "");
                 }});
  const SmallDisk disk(place / "sealed", "size=1m", MS_RDONLY);
  if (disk.ready())
    check_refused(place, "read-only", resume("folder=sealed"),
                  "sealed/lm ... Read-only file system ... choose a folder you may write to");
  else
    MESSAGE("skipped: the read-only file system, which only root can mount");
}

TEST_CASE("a disk that fills up: what was saved before stays, and the run goes on once there is room") {
  const SamplePlace place;
  const SmallDisk disk(place / "small", "size=400k");
  if (!disk.ready()) {
    MESSAGE("skipped: only root can mount a small disk");
    return;
  }
  const Words command = resume("folder=small train.steps=40 train.save_every=1 train.keep_last=40");
  check_refused(place, "full", command,
                "cannot write small/lm/checkpoints ... No space left on device ... free some space ... intact");
  const auto saved = place.content("small/lm/checkpoints");
  CHECK(saved.size() > 4);
  check_refused(place, "still full", command, "No space left on device");
  CHECK(place.content("small/lm/checkpoints") == saved);
  CHECK(run(place, "generate small/lm -n 3").code == 0);
  REQUIRE(mount("tmpfs", (place / "small").c_str(), "tmpfs", MS_REMOUNT, "size=20m") == 0);
  CHECK(contains(succeed(place, command).err, "resumed from"));
}

}  // namespace
}  // namespace capstan::testing
