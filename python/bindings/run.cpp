#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <deque>

#include "core/strings/strings.hpp"
#include "python/bindings/engine.hpp"
#include "python/bindings/module.hpp"
#include "python/bindings/texts.hpp"
#include "run/exports/export_run.hpp"
#include "run/run.hpp"
#include "run/setup/run_config.hpp"
#include "run/setup/run_data.hpp"
#include "run/training/slim_run.hpp"

namespace capstan::python {
namespace fs = std::filesystem;

namespace {

/// Does it read them without products, within a moment?
bool reads_texts(const Run& self) { return facts_of(self.config.model).reads_texts; }

FloatRows probabilities(const Run& self, const nb::list& texts) {
  return rows_of(reads_texts(self), texts, self.classes.size(), [&](const std::vector<InputText>& some) {
    std::vector<std::vector<float>> rows;
    for (Prediction& prediction : self.predict(some)) rows.push_back(std::move(prediction.probabilities));
    return rows;
  });
}

FloatRows decision_values(const Run& self, const nb::list& texts) {
  return rows_of(reads_texts(self), texts, self.classes.size(),
                 [&](const std::vector<InputText>& some) { return self.decision_values(some); });
}

/// The names of a text's n-grams and what each adds to the decision values, (n-grams, classes); first that of the
/// constant, which has no name.
nb::tuple explain(const Run& self, const nb::list& text) {
  const InputText given = input_texts(text).at(0);
  const TextExplanation found = compute([&] { return self.explain(given); });
  nb::list names;
  names.append("");
  std::vector<double> values = found.bias;
  for (const TextExplanation::Ngram& ngram : found.ngrams) {
    names.append(bytes_of(ngram.name).attr("decode")("utf-8", "replace"));
    values.insert(values.end(), ngram.logits.begin(), ngram.logits.end());
  }
  return nb::make_tuple(names, as_array(std::move(values), found.ngrams.size() + 1, found.bias.size()));
}

FloatRows embed(const Run& self, const nb::list& texts) {
  return rows_of(false, texts, static_cast<size_t>(self.embedding_size()),
                 [&](const std::vector<InputText>& some) { return self.embed(some); });
}

std::vector<std::pair<double, int64_t>> score(const Run& self, const nb::list& texts) {
  const std::vector<InputText> all = input_texts(texts);
  return compute([&] {
    std::vector<std::pair<double, int64_t>> found;
    for_chunks(all, [&](const std::vector<InputText>& some) {
      for (const TextScore& text : self.score(some)) found.emplace_back(text.log_probability, text.tokens);
    });
    return found;
  });
}

/// For each text, the filled text and, for each blank, the most likely tokens with their probabilities.
nb::list fill(const Run& self, const nb::list& texts, const std::string& blank, int64_t top_k) {
  const std::vector<InputText> all = input_texts(texts);
  PredictOptions options;
  options.blank = blank;
  options.top_k = top_k;
  const std::vector<Prediction> found = compute([&] { return self.predict(all, options); });
  nb::list filled;
  for (const Prediction& prediction : found) {
    nb::list blanks;
    for (const std::vector<Guess>& guesses : prediction.blanks) {
      nb::list tokens;
      for (const Guess& guess : guesses) tokens.append(nb::make_tuple(bytes_of(guess.text), guess.probability));
      blanks.append(tokens);
    }
    filled.append(nb::make_tuple(bytes_of(prediction.filled), blanks));
  }
  return filled;
}

SamplingConfig sampling(double temperature, int64_t top_k, double top_p, double min_p, double repetition_penalty,
                        int64_t seed) {
  SamplingConfig config;
  config.temperature = temperature;
  config.top_k = top_k;
  config.top_p = top_p;
  config.min_p = min_p;
  config.repetition_penalty = repetition_penalty;
  config.seed = seed;
  return config;
}

/// For each text, its completions with their log probabilities, the best first.
nb::list complete_pairs(const Run& self, const nb::list& texts, int64_t best, int64_t beam, double length_penalty,
                        int64_t tokens) {
  const std::vector<InputText> all = input_texts(texts);
  PredictOptions options;
  options.top_k = best;
  options.beam = beam;
  options.length_penalty = length_penalty;
  options.max_tokens = tokens;
  const std::vector<Prediction> found = compute([&] { return self.predict(all, options); });
  nb::list completed;
  for (const Prediction& prediction : found) {
    nb::list written;
    for (const PairCompletion& completion : prediction.completions)
      written.append(nb::make_tuple(bytes_of(completion.text), completion.log_probability));
    completed.append(written);
  }
  return completed;
}

/// What a language model writes, piece by piece as it is asked for. A computing thread writes it, `max_ahead` pieces
/// ahead at most.
class Pieces {
 public:
  Pieces(const Run& self, InputText text, CompletionOptions options) : queue_(std::make_shared<Queue>()) {
    job_ = start([run = self, queue = queue_, text = std::move(text), options](const Cancel&) mutable {
      options.on_piece = [&](int64_t sample, std::string_view piece) { return queue->push(sample, piece); };
      const Ended ended{*queue};
      run.generate(text, options);
    });
  }
  ~Pieces() { close(); }

  /// The sample and the bytes of the next piece; None at the end.
  nb::object next() {
    for (;;) {
      std::optional<Piece> piece;
      bool ended = false;
      {
        const nb::gil_scoped_release released;
        ended = !queue_->wait(piece);
      }
      if (piece) return nb::make_tuple(piece->first, bytes_of(piece->second));
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!ended) continue;
      wait_in_python(job_);
      return nb::none();
    }
  }
  /// Ends the writing; there is no next piece.
  void close() {
    const nb::gil_scoped_release released;
    queue_->end();
    job_->wait();
  }
  /// How many pieces are written and not yet read.
  size_t ahead() { return queue_->size(); }

