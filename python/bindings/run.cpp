#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <deque>

#include "python/bindings/bound_run.hpp"
#include "python/bindings/module.hpp"
#include "run/predictions/text_vectors.hpp"
#include "run/setup/saved_config.hpp"

namespace capstan::python {
namespace {

using FloatRows = nb::ndarray<nb::numpy, float, nb::ndim<2>>;

/// Texts that are computed before the next look whether to go on.
constexpr size_t chunk = 256;

std::string utf8_of(nb::handle text) {
  Py_ssize_t bytes = 0;
  const char* const characters = PyUnicode_AsUTF8AndSize(text.ptr(), &bytes);
  if (characters == nullptr) throw nb::python_error();
  return std::string(characters, static_cast<size_t>(bytes));
}

/// Of a list whose elements are strings or, for texts of several columns, tuples of strings.
std::vector<InputText> input_texts(const nb::list& texts) {
  std::vector<InputText> all;
  all.reserve(texts.size());
  for (const nb::handle given : texts) {
    InputText& text = all.emplace_back();
    text.place = fmt::format("text {}", all.size() - 1);
    if (!nb::isinstance<nb::tuple>(given)) {
      text.text = utf8_of(given);
      text.columns = {text.text};
      continue;
    }
    for (const nb::handle column : given) text.columns.push_back(utf8_of(column));
    for (const std::string& column : text.columns) text.text += (text.text.empty() ? "" : " ") + column;
  }
  return all;
}

/// (rows, columns), from rows that are appended one after the other.
FloatRows as_array(std::vector<float> values, size_t rows, size_t columns) {
  auto* const kept = new std::vector<float>(std::move(values));
  const nb::capsule owner(kept,
                          [](void* values_kept) noexcept { delete static_cast<std::vector<float>*>(values_kept); });
  return FloatRows(kept->data(), {rows, columns}, owner);
}

/// body(some) for pieces of the texts, until the caller cancels.
template <class Body>
void for_chunks(const std::vector<InputText>& texts, const Cancel& cancel, const Body& body) {
  for (size_t begin = 0; begin < texts.size(); begin += chunk) {
    cancel.check();
    const auto first = texts.begin() + static_cast<std::ptrdiff_t>(begin);
    body(std::vector<InputText>(first, first + static_cast<std::ptrdiff_t>(std::min(chunk, texts.size() - begin))));
  }
}

/// rows(texts) for pieces of the texts, until the caller cancels: `columns` floats for each text.
template <class Rows>
FloatRows rows_of(const nb::list& texts, size_t columns, const Rows& rows) {
  const std::vector<InputText> all = input_texts(texts);
  std::vector<float> values = compute([&](const Cancel& cancel) {
    std::vector<float> found;
    found.reserve(all.size() * columns);
    for (size_t begin = 0; begin < all.size(); begin += chunk) {
      cancel.check();
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
      for (const std::vector<float>& row : rows(
               std::vector<InputText>(first, first + static_cast<std::ptrdiff_t>(std::min(chunk, all.size() - begin)))))
        found.insert(found.end(), row.begin(), row.end());
    }
    return found;
  });
  return as_array(std::move(values), all.size(), columns);
}

FloatRows probabilities(const BoundRun& self, const nb::list& texts) {
  return rows_of(texts, self.run.classes().size(), [&](const std::vector<InputText>& some) {
    std::vector<std::vector<float>> rows;
    for (Prediction& prediction : self.run.predict(some)) rows.push_back(std::move(prediction.probabilities));
    return rows;
  });
}

FloatRows decision_values(const BoundRun& self, const nb::list& texts) {
  return rows_of(texts, self.run.classes().size(),
                 [&](const std::vector<InputText>& some) { return self.run.decision_values(some); });
}

FloatRows embed(const BoundRun& self, const nb::list& texts) {
  return rows_of(texts, static_cast<size_t>(self.run.embedding_size()),
                 [&](const std::vector<InputText>& some) { return self.run.embed(some); });
}

std::vector<std::pair<double, int64_t>> score(const BoundRun& self, const nb::list& texts) {
  const std::vector<InputText> all = input_texts(texts);
  return compute([&](const Cancel& cancel) {
    std::vector<std::pair<double, int64_t>> found;
    for_chunks(all, cancel, [&](const std::vector<InputText>& some) {
      for (const TextScore& text : self.run.score(some)) found.emplace_back(text.log_probability, text.tokens);
    });
    return found;
  });
}

nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }

/// Of each text, what fills it and, of each blank, the likeliest tokens with their probabilities.
nb::list fill(const BoundRun& self, const nb::list& texts, const std::string& blank, int64_t top_k) {
  const std::vector<InputText> all = input_texts(texts);
  PredictOptions options;
  options.blank = blank;
  options.top_k = top_k;
  const std::vector<Prediction> found = compute([&](const Cancel&) { return self.run.predict(all, options); });
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

/// Of each text, its completions with their log probabilities, the best first.
nb::list complete_pairs(const BoundRun& self, const nb::list& texts, int64_t best, int64_t beam, double length_penalty,
                        int64_t tokens, const SamplingConfig& sampled) {
  const std::vector<InputText> all = input_texts(texts);
  PredictOptions options;
  options.top_k = best;
  options.completions.beam = beam;
  options.completions.length_penalty = length_penalty;
  options.completions.tokens = tokens;
  options.completions.sampling = sampled;
  const std::vector<Prediction> found = compute([&](const Cancel&) { return self.run.predict(all, options); });
  nb::list completed;
  for (const Prediction& prediction : found) {
    nb::list written;
    for (const Completion& completion : prediction.completions)
      written.append(nb::make_tuple(bytes_of(completion.text), completion.log_probability));
    completed.append(written);
  }
  return completed;
}

/// What a language model writes, piece by piece as it is asked for. It is written ahead on a computing thread.
class Pieces {
 public:
  Pieces(const BoundRun& self, InputText text, ContinuationOptions options) : queue_(std::make_shared<Queue>()) {
    job_ = start([run = self.run, queue = queue_, text = std::move(text), options](const Cancel& cancel) mutable {
      options.on_piece = [&](int64_t sample, std::string_view piece) {
        queue->push(sample, piece);
        return !cancel.requested();
      };
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
  void close() {
    job_->cancel().request();
    const nb::gil_scoped_release released;
    job_->wait();
  }

 private:
  using Piece = std::pair<int64_t, std::string>;

  struct Queue {
    void push(int64_t sample, std::string_view text) {
      const std::lock_guard<std::mutex> lock(mutex);
      pieces.emplace_back(sample, text);
      changed.notify_one();
    }
    /// Waits a moment for a piece; false when there will be none.
    bool wait(std::optional<Piece>& piece) {
      std::unique_lock<std::mutex> lock(mutex);
      changed.wait_for(lock, std::chrono::milliseconds(50), [this] { return ended || !pieces.empty(); });
      if (pieces.empty()) return !ended;
      piece = std::move(pieces.front());
      pieces.pop_front();
      return true;
    }

    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Piece> pieces;
    bool ended = false;
  };
  struct Ended {
    Queue& queue;
    ~Ended() {
      const std::lock_guard<std::mutex> lock(queue.mutex);
      queue.ended = true;
      queue.changed.notify_one();
    }
  };

  std::shared_ptr<Queue> queue_;
  std::shared_ptr<Job> job_;
};

std::unique_ptr<Pieces> generate(const BoundRun& self, nb::handle text, int64_t tokens, int64_t samples,
                                 const SamplingConfig& sampled, const std::vector<std::string>& stop, bool bf16) {
  ContinuationOptions options;
  options.tokens = tokens;
  options.samples = samples;
  options.sampling = sampled;
  options.stop = stop;
  options.weights = bf16 ? DecodeWeights::bf16 : DecodeWeights::float32;
  return std::make_unique<Pieces>(self, utf8_of(text), options);
}

nb::dict evaluate(const BoundRun& self, const std::string& split) {
  const EvalReport report = compute([&](const Cancel&) {
    return self.run.evaluate(split.empty() ? std::nullopt : std::make_optional(split_named(split)));
  });
  nb::dict figures;
  figures["split"] = report.split;
  for (const Figure& figure : report.figures()) figures[figure.name.c_str()] = figure.value;
  return figures;
}

BoundRun open(const std::string& folder, const std::vector<std::string>& overrides) {
  return compute([&](const Cancel&) { return BoundRun(Run::open(folder, overrides)); });
}

/// "classes", "hidden_tokens", "pairs" or "next_token".
const char* task(const BoundRun& self) {
  const ModelFacts facts = facts_of(self.run.config().model);
  switch (facts.predicts) {
    case Predicts::classes:
      return "classes";
    case Predicts::hidden_tokens:
      return "hidden_tokens";
    case Predicts::next_token:
      return facts.takes_pairs && facts_of(self.run.config().data).has_pairs ? "pairs" : "next_token";
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
  nb::class_<Pieces>(module, "Pieces").def("next", &Pieces::next).def("close", &Pieces::close);
  nb::class_<BoundRun>(module, "Run")
      .def_static("open", &open)
      .def_prop_ro("folder", [](const BoundRun& self) { return self.run.saved().folder.string(); })
      .def_prop_ro("task", &task)
      .def_prop_ro("multi_label", [](const BoundRun& self) { return facts_of(self.run.config().data).multi_label(); })
      .def_prop_ro("thresholds", [](const BoundRun& self) { return self.run.saved().thresholds; })
      .def_prop_ro("classes", [](const BoundRun& self) { return self.run.classes(); })
      .def_prop_ro("config", [](const BoundRun& self) { return to_yaml(self.run.config()); })
      .def("probabilities", &probabilities)
      .def("decision_values", &decision_values)
      .def("embed", &embed)
      .def("score", &score)
      .def("fill", &fill)
      .def("complete", &complete_pairs)
      .def("generate", &generate)
      .def("evaluate", &evaluate);
}

}  // namespace capstan::python
