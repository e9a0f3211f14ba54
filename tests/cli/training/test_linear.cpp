// The default for classification, configs/classify.yaml: a linear classifier over n-grams.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <thread>

#include "core/io/json.hpp"
#include "core/strings/utf8.hpp"
#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

std::string rows(int count, int first = 0) {
  const Words words[] = {{"goal", "team", "match"}, {"stock", "bank", "market"}};
  std::string text;
  for (int i = first; i < first + count; ++i) {
    const int label = i * 7 % 5 < 2 ? 0 : 1;
    text += (label == 0 ? "sport\tthe " : "money\tthe ") + words[label][static_cast<size_t>(i % 3)] + " of day " +
            std::to_string(i * i % 31) + " and " +
            words[i % 11 == 0 ? 1 - label : label][static_cast<size_t>(i / 3 % 3)] + "\n";
  }
  return text;
}

Words command(const Words& more = {}, const std::string& name = "classify") { return classify_words(name, more); }

void write_rows(const Workplace& place) {
  place.write("train.tsv", rows(150));
  place.write("test.tsv", rows(60, 150));
}

std::string weights_of(const Workplace& place, const std::string& name) { return place.read(model_of(name)); }

TEST_CASE("classify.yaml: in a script without blanks single characters tell classes apart, whatever their width") {
  const auto texts = [](uint32_t seed, int count, bool wide) {
    std::string rows;
    for (int i = 0; i < count; ++i) {
      std::string text;
      for (int c = 0; c < 12; ++c) {
        seed = seed * 1664525u + 1013904223u;
        append_utf8(text, 0x4e00 + (seed >> 16) % 2000);  // so many that hardly a pair recurs
        if (c == 5) text += i % 2 == 0 ? (wide ? "ア" : "ｱ") : (wide ? "オ" : "ｵ");
      }
      rows += (i % 2 == 0 ? "first\t" : "second\t") + text + "\n";
    }
    return rows;
  };
  const Workplace place;
  place.write("train.tsv", texts(1, 200, true));
  place.write("test.tsv", texts(2, 200, false));
  succeed(place, command());
  CHECK(contains(place.read("runs/classify/config.yaml"), "unicode: true"));
  CHECK(number_of(succeed(place, "eval runs/classify --split test").out, "accuracy") > 0.95);
}

TEST_CASE("classify.yaml: train, eval and predict agree; the report of the folds; nothing to do the second time") {
  const Workplace place;
  write_rows(place);
  const Outcome trained = succeed(place, command());
  INFO(trained.err);
  CHECK(contains(trained.err + trained.out, "5 of 5 folds held out: accuracy"));
  CHECK(contains(place.read("runs/classify/config.yaml"), "buckets: "));
  CHECK_FALSE(contains(place.read("runs/classify/config.yaml"), "buckets: 0\n  folds"));

  const std::string evaluated = succeed(place, "eval runs/classify --split test").out;
  CHECK(number_of(evaluated, "accuracy") > 0.9);
  CHECK(number_of(evaluated, "loss") < 0.4);
  const std::string in_batches = "eval runs/classify --split test --set train.batch_size=";
  for (const char* const size : {"1", "7", "64"})
    CHECK(number_of(succeed(place, in_batches + size).out, "loss") == number_of(evaluated, "loss"));
  std::string texts;
  Words wanted;
  for (const std::string& line : lines_of(place.read("test.tsv"))) {
    wanted.push_back(line.substr(0, 5));
    texts += line.substr(6) + "\n";
  }
  double correct = 0, loss = 0;
  auto got = lines_of(succeed(place, "predict runs/classify --top-k 1", texts).out);
  got.erase(got.begin());  // names of the columns
  REQUIRE(got.size() == wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double probability = std::stod(got[i].substr(6));
    correct += got[i].substr(0, 5) == wanted[i] ? 1 : 0;
    loss -= std::log(got[i].substr(0, 5) == wanted[i] ? probability : 1 - probability);
  }
  CHECK(correct / 60 == doctest::Approx(number_of(evaluated, "accuracy")).epsilon(1e-3));
  CHECK(loss / 60 == doctest::Approx(number_of(evaluated, "loss")).epsilon(1e-2));

  const std::string before = weights_of(place, "classify");
  const std::string again = succeed(place, command()).err;
  check_contains(again, {"nothing to do", "another name starts a new one"});
  CHECK(weights_of(place, "classify") == before);
}

