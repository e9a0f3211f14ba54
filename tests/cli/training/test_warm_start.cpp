// Runs that start from the weights of other runs: what they take, what they refuse, what they need afterwards.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/io/json.hpp"
#include "core/io/safetensors.hpp"
#include "tests/cli/support/interruption.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

/// The first validation in a run's metrics, which must be of step 0.
nlohmann::json first_validation(const Workplace& place, const std::string& name) {
  const nlohmann::json event = events_of(place, name).at(0);
  CHECK(event.at("event") == "valid");
  CHECK(event.at("step") == 0);
  return event;
}

/// The best validation loss of a run.
double best_loss(const Workplace& place, const std::string& name) {
  return best_validation(place, name).at("loss").get<double>();
}

bool same_bits(const FileTensor& a, const FileTensor& b) {
  return a.shape == b.shape && std::memcmp(a.bytes, b.bytes, static_cast<size_t>(a.size * byte_size(a.dtype))) == 0;
}

const Words local_mixer = {"model.layers.0.mixer={type: aft-local, window: 4, rank: 4}", "model.max_length=32"};

}  // namespace

TEST_CASE_FIXTURE(Trained, "a language model that goes on has the loss of the old run before its first step") {
  struct Row {
    std::string name, from;
    Words more;
  };
  const std::vector<Row> rows = {
      {"folder", "runs/lm", {}},
      {"checkpoint", "runs/lm/checkpoints/step-6", {}},
      {"file", "runs/lm/checkpoints/step-6/model.safetensors", {}},
      {"untied", "runs/lm", {"model.tied_output=false"}},
      {"frozen", "runs/lm", {"train.freeze=[embed.*]"}},
      {"in lanes", "runs/lm", {"train.lanes=2"}},
  };
  const double loss = best_loss(place, "lm");
  for (const Row& row : rows) {
    INFO(row.name);
    const std::string name = "from-" + std::to_string(&row - rows.data());
    const Outcome outcome =
        succeed(place, train_words("lm.yaml", Words{"name=" + name, "train.init_from=" + row.from} + row.more));
    check_says(outcome, {"starts from", "step-6", "step 6, fingerprint ", "loaded    embed.weight"});
    const double at_start = first_validation(place, name).at("loss").get<double>();
    CHECK(std::abs(at_start - loss) <= 1e-6);
    const Outcome inspected = succeed(place, {"inspect", "runs/" + name});
    check_contains(inspected.out, {"started from: ", "checkpoints/step-6/model.safetensors, step 6, fingerprint "});
  }
}

TEST_CASE_FIXTURE(Trained, "a copy of the weights alone is taken by index") {
  fs::copy_file(place / model_of("lm", "step-6"), place / "weights.safetensors");
  const Outcome outcome = succeed(place, train_words("lm.yaml", "name=b train.init_from=weights.safetensors"));
  check_says(outcome, {"rows by index: the tokens of the file are not known"});
  CHECK(std::abs(first_validation(place, "b").at("loss").get<double>() - best_loss(place, "lm")) <= 1e-6);
}

TEST_CASE_FIXTURE(Trained, "rows follow their token, and new tokens start anew") {
  // Characters in another order, some of them new.
  place.write("other/a.txt", "zebra quick\n" + place.read("text/b.txt"));
  succeed(place, train_words("lm.yaml", "name=cold data.train=[other] train.steps=1 train.lr=1e-30"));
  const Outcome outcome = succeed(
      place, train_words("lm.yaml", "name=b data.train=[other] train.steps=1 train.init_from=runs/lm train.lr=1e-30"));
  check_says(outcome, {"loaded    embed.weight", "rows, found by their tokens among"});
  const auto code_points = [&](const std::string& run_name) {
    return parse_json(place.read("runs/" + run_name + "/tokenizer.json")).at("code_points").get<std::vector<int64_t>>();
  };
  const std::vector<int64_t> before = code_points("lm"), after = code_points("b");
  const std::vector<float> a = tensor_of(place, model_of("lm", "step-6"), "embed.weight"),
                           b = tensor_of(place, model_of("b", "step-0"), "embed.weight"),
                           own = tensor_of(place, model_of("cold"), "embed.weight");
  const auto row = [](const std::vector<float>& values, size_t index) {
    return std::vector<float>(values.begin() + static_cast<std::ptrdiff_t>(16 * index),
                              values.begin() + static_cast<std::ptrdiff_t>(16 * (index + 1)));
  };
  int64_t found = 0, fresh = 0;
  // A tokenizer of characters has its end of a line and what it does not know among its code points, or before them.
  const size_t first = b.size() / 16 - after.size(), first_before = a.size() / 16 - before.size();
  for (size_t id = 0; id < after.size(); ++id) {
    const auto place_before = std::find(before.begin(), before.end(), after[id]);
    const std::vector<float> mine = row(b, first + id);
    if (place_before == before.end()) {
      ++fresh;
      CHECK(mine == row(own, first + id));
    } else {
      ++found;
      CHECK(mine == row(a, first_before + static_cast<size_t>(place_before - before.begin())));
    }
  }
  CHECK(found > 10);
  CHECK(fresh >= 3);
}