 private:
  using Piece = std::pair<int64_t, std::string>;
  static constexpr size_t max_ahead = 64;

  class Queue {
   public:
    /// Waits for room; false when nobody will read it.
    bool push(int64_t sample, std::string_view text) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return ended_ || pieces_.size() < max_ahead; });
      if (ended_) return false;
      pieces_.emplace_back(sample, text);
      changed_.notify_all();
      return true;
    }
    /// Waits a moment for a piece; false when there will be none.
    bool wait(std::optional<Piece>& piece) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait_for(lock, std::chrono::milliseconds(50), [this] { return ended_ || !pieces_.empty(); });
      if (pieces_.empty()) return !ended_;
      piece = std::move(pieces_.front());
      pieces_.pop_front();
      changed_.notify_all();
      return true;
    }
    void end() {
      const std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    }
    size_t size() {
      const std::lock_guard<std::mutex> lock(mutex_);
      return pieces_.size();
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Piece> pieces_;
    bool ended_ = false;  // by the writer or the reader
  };
  struct Ended {
    Queue& queue;
    ~Ended() { queue.end(); }
  };

  std::shared_ptr<Queue> queue_;
  std::shared_ptr<Job> job_;
};

std::unique_ptr<Pieces> generate(const Run& self, nb::handle text, int64_t tokens, int64_t samples,
                                 const SamplingConfig& sampled, const std::vector<std::string>& stop, bool bf16) {
  CompletionOptions options;
  options.max_tokens = tokens;
  options.samples = samples;
  options.sampling = sampled;
  options.stop = stop;
  options.weights = bf16 ? DecodeWeights::bf16 : DecodeWeights::float32;
  return std::make_unique<Pieces>(self, utf8_of(text), options);
}

nb::dict evaluate(const Run& self, const std::string& split) {
  const EvalReport report =
      compute([&] { return self.evaluate(split.empty() ? std::nullopt : std::make_optional(split_named(split))); });
  nb::dict figures;
  figures["split"] = report.split;
  for (const Figure& figure : report.figures()) figures[figure.name.c_str()] = figure.value;
  return figures;
}

Run open(const std::string& folder, const std::vector<std::string>& overrides) {
  return compute([&] { return Run::open(folder, overrides); });
}

void slim(const Run& self, const std::string& folder, double size) {
  compute([&] { return slim_run(fs::path(self.weights).parent_path(), folder, size); });
}

/// The names of the files.
std::vector<std::string> export_to(const Run& self, const std::string& format, const std::string& folder) {
  const std::optional<ExportFormat> known = enum_value<ExportFormat>(format);
  if (!known) {
    std::vector<std::string> names;
    for (const auto& name : enum_names(ExportFormat{})) names.emplace_back(name.name);
    throw ConfigError(fmt::format("format: {} is not one of {}", format, join(names)));
  }
  return compute([&] { return export_run(self, *known, folder); });
}

/// "classes", "hidden_tokens", "pairs" or "next_token".
const char* task(const Run& self) {
  const ModelFacts facts = facts_of(self.config.model);
  switch (facts.predicts) {
    case Predicts::classes:
      return "classes";
    case Predicts::hidden_tokens:
      return "hidden_tokens";
    case Predicts::next_token:
      return facts.takes_pairs && facts_of(self.config.data).has_pairs ? "pairs" : "next_token";
  }
  return "";
}

}  // namespace

void bind_run(nb::module_& module) {
  using namespace nb::literals;  // NOLINT: how nanobind names arguments
  nb::class_<SamplingConfig>(module, "Sampling")
      .def(
          "__init__",
          [](SamplingConfig* self, double temperature, int64_t top_k, double top_p, double min_p,
             double repetition_penalty, int64_t seed) {
            new (self) SamplingConfig(sampling(temperature, top_k, top_p, min_p, repetition_penalty, seed));
          },
          "temperature"_a, "top_k"_a, "top_p"_a, "min_p"_a, "repetition_penalty"_a, "seed"_a);
  nb::class_<Pieces>(module, "Pieces")
      .def("next", &Pieces::next)
      .def("close", &Pieces::close)
      .def("ahead", &Pieces::ahead);
  nb::class_<Run>(module, "Run")
      .def_static("open", &open)
      .def_prop_ro("folder", [](const Run& self) { return self.folder.string(); })
      .def_prop_ro("task", &task)
      .def_prop_ro("multi_label", [](const Run& self) { return facts_of(self.config.data).multi_label(); })
      .def_prop_ro("rule", [](const Run& self) { return self.rule; })
      .def_prop_ro("thresholds", [](const Run& self) { return self.thresholds; })
      .def_prop_ro("classes", [](const Run& self) { return self.classes; })
      .def_prop_ro("config", [](const Run& self) { return to_yaml(self.config); })
      .def("probabilities", &probabilities)
      .def("decision_values", &decision_values)
      .def("explain", &explain)
      .def("embed", &embed)
      .def("score", &score)
      .def("fill", &fill)
      .def("complete", &complete_pairs)
      .def("generate", &generate)
      .def("evaluate", &evaluate)
      .def("slim", &slim)
      .def("export", &export_to);
}

}  // namespace capstan::python