TEST_CASE("a linear classifier: the same weights on any number of threads, and after a kill at any moment") {
  const Workplace place;
  write_rows(place);
  succeed(place, command({"threads=1"}));
  const std::string whole = weights_of(place, "classify");
  succeed(place, command({"threads=2"}, "two"));
  CHECK(weights_of(place, "two") == whole);
  setenv("CAPSTAN_WORK_SECONDS", "0", 1);  // what is unfinished is saved whenever it can be
  for (int moment = 0; moment < 8; ++moment) {
    Process process(place, command({}, "killed"));
    for (int wait = 0; wait < 4 * moment && !process.ended(); ++wait)
      std::this_thread::sleep_for(std::chrono::milliseconds(15));
    process.send(SIGKILL);
    process.wait();
  }
  succeed(place, command({}, "killed"));
  unsetenv("CAPSTAN_WORK_SECONDS");
  CHECK(weights_of(place, "killed") == whole);
  CHECK_FALSE(fs::exists(place / "runs/killed/.unfinished"));
  // As where run.json was lost: nothing is left to solve, and no later save.
  fs::remove(place / "runs/killed/checkpoints/run.json");
  succeed(place, command({}, "killed"));
  CHECK(weights_of(place, "killed") == whole);
}

TEST_CASE("a linear classifier: a validation file is evaluated and not learnt from; other commands") {
  const Workplace place;
  write_rows(place);
  succeed(place, command());
  const Outcome trained = succeed(place, command({"data.valid=[test.tsv]"}, "valid"));
  CHECK(weights_of(place, "valid") == weights_of(place, "classify"));
  CHECK(contains(trained.err + trained.out, "60 texts"));
  for (const char* const arguments : {"inspect runs/classify", "report runs/classify --output report.html",
                                      "verify runs/classify", "compare runs/classify runs/valid"})
    succeed(place, arguments);
  CHECK_FALSE(contains(succeed(place, "compare runs/classify runs/valid").out, "train loss"));  // it is held-out
  const Outcome ignored = succeed(place, command({"train.lr=1", "train.lr_scale=[{match: a, factor: 2}]"}, "ignored"));
  CHECK(contains(ignored.err, "train.lr, train.lr_scale.0: without effect on a linear-classifier"));
  CHECK_FALSE(contains(trained.err, "without effect"));
}

