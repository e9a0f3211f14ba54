// Small inputs and runs: a language model and a classifier that train within a fraction of a second.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/support/program.hpp"

namespace capstan::testing {

/// Writes text/a.txt, text/b.txt, train.tsv, lm.yaml and classifier.yaml.
void write_samples(const Workplace& place);

/// The same, with the trained runs runs/lm and runs/classifier, each with the checkpoints of steps 4 and 6.
void write_trained_samples(const Workplace& place);

/// A folder with the samples.
struct SamplePlace : Workplace {
  SamplePlace() { write_samples(*this); }
};

/// The same with the trained runs.
struct TrainedPlace : Workplace {
  TrainedPlace() { write_trained_samples(*this); }
};

/// A case that has such a place of its own.
struct Samples {
  const SamplePlace place;
};
struct Trained {
  const TrainedPlace place;
};

/// The parts that a message must have, in any order: one by one, or as a text in which " ... " stands between them.
struct Says : std::vector<std::string> {
  using std::vector<std::string>::vector;
  Says(std::vector<std::string> parts) : std::vector<std::string>(std::move(parts)) {}
  Says(const std::string& text);
  Says(const char* text) : Says(std::string(text)) {}
};

/// What a case needs in its folder.
using Preparation = std::function<void(const Workplace&)>;

/// One wrong input and what must come of it.
struct Refusal {
  std::string name;
  Words arguments;
  Says says;  // on standard error: place and remedy
  int code = 1;
  Preparation prepare = {};
  std::string input = "";
};

/// Runs a row in `place` and checks exit code, message and decency. Returns what was printed.
Outcome check_refused(const Workplace& place, const Refusal& row);
Outcome check_refused(const Workplace& place, const std::string& name, const Words& arguments, const Says& says,
                      int code = 1, const std::string& input = "");

/// Every row in the same place.
void check_all_refused(const Workplace& place, const std::vector<Refusal>& rows);

/// The rows with this exit code.
std::vector<Refusal> with_code(int code, std::vector<Refusal> rows);

/// `train` with configs/classify.yaml, on train.tsv and test.tsv of the place.
Words classify_words(const std::string& name, const Words& overrides);

/// Runs what must end well, and checks that it does.
Outcome succeed(const Workplace& place, const Words& arguments, const std::string& input = "");

/// The number behind "name " at the beginning of a line; NAN when there is none.
double number_of(const std::string& text, const std::string& name);

/// Checks that these parts are in what a process has written to standard error.
inline void check_says(const Outcome& outcome, const std::vector<std::string>& parts) {
  check_contains(outcome.err, parts);
}

/// `train` with a configuration and other keys.
Words train_words(const std::string& config, const Words& overrides);

/// The figures of `eval`, which is run with these arguments.
nlohmann::json eval_json(const Workplace& place, const Words& arguments);

/// The lines of a run's metrics.jsonl.
std::vector<nlohmann::json> events_of(const Workplace& place, const std::string& name);

/// The validation that was the best so far.
nlohmann::json best_validation(const Workplace& place, const std::string& name);

/// The weights of a checkpoint of a run.
std::string model_of(const std::string& name, const std::string& checkpoint = "last");

/// A tensor of a file of weights.
std::vector<float> tensor_of(const Workplace& place, const std::string& file, const std::string& name);

/// Whether the last weights of two runs agree bit for bit.
bool same_model(const Workplace& place, const std::string& name, const std::string& other);

/// Replaces `from`, which must be there, in a file.
void edit(const Workplace& place, const std::string& file, const std::string& from, const std::string& to);

/// Changes a bit of a file; `where` it is, from 0, its first byte, to 1.
void flip_bit(const Workplace& place, const std::string& file, double where = 0.5);

/// Lines as a text, each with its end.
std::string text_of(const std::vector<std::string>& lines);

/// The cells of a line of TSV.
Words cells(const std::string& line, char delimiter = '\t');

/// A place for all cases of a file, which `prepare` fills when the first needs it.
template <class Prepare>
const Workplace& made_once(const Prepare& prepare) {
  static const Workplace place;
  static const bool done = (prepare(place), true);
  static_cast<void>(done);
  return place;
}

/// Copies files and folders, links included.
void copy_files(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace capstan::testing
