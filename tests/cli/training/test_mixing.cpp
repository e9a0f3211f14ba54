// Several sources with weights, and documents within the text, as a user meets them.
#include <doctest/doctest.h>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

Words train_mixture(const std::string& name, const Words& more) {
  return train_words("lm.yaml", {"name=" + name}) + more;
}

/// The shape of the schedule is one that does not depend on the number of steps.
const Words mixed = {"data.train=[text/b.txt, text/a.txt]", "data.weights=[3, 1]", "train.schedule.shape=constant"};

TEST_CASE_FIXTURE(Samples, "two sources: the log says what is drawn from each, and a run goes on to the same bits") {
  const Outcome whole = succeed(place, train_mixture("whole", mixed));
  check_says(whole, {"train: text/b.txt: ", "tokens, weight 3: ", " passes", "tokens, weight 1: "});
  succeed(place, train_mixture("parts", mixed + "train.steps=3"));
  CHECK(contains(succeed(place, train_mixture("parts", mixed)).err, "resumed from"));
  CHECK(same_model(place, "parts", "whole"));
  succeed(place, train_mixture("plain", {mixed[0], mixed[2]}));
  CHECK_FALSE(same_model(place, "plain", "whole"));
  succeed(place, "eval runs/whole");

  for (const Words& other : {Words{mixed[0], "data.weights=[1, 1]", mixed[2]}, Words{mixed[0], mixed[2]},
                             Words{mixed[0], "data.weights=[]", mixed[2]}})
    check_refused(place, "other weights", train_mixture("whole", other + "train.steps=8"),
                  "other data ... weights.0: 3");
  // The same row of tokens, but one of them belongs to the other source.
  const Words all = mixed + "data.valid_fraction=0";
  succeed(place, train_mixture("boundaries", all + "train.steps=4"));
  const std::string a = place.read("text/a.txt");
  place.write("text/b.txt", place.read("text/b.txt") + a.substr(0, 1));
  place.write("text/a.txt", a.substr(1));
  check_refused(place, "other boundaries", train_mixture("boundaries", all), "other data ... source 0: ");
}

TEST_CASE_FIXTURE(Samples, "weights that do not fit are named before anything is read") {
  check_refused(place, "count", train_mixture("x", {"data.weights=[1, 2]"}),
                "data.weights=[1, 2]: there are 2 weights for 1 entries of train; give one for each, or none", 2);
  check_refused(place, "zero", train_mixture("x", {mixed[0], "data.weights=[1, 0]"}),
                "data.weights.1: must be a number greater than 0", 2);
  place.write("few.txt", "a few words\n");
  check_refused(place, "short", train_mixture("x", "data.train=[text,few.txt] data.weights=[1,1]"),
                "data.train.1 (few.txt) ... but one example needs 33");
}

TEST_CASE_FIXTURE(Samples, "documents: training, evaluation, generation, report") {
  succeed(place, train_mixture("plain", {}));
  for (const std::string documents : {"line", "blank-line", "{type: marker, text: drum}"}) {
    INFO(documents);
    if (documents == "blank-line") place.write("text/c.txt", "one\n\ntwo\n\n\nthree\n");
    fs::remove_all(place / "runs/new");
    const Words set = {"data.documents=" + documents, "data.split=by-file", "data.valid_fraction=0.4"};
    succeed(place, train_mixture("new", set + "train.steps=4"));
    succeed(place, train_mixture("new", set));
    CHECK(eval_json(place, "runs/new").at("loss").get<double>() > 0);
    const Words generate = "generate runs/new --tokens 2000 --temperature 3";
    const Outcome written = succeed(place, generate);
    CHECK(contains(written.err, "the document ends here"));
    CHECK(written.out == succeed(place, generate).out);
    const Outcome prompted = succeed(place, generate + Words{"--prompt", "the rope"});
    CHECK(prompted.out.rfind("the rope", 0) == 0);
    succeed(place, "report runs/new --output new.html");
  }
  check_refused(place, "no marker", train_mixture("x", {"data.documents=marker"}),
                "data.documents.text: \"<|endoftext|>\" does not occur in the training text ... documents: file");
  check_refused(place, "tail", train_mixture("x", {"data.documents=file"}), "data.split: tail would cut ... by-file",
                2);
  check_refused(place, "a token that the model does not know", "eval runs/plain --set data.documents=line",
                "trained without data.documents ... leave these keys unchanged", 2);
  check_refused(place, "other documents", train_mixture("plain", "data.documents=line train.steps=8"), "other data");
}

TEST_CASE_FIXTURE(Samples, "the loss of held-out documents does not depend on how they are packed") {
  place.write("valid.txt", "the rope\nruns out\na slow ship of wire\nhome\n");
  succeed(place, train_mixture("new", "data.documents=line data.valid=[valid.txt]"));
  const auto loss = [&](const std::string& files) {
    const nlohmann::json report = eval_json(place, "runs/new --set data.valid=" + files);
    return report.at("loss").get<double>() * report.at("targets").get<double>();
  };
  place.write("one.txt", "\nruns out\n\n");
  place.write("others.txt", "home\nthe rope\n\n  \na slow ship of wire");
  CHECK(loss("[valid.txt]") == doctest::Approx(loss("[one.txt]") + loss("[others.txt]")).epsilon(1e-5));
}

}  // namespace
}  // namespace capstan::testing