TEST_CASE_FIXTURE(Trained, "classes, tasks, renamed tensors and longer tables") {
  std::string rows;
  for (int i = 0; i < 20; ++i)
    rows += "new\ta fine day " + std::to_string(i) + "\nbad\tsad night" + std::string(static_cast<size_t>(i % 5), '!') +
            "\n";
  place.write("two.tsv", rows);
  Outcome outcome = succeed(place, train_words("classifier.yaml",
                                               "name=two data.train=[two.tsv] data.max_length=20 model.max_length=20 "
                                               "train.keep_last=9 train.init_from=runs/classifier"));
  check_says(outcome, {"1 of 2 rows, found by their classes among 3", "16 of 20 rows, of 16 positions",
                       "loaded    embed.weight"});
  {
    // The row of class bad is the old one.
    const std::vector<float> a = tensor_of(place, model_of("classifier", "best"), "head.weight"),
                             b = tensor_of(place, model_of("two", "step-0"), "head.weight");
    const Words classes = lines_of(place.read("runs/classifier/classes.txt")),
                mine = lines_of(place.read("runs/two/classes.txt"));
    const auto row_of = [](const Words& names, const char* name) {
      return std::find(names.begin(), names.end(), name) - names.begin();
    };
    const auto from = a.begin() + 16 * row_of(classes, "bad"), to = b.begin() + 16 * row_of(mine, "bad");
    CHECK(std::equal(from, from + 16, to));
  }
  outcome = succeed(place, train_words("classifier.yaml", Words("name=task train.init_from=runs/lm") + local_mixer));
  check_says(outcome, {"rows, found by their tokens among 22", "fresh     head.weight", "no tensor of this name"});
  outcome = succeed(place, train_words("lm.yaml", Words("name=back train.init_from=runs/task")));
  check_says(outcome, {"left out  head.weight", "the model has no parameter of this name"});
  outcome = succeed(place, train_words("lm.yaml", {"name=parts", "train.init_from=runs/lm", "model.layers.0.repeat=3",
                                                   "train.init_skip=[\"embed.*\", embed.weight]"}));
  check_says(outcome,
             {"fresh     embed.weight", "left out  embed.weight", "by train.init_skip", "in 2 blocks; no tensor of"});
}

TEST_CASE_FIXTURE(Trained, "a language model becomes a causal classifier that reads as it did") {
  const Words causal = Words("train.init_from=runs/lm train.keep_last=9 model.causal=true") + local_mixer;
  const Outcome outcome = succeed(place, train_words("classifier.yaml", Words{"name=causal"} + causal));
  check_says(outcome, {"loaded    embed.weight", "rows, found by their tokens among 22",
                       "loaded    blocks.N.mixer.to_qkv.weight", "loaded    final_norm", "fresh     head.weight"});
  CHECK_FALSE(contains(outcome.err, "compute something else"));
  first_validation(place, "causal");
  // Before the first step, the mean of the states of a text is that of the language model.
  const std::string texts = "sad dull tea\nneat\n";  // of tokens that both know
  const auto vectors = [&](const std::string& run) {
    std::vector<double> all;
    for (const std::string& line : lines_of(succeed(place, {"embed", run}, texts).out)) {
      const auto vector = parse_json(line).at("vector").get<std::vector<double>>();
      all.insert(all.end(), vector.begin(), vector.end());
    }
    return all;
  };
  const std::vector<double> before = vectors("runs/lm"), after = vectors("runs/causal/checkpoints/step-0");
  REQUIRE(before.size() == 32);
  REQUIRE(after.size() == 32);
  for (size_t i = 0; i < before.size(); ++i) CHECK(std::abs(before[i] - after[i]) < 1e-5);
  // A bidirectional one computes something else, and says so.
  const Outcome other =
      succeed(place, train_words("classifier.yaml", Words("name=both-ways train.init_from=runs/lm") + local_mixer));
  check_says(other,
             {"compute something else", "tokens saw those before them only, and see all now", "model.causal: true"});
  check_refused(place, "cls of a causal model",
                train_words("classifier.yaml", Words("name=wrong model.pooling=cls") + causal),
                "cls is the first token, which sees no other in a causal model; use mean, last or attention", 2);
}

