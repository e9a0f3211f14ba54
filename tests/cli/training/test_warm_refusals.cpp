// Wrong uses of init_from, freeze and lr_scale, and uses that are warned of.
#include <doctest/doctest.h>

#include <cmath>

#include "core/io/safetensors.hpp"
#include "tests/cli/support/samples.hpp"
#include "train/checkpoints/run_state.hpp"

namespace capstan::testing {
TEST_CASE_FIXTURE(Trained, "a run that has begun does not take other weights") {
  check_refused(place, "after random weights",
                train_words("lm.yaml", "name=lm train.init_from=runs/lm/checkpoints/step-4"),
                "holds a run that began with random weights ... would have no effect ... choose another name");
  succeed(place, train_words("lm.yaml", "name=warm train.init_from=runs/lm"));
  check_refused(place, "after other weights",
                train_words("lm.yaml", "name=warm train.init_from=runs/lm/checkpoints/step-4"),
                "holds a run that began with the weights of runs/lm");
  succeed(place, train_words("lm.yaml", "name=warm train.init_from=runs/lm train.steps=8"));
  succeed(place, train_words("lm.yaml", "name=warm train.steps=10"));  // the old run may be gone
}

TEST_CASE("frozen rows without a value, another vocabulary and classes that are numbers are warned of") {
  const TrainedPlace place;
  place.write("more/c.txt", "ZQ\n" + place.read("text/a.txt"));
  check_says(succeed(place, train_words("lm.yaml",
                                        "name=new train.init_from=runs/lm data.train=[more] train.freeze=[embed.*]")),
             {"rows of embed.weight have no value in the file and are frozen at their random start"});
  check_says(succeed(place, train_words("lm.yaml", {"name=words", "train.init_from=runs/lm",
                                                    "data.tokenizer={type: word, min_count: 1}"})),
             {"tokens are in the vocabulary of the file", "data.tokenizer={type: saved, file: ", "tokenizer.json}"});
  place.write("two.tsv", "0\ta b\n1\tb c\n0\ta c\n1\tc b\n");
  place.write("three.tsv", "0\ta b\n1\tb c\n2\ta c\n1\tc b\n");
  const auto train = [&](const char* name, const char* file, const Words& more) {
    const std::string settings = fmt::format("name={} data.train=[{}] data.valid_fraction=0", name, file);
    return succeed(place, train_words("classifier.yaml", settings) + more);
  };
  train("two", "two.tsv", {});
  check_says(train("three", "three.tsv", {"train.init_from=runs/two"}),
             {"classes whose names are numbers were matched by number", "train.init_skip=[\"head.*\"]"});
}

TEST_CASE_FIXTURE(Trained, "wrong uses of init_from, freeze and lr_scale are refused with a remedy") {
  const auto lm = [](const Words& overrides) { return train_words("lm.yaml", Words{"name=wrong"} + overrides); };
  const auto from_lm = [&](const Words& overrides) { return lm(Words{"train.init_from=runs/lm"} + overrides); };
  const auto damage = [](const Workplace& p) {
    copy_files(p / "runs/lm", p / "damaged");
    fs::resize_file(p / "damaged/checkpoints/step-6/model.safetensors", 3000);
  };
  const auto not_finite = [](const Workplace& p) {
    const std::vector<float> values(22 * 16, NAN);
    write_safetensors((p / "nan.safetensors").string(), {{"embed.weight", DType::f32, {22, 16}, values.data()}});
  };
  const auto rank = [](const Workplace& p) {
    const std::vector<float> values(8, 1);
    write_safetensors((p / "rank.safetensors").string(), {{"embed.weight", DType::f32, {2, 2, 2}, values.data()},
                                                          {"final_norm.gain", DType::f32, {}, values.data()}});
  };
  const std::vector<Refusal> wrong_uses = {
      {"nothing there", lm("train.init_from=runs/nowhere"),
       "runs/nowhere: there is no such file or folder ... give a run folder"},
      {"init_skip alone", lm("train.init_skip=[a.*]"), "init_skip ... needs train.init_from: the weights"},
      {"freezing what is not there", lm("train.freeze=[embedding.*]"),
       "train.freeze.0: no parameter matches embedding.* ... the model has embed.weight"},
      {"freezing another name", lm("train.freeze=[output.*]"),
       "train.freeze.0: output.weight is stored as embed.weight: name that one"},
      {"freezing all", lm("train.freeze=[\"*\"]"), "train.freeze: all parameters are frozen"},
      {"a rate of nothing", lm({"train.lr_scale=[{match: head.*, factor: 2}]"}),
       "train.lr_scale.0.match: no parameter matches head.*"},
      {"a rate of what is frozen", lm({"train.freeze=[embed.*]", "train.lr_scale=[{match: embed.*, factor: 2}]"}),
       "train.lr_scale.0.match: all parameters that match embed.* are frozen"},
      {"a rate of zero", lm({"train.lr_scale=[{match: embed.*, factor: 0}]"}),
       "expected a number (greater than 0), got 0"},
      {"a rate without a pattern", lm({"train.lr_scale=[{factor: 2}]"}), "match: must be given"},
      {"a layer decay above 1", lm("train.layer_decay=1.1"), "layer_decay ... expected a number"},
      {"a layer decay of 0", lm("train.layer_decay=0"), "layer_decay ... expected a number"},
  };
  std::vector<Refusal> rows = {
      {"a folder without a model", lm("train.init_from=text"),
       "text: there is no model here ... give a run folder, a checkpoint's folder or a .safetensors file"},
      {"a file that is no model", lm("train.init_from=text/a.txt"), "text/a.txt ... safetensors"},
      {"a damaged checkpoint", lm("train.init_from=damaged/checkpoints/step-6"),
       "damaged/checkpoints/step-6/model.safetensors ... complete checkpoints: damaged/checkpoints/step-4", 1, damage},
      {"the run itself", lm("train.init_from=runs/wrong"), "is the folder of this run ... give another name", 2,
       [](const Workplace& p) { fs::create_directories(p / "runs/wrong"); }},
      {"a pattern without a tensor", from_lm("train.init_skip=[encoder.*]"),
       "train.init_skip: no tensor of ... is called encoder.* ... it has blocks.0.feed_forward.down.bias"},
      {"another width", from_lm("model.width=32"),
       "has tensors of other shapes than the model ... fresh     embed.weight ... the file has (22, 16) ... leave them "
       "out with train.init_skip: [\"embed.weight\"]"},
      {"nothing fits", lm("train.init_from=others.safetensors"),
       "nothing in ... fits the model ... fresh     embed.weight", 1,
       [](const Workplace& p) {
         const std::vector<float> values(8, 1);
         write_safetensors((p / "others.safetensors").string(),
                           {{"encoder.weight", DType::f32, {2, 4}, values.data()}});
       }},
      {"a file of torch.save()", lm("train.init_from=model.pt"),
       "model.pt: this is a zip archive, as torch.save() writes it ... safetensors.torch.save_file()", 1,
       [](const Workplace& p) { p.write("model.pt", std::string("PK\3\4") + std::string(200, 'x')); }},
      {"a run without a checkpoint", lm("train.init_from=runs/begun"),
       "runs/begun: this run has no checkpoint ... train.save_every ... capstan train --config runs/begun/config.yaml",
       1, [](const Workplace& p) { p.write("runs/begun/config.yaml", "name: begun\n"); }},
      {"values that are not finite", lm("train.init_from=nan.safetensors"),
       "nan.safetensors: element 0 of embed.weight is not finite", 1, not_finite},
      {"another rank", lm("train.init_from=rank.safetensors"), "other shapes than the model ... the file has (2, 2, 2)",
       1, rank},
      {"freezing more in mid-run", train_words("lm.yaml", "train.freeze=[embed.*] train.steps=8"),
       "another train.freeze: was none, is now embed.*"},
  };
  for (const Refusal& row : with_code(2, wrong_uses)) rows.push_back(row);
  CHECK(rows.size() >= 16);
  for (const Refusal& row : rows) {
    check_refused(place, row);
    CHECK_MESSAGE(!fs::exists(place / "runs/wrong/checkpoints/last"), row.name);
    fs::remove_all(place / "runs/wrong");
    fs::remove_all(place / "more");
  }
}

TEST_CASE("init_from refuses a run that predict and score refuse, before it takes memory for sizes that files name") {
  const TrainedPlace place;
  const auto change = [](const std::string& file, const std::string& from, const std::string& to) {
    return [=](const Workplace& p, const std::string& run) { edit(p, run + "/" + file, from, to); };
  };
  struct Change {
    std::string name, kind;
    std::function<void(const Workplace&, const std::string&)> make;
    Says says;
  };
  const std::vector<Change> changes = {
      {"classes in another order", "classifier",
       [](const Workplace& p, const std::string& run) {
         Words names = lines_of(p.read(run + "/classes.txt"));
         std::swap(names.at(0), names.at(1));
         p.write(run + "/classes.txt", text_of(names));
       },
       "changed/classes.txt: this is not what ... was trained with ... use a copy of the original"},
      {"a class more", "classifier",
       [](const Workplace& p, const std::string& run) {
         p.write(run + "/classes.txt", p.read(run + "/classes.txt") + "more\n");
       },
       "changed/classes.txt: this is not what"},
      {"no classes", "classifier",
       [](const Workplace& p, const std::string& run) { fs::remove(p / (run + "/classes.txt")); },
       "changed/classes.txt: cannot be read"},
      {"another tokenizer", "lm",
       [](const Workplace& p, const std::string& run) { p.write(run + "/tokenizer.json", "{\"kind\": \"byte\"}"); },
       "changed/tokenizer.json: this is not what ... was trained with"},
      {"a large width", "lm", change("config.yaml", "  width: 16\n", "  width: 65536\n"),
       "changed/config.yaml: this is not what ... was trained with"},
      {"many layers", "lm", change("config.yaml", "repeat: 1\n", "repeat: 1000\n"),
       "changed/config.yaml: this is not what ... was trained with"},
      {"many n-grams", "classifier", change("config.yaml", "    orders: []\n", "    orders: [1, 2]\n"),
       "changed/config.yaml: this is not what ... was trained with"},
  };
  for (const Change& c : changes) {
    INFO(c.name);
    fs::remove_all(place / "changed");
    copy_files(place / ("runs/" + c.kind), place / "changed");
    c.make(place, "changed");
#ifdef __SANITIZE_ADDRESS__  // it needs terabytes of addresses itself
    const std::string limit;
#else
    const std::string limit = "ulimit -v 2000000; ";
#endif
    const std::string ask = c.kind == "lm" ? "score" : "predict", limited = limit + "exec timeout 20 \"$capstan\" ";
    for (const std::string& command :
         {ask + " changed </dev/null", "train --config " + c.kind + ".yaml --set name=new train.init_from=changed"}) {
      INFO(command);
      const Outcome outcome = run_shell(place, limited + command);
      CHECK(outcome.code == 1);
      check_contains(outcome.err, c.says);
      CHECK(!fs::exists(place / "runs/new/checkpoints/last"));
    }
  }
}

}  // namespace capstan::testing