TEST_CASE("classify.yaml: 100,000 texts have n-grams of three words; the run says so, and others go on from it") {
  const Workplace place;
  place.write("train.tsv", text_of(Words(50'000, "on\ta b c\noff\tb c a")));
  place.write("test.tsv", "on\ta b c\noff\tb c a\n");
  CHECK(contains(succeed(place, command()).err, "model.words: [1, 2, 3] of 100000 texts"));
  CHECK(contains(place.read("runs/classify/config.yaml"), "words: [1, 2, 3]"));
  CHECK(contains(succeed(place, command()).err, "nothing to do"));
  CHECK(number_of(succeed(place, "eval runs/classify --split test").out, "accuracy") == 1);
  place.write("train.tsv", rows(20));
  place.write("test.tsv", rows(20, 150));
  succeed(place, command({}, "few"));
  CHECK(contains(place.read("runs/few/config.yaml"), "words: [1, 2]\n"));
  succeed(place, command({"train.init_from=runs/classify"}, "from"));
  CHECK(contains(place.read("runs/from/config.yaml"), "words: [1, 2, 3]"));
  CHECK(contains(succeed(place, command({"train.init_from=runs/classify"}, "from")).err, "nothing to do"));
}

TEST_CASE("predict --explain: the n-grams that decide most, below each text; not for other outputs and models") {
  const Workplace place;
  write_rows(place);
  succeed(place, command());
  const std::vector<std::string> said =
      lines_of(succeed(place, "predict runs/classify --explain", "the goal of day 3\nthe bank\n").out);
  const auto is_label = [](const std::string& line, const char* label) {
    return line.rfind("  +", 0) == 0 && contains(line, std::string("  ") + label + ", of ");
  };
  const auto sport = std::find_if(said.begin(), said.end(), [&](const auto& line) { return is_label(line, "sport"); });
  const auto money = std::find_if(said.begin(), said.end(), [&](const auto& line) { return is_label(line, "money"); });
  REQUIRE(sport < money);
  REQUIRE(money != said.end());
  CHECK(std::any_of(sport, money, [](const auto& line) { return contains(line, "    goal"); }));
  CHECK(money - sport == 12);  // itself, ten n-grams, the next text's line
  // With --errors, texts that are not printed are not explained.
  place.write("one.tsv", "sport\tthe goal of day 3\nsport\tthe bank\n");
  const std::string wrong = succeed(place, "predict runs/classify --explain --errors one.tsv").out;
  CHECK(contains(wrong, "\tthe bank\n  +"));
  CHECK(wrong.find(", of ") == wrong.rfind(", of "));
  check_refused(place, "jsonl", "predict runs/classify --explain --format jsonl", "--explain", 2);
  write_trained_samples(place);
  check_refused(place, "blocks", "predict runs/classifier --explain", "linear-classifier", 1, "a text\n");
  CHECK(run(place, "predict runs/classifier --explain", "a text\n").out.empty());
}

TEST_CASE("a linear classifier starts from another one: what few texts lack, and the same weights after a kill") {
  const Workplace place;
  write_rows(place);
  succeed(place, command());
  // Two texts, with words of one kind each; the classes have other names.
  place.write("few.tsv", "a\tgoal and goal\na\tgoal of goal\nb\tstock and stock\nb\tstock of stock\n");
  place.write("others.tsv", "a\tteam match\na\tthe match\nb\tbank market\nb\tthe market\n");
  const auto few = [&](const std::string& name, const Words& more) {
    return succeed(place, command(more + "data.train=[few.tsv] data.test=[others.tsv]", name));
  };
  few("alone", {});
  const Outcome trained = few("from", {"train.init_from=runs/classify"});
  CHECK(contains(trained.err + trained.out, "starts from"));
  CHECK(number_of(succeed(place, "eval runs/alone --split test").out, "accuracy") < 0.8);
  CHECK(number_of(succeed(place, "eval runs/from --split test").out, "accuracy") == 1);
  CHECK(contains(succeed(place, "inspect runs/from").out, "runs/classify"));
  const std::string whole = weights_of(place, "from");
  few("two", "train.init_from=runs/classify threads=2");
  CHECK(weights_of(place, "two") == whole);
  // The run says all that is needed: what it started from may go.
  fs::remove_all(place / "runs/classify");
  CHECK(number_of(succeed(place, "eval runs/from --split test").out, "accuracy") == 1);
  CHECK(contains(few("from", {"train.init_from=runs/classify"}).err, "nothing to do"));
  CHECK(contains(few("from", {}).err, "nothing to do"));
  check_refused(place, "other n-grams", command("data.train=[few.tsv] data.test=[others.tsv] model.words=[1]", "from"),
                "another model");
  few("words", {"model.characters=[]"});
  check_refused(place, "characters, too", command("data.train=[few.tsv] data.test=[others.tsv]", "words"),
                "another model");
}

TEST_CASE("a linear classifier: texts that nothing is known of, and what is refused") {
  const Workplace place;
  write_rows(place);
  succeed(place, command());
  const std::string texts = std::string("zzzz\n?\n") + std::string(200000, 'x') + "\n\xe4\xb8\x96\xe7\x95\x8c\n";
  CHECK(lines_of(succeed(place, "predict runs/classify", texts).out).size() == 1 + 4);
  const auto refused = [&](const std::string& name, const Words& more, const std::string& says) {
    check_refused(place, name, command(more, "refused"), {says}, 2);
  };
  refused("blocks", {"model.layers=[{mixer: {type: aft-simple}}]"}, "model.layers");
  refused("buckets", {"model.buckets=1000"}, "power of two");
  refused("lengths", {"model.words=[0]"}, "model.words.0");
  refused("nothing", "model.words=[] model.characters=[]", "needs n-grams");
  refused("pooling", {"model.pooling=cls"}, "model.pooling");
  refused("tensors", "train.init_from=runs/classify train.init_skip=[a]", "train.init_skip");
  refused("nowhere", {"train.init_from=runs/nowhere"}, "no such file");
  const auto fails = [&](const std::string& name, const Words& more, const std::string& says) {
    check_refused(place, name, command(more, "refused"), {"train.init_from", says});
  };
  fails("other words", "train.init_from=runs/classify model.words=[1]", "model.words is [1, 2]");
  fails("other buckets", "train.init_from=runs/classify model.buckets=16", "model.buckets");
  place.write("alone.safetensors", weights_of(place, "classify"));
  fails("no run", {"train.init_from=alone.safetensors"}, "is not in a run folder");
  check_refused(place, "vectors", "embed runs/classify", "train a text-classifier", 1, "a text\n");
  check_refused(place, "vectors of no text", "embed runs/classify", "train a text-classifier");
}

}  // namespace
}  // namespace capstan::testing