TEST_CASE_FIXTURE(Trained, "rows of n-grams are taken if tokens and hash are the same, and start anew otherwise") {
  const Words ngrams = "model.ngrams.orders=[1,2] model.ngrams.buckets=500 model.ngrams.width=8";
  succeed(place, train_words("classifier.yaml", Words{"name=old"} + ngrams));
  const auto start = [&](const std::string& name, const Words& more) {
    return succeed(place,
                   train_words("classifier.yaml",
                               Words{"name=" + name, "train.init_from=runs/old", "train.keep_last=9"} + ngrams + more));
  };
  check_says(start("same", {}), {"loaded    ngrams.table"});
  const auto bits = [&](const std::string& name, const std::string& checkpoint) {
    return tensor_of(place, model_of(name, checkpoint), "ngrams.table");
  };
  const std::vector<float> old = bits("old", "best");
  CHECK(std::any_of(old.begin(), old.end(), [](float value) { return value != 0; }));
  CHECK(bits("same", "step-0") == old);
  place.write("more.tsv", place.read("train.tsv") + "good\tZQ\ngood\tQZ\ngood\tZQZ\n");  // some are held out
  const struct {
    std::string name;
    Words more;
    std::string why;
  } rows[] = {
      {"orders", {"model.ngrams.orders=[1,3]"}, "orders"},
      {"buckets", {"model.ngrams.buckets=400"}, "400"},
      {"tokens", {"data.train=[more.tsv]"}, "another tokenizer: n-grams are hashed by the ids of their tokens"}};
  for (const auto& row : rows) {
    INFO(row.name);
    check_says(start(row.name, row.more), {"fresh     ngrams.table", row.why});
    const std::vector<float> fresh = bits(row.name, "step-0");  // a table starts at zero
    CHECK(std::all_of(fresh.begin(), fresh.end(), [](float value) { return value == 0; }));
  }
}

TEST_CASE_FIXTURE(Trained, "frozen tensors keep their bits, whatever the optimizer; the others learn") {
  const SafetensorsFile old((place / model_of("lm", "step-6")).string());
  for (const std::string optimizer : {"adamw", "sgd", "lion", "muon"}) {
    for (const Words& more : {Words{}, {"train.lanes=2"}}) {
      const std::string name = optimizer + std::to_string(more.size());
      INFO(name);
      const Outcome outcome = succeed(
          place, train_words("lm.yaml", Words{"name=" + name, "train.init_from=runs/lm", "train.optimizer=" + optimizer,
                                              "train.freeze=[embed.*, blocks.0.feed_forward.*]", "train.lr=0.01"} +
                                            more));
      check_says(outcome, {"parameters are frozen"});
      const SafetensorsFile now((place / model_of(name, "last")).string());
      for (const FileTensor& tensor : now.tensors()) {
        const bool frozen = contains(tensor.name, "embed.") || contains(tensor.name, "feed_forward.");
        CHECK_MESSAGE(same_bits(tensor, old.at(tensor.name)) == frozen, tensor.name);
      }
      const SafetensorsFile moments((place / ("runs/" + name + "/checkpoints/last/optimizer.safetensors")).string());
      for (const FileTensor& tensor : moments.tensors()) {
        CHECK_FALSE(contains(tensor.name, "embed."));
        CHECK_FALSE(contains(tensor.name, "feed_forward."));
      }
    }
  }
}

TEST_CASE_FIXTURE(Trained, "a run that goes on needs neither its ancestor nor to be told of it") {
  const Words command = train_words("lm.yaml", "name=heir train.init_from=runs/lm train.steps=8");
  Words whole = command;
  whole[4] = "name=whole";
  succeed(place, whole);
  succeed(place, command + "--set train.steps=4");
  fs::rename(place / "runs/lm", place / "gone");
  const Outcome outcome = succeed(place, command);
  check_says(outcome, {"resumed from runs/heir/checkpoints/step-4"});
  CHECK_FALSE(contains(outcome.err, "starts from"));
  const Outcome inspected = succeed(place, "inspect runs/heir");
  CHECK(contains(inspected.out, "runs/lm/checkpoints/step-6/model.safetensors, step 6"));
  // Of a run of that run, both ancestors are known.
  succeed(place, train_words("lm.yaml", "name=grandchild train.init_from=runs/heir train.steps=1"));
  const Outcome both = succeed(place, "inspect runs/grandchild");
  check_contains(both.out, {"started from: " + (place / "runs/heir").string(),
                            "runs/lm/checkpoints/step-6/model.safetensors, step 6"});
}

TEST_CASE("kill -9 of a run that starts from another: bit for bit the weights of an unbroken one") {
  std::mt19937 random(11);
  const Training training{
      "warm",
      "lm.yaml",
      {"train.init_from=runs/lm", "train.freeze=[embed.*]", "train.layer_decay=0.8", "train.log_every=1"}};
  const TrainedPlace place;
  REQUIRE(run(place, train_command(training, "whole", {"train.save_every=0"})).code == 0);
  const Kills kills =
      train_and_kill(place, train_command(training, "killed", {"train.save_every=1"}), "killed", 4, 40, random);
  MESSAGE(kills.made, " kills, ", kills.while_saving, " of them while a checkpoint was written");
  check_same_weights(place, "killed", "whole");
  check_same_metrics(place, "killed", "whole");
}

}  // namespace capstan::testing
