// Attacks run/run.hpp: random texts, options and threads, opened runs that change on disk, calls that are stopped.
//
//   cmake --build build/release --target attack_library
//   build/release/bin/attack_library FOLDER [SECONDS] [SEED]     FOLDER: holds run folders, such as
//   tests/fixtures/runs/0.2.0/runs
//
// Whatever the arguments, a call returns or throws a capstan::Error (or std::bad_alloc, or std::invalid_argument for
// options out of range), a TextError names a text that is refused alone as well, and what a call returns does not
// depend on the texts beside it, on other threads, on calls that failed or were stopped before. It prints what does not
// hold; the exit code is then 1.
#include <fmt/core.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "core/base/stop.hpp"
#include "core/io/log.hpp"
#include "core/io/progress.hpp"
#include "core/machine/parallel.hpp"
#include "run/run.hpp"

namespace capstan {
namespace fs = std::filesystem;
namespace {

using Draw = std::mt19937_64;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(),
                 infinity = std::numeric_limits<double>::infinity();

template <class T>
T one_of(Draw& draw, std::vector<T> from) {
  return from[draw() % from.size()];
}

std::atomic<int64_t> calls{0}, refused{0}, stopped{0}, failures{0};
std::mutex print;

void fail(const std::string& what) {
  const std::lock_guard lock(print);
  ++failures;
  std::printf("FAILED %s\n", what.substr(0, 2000).c_str());
  std::fflush(stdout);
}

std::string random_text(Draw& draw) {
  static const std::vector<std::string> words{
      "the", "tape",       "turns",    "<mask>",    "goal",
      "1",   "2\t3",       "\xc3\xa9", "e\xcc\x81", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7",
      "\"",  "[MAX 1 2 ]", "\n",       "\x1b[31m"};
  switch (draw() % 12) {
    case 0:
      return "";
    case 1:
      return std::string(1 + draw() % 4, ' ');
    case 2:
      return std::string(one_of<size_t>(draw, {1, 40, 300, 5000}), one_of<char>(draw, {'a', '1', '\n', '\t'}));
    case 3:
      return std::string("a\0b", 3);
    case 4:
      return "\xff\xfe broken \xc3";
    default:
      break;
  }
  std::string text;
  for (uint64_t i = 1 + draw() % one_of<uint64_t>(draw, {3, 20, 200}); i > 0; --i) text += one_of(draw, words) + " ";
  return text;
}

std::vector<InputText> random_texts(Draw& draw) {
  std::vector<InputText> texts;
  for (uint64_t i = draw() % one_of<uint64_t>(draw, {2, 4, 12}); i > 0; --i) {
    InputText text(random_text(draw));
    if (draw() % 4 == 0) text.label = random_text(draw);
    if (draw() % 6 == 0) text.columns.push_back(random_text(draw));
    if (draw() % 12 == 0) text.columns.clear();
    texts.push_back(text);
  }
  return texts;
}

template <class T>
void strange(Draw& draw, T& value, std::vector<T> values) {
  if (draw() % 4 == 0) value = one_of(draw, std::move(values));
}

SamplingConfig random_sampling(Draw& draw) {
  SamplingConfig c;
  const std::vector<double> shares{0, 1, 0.5, -1, 2, 1e-300, 1e300, not_a_number, infinity};
  strange(draw, c.temperature, shares);
  strange(draw, c.top_p, shares);
  strange(draw, c.min_p, shares);
  strange(draw, c.repetition_penalty, shares);
  strange<int64_t>(draw, c.top_k, {0, 1, 5, -1, INT64_MAX, INT64_MIN});
  strange<int64_t>(draw, c.seed, {0, -1, INT64_MAX, INT64_MIN});
  return c;
}

PairOptions random_completions(Draw& draw) {
  PairOptions c;
  if (draw() % 2 == 0) c.sampling = random_sampling(draw);
  strange<int64_t>(draw, c.beam, {0, 2, 5, -1, 1000, INT64_MAX});
  strange<double>(draw, c.length_penalty, {1, -1, 1e300, not_a_number, infinity});
  strange<int64_t>(draw, c.best, {0, 2, -1, 100, INT64_MAX});
  strange<int64_t>(draw, c.tokens, {1, 7, -1, INT64_MAX, INT64_MIN});
  strange<int64_t>(draw, c.batch, {0, 1, 3, -1, INT64_MAX});
  return c;
}

PredictOptions random_predictions(Draw& draw) {
  PredictOptions o;
  strange<int64_t>(draw, o.batch_size, {1, 3, 0, -1, INT64_MAX, INT64_MIN});
  strange<double>(draw, o.threshold, {0.5, 1, -1, 2, not_a_number, infinity});
  strange<std::string>(draw, o.blank, {"", " ", "a", "[MASK]", "\xff", std::string("\0", 1)});
  strange<int64_t>(draw, o.top_k, {0, 2, 5, -1, 100000, INT64_MAX});
  strange<int64_t>(draw, o.first, {1, -1, INT64_MAX, INT64_MIN});
  if (draw() % 3 == 0) o.completions = random_completions(draw);
  return o;
}

CompletionOptions random_texts(Draw& draw) {
  CompletionOptions o;
  o.tokens = one_of<int64_t>(draw, {0, 1, 20, 60});
  strange<int64_t>(draw, o.samples, {0, 2, 5, -1});
  if (draw() % 2 == 0) o.sampling = random_sampling(draw);
  o.slide = draw() % 2 == 0;
  if (draw() % 3 == 0) o.stop = {random_text(draw), one_of<std::string>(draw, {"", "e", " ", "\xff"})};
  if (draw() % 4 == 0) o.weights = DecodeWeights::bf16;
  return o;
}

/// What a call says, in words that two calls can be compared by.
using Call = std::function<std::string(const Run& run, const std::vector<InputText>& texts)>;

std::string words(const std::vector<float>& row) {
  std::string all;
  for (const float value : row) all += fmt::format("{:a} ", value);
  return all;
}

struct Attack {
  std::string name;
  Call call;
  bool each_alone = true;  // a text's answer does not depend on the texts beside it
};

std::string words(const Prediction& p, bool bits) {
  std::string all = p.filled + "|";
  for (const Guess& guess : p.labels) all += guess.text + " ";
  for (const auto& blank : p.blanks) all += fmt::format("{} ", blank.size());
  for (const PairCompletion& c : p.completions)
    all += c.text + (bits ? fmt::format(" {:a}", c.log_probability) : "") + "; ";
  return all + (bits ? words(p.probabilities) : "");
}

Attack random_attack(Draw& draw) {
  switch (draw() % 6) {
    case 0:
      return {"score", [](const Run& run, const auto& texts) {
                std::string all;
                for (const TextScore& s : run.score(texts))
                  all += fmt::format("{:a} {}\n", s.log_probability, s.tokens);
                return all;
              }};
    case 1:
      return {"embed",
              [](const Run& run, const auto& texts) {
                std::string all;
                for (const auto& row : run.embed(texts)) all += words(row) + "\n";
                return all;
              },
              false};
    case 2:
      return {"decision_values",
              [](const Run& run, const auto& texts) {
                std::string all;
                for (const auto& row : run.decision_values(texts)) all += words(row) + "\n";
                return all;
              },
              false};
    case 3:
      return {"generate", [options = random_texts(draw)](const Run& run, const auto& texts) {
                std::string all;
                for (const InputText& text : texts) {
                  for (const Completion& c : run.generate(text, options)) all += c.text + ";";
                  all += "\n";
                }
                return all;
              }};
    default: {
      PredictOptions options = random_predictions(draw);
      const bool samples = options.completions.sampling.temperature != 0;  // a completion's random numbers: its place
      return {"predict",
              [options](const Run& run, const auto& texts) {
                std::string all;
                for (const Prediction& p : run.predict(texts, options)) all += words(p, true) + "\n";
                return all;
              },
              !samples && options.batch_size == 1};
    }
  }
}

struct Answer {
  std::string text, error;
  std::optional<size_t> index;  // of a TextError
  bool stopped = false;
};

Answer ask(const std::string& what, const Run& run, const Call& call, const std::vector<InputText>& texts) {
  ++calls;
  Answer answer;
  const Stopwatch watch;
  try {
    answer.text = call(run, texts);
  } catch (const Stopped&) {
    answer.stopped = true;
  } catch (const TextError& error) {
    answer.error = error.what();
    answer.index = error.index();
  } catch (const Error& error) {
    answer.error = error.what();
  } catch (const std::bad_alloc& error) {
    answer.error = error.what();
  } catch (const std::invalid_argument& error) {
    answer.error = error.what();
  } catch (const std::exception& error) {
    fail(what + ": throws " + error.what());
    answer.error = error.what();
  }
  if (watch.seconds() > 120) fail(fmt::format("{}: takes {:.0f} s", what, watch.seconds()));
  if (!answer.error.empty()) ++refused;
  return answer;
}

std::string described(const std::string& run, const std::string& name, const std::vector<InputText>& texts) {
  std::string all = run + " " + name + ":";
  for (const InputText& text : texts)
    all += fmt::format(" [{}|{}|{}]", text.text.substr(0, 60), text.columns.size(), text.label.substr(0, 20));
  return all;
}

void check_alone(const std::string& what, const Run& run, const Attack& attack, const std::vector<InputText>& texts,
                 const Answer& all) {
  if (all.index && *all.index >= texts.size()) return fail(what + ": the TextError names no text: " + all.error);
  if (all.index) {
    const Answer alone = ask(what, run, attack.call, {texts[*all.index]});
    if (alone.error.empty())
      fail(fmt::format("{}: text {} is refused ({}), but not alone", what, *all.index, all.error));
    return;
  }
  if (!all.error.empty() || !attack.each_alone) return;
  std::string joined;
  for (const InputText& text : texts) joined += ask(what, run, attack.call, {text}).text;
  if (joined != all.text) fail(what + ": together \n" + all.text + "alone\n" + joined);
}

/// One round: the same calls by several threads, by one, stopped, and again.
void attack(const std::string& name, const Run& run, Draw& draw) {
  const Attack chosen = random_attack(draw);
  const std::vector<InputText> texts = random_texts(draw);
  const std::string what = described(name, chosen.name, texts);
  const Answer first = ask(what, run, chosen.call, texts);
  const auto same = [&](const Answer& other, const char* how) {
    if (other.text != first.text || other.error != first.error)
      fail(fmt::format("{}: {}:\n{}{}\ninstead of\n{}{}", what, how, other.text, other.error, first.text, first.error));
  };
  switch (draw() % 4) {
    case 0: {
      std::vector<std::thread> threads;
      for (int i = 0; i < 3; ++i)
        threads.emplace_back([&] { same(ask(what, run, chosen.call, texts), "beside other threads"); });
      for (std::thread& thread : threads) thread.join();
      break;
    }
    case 1: {
      std::atomic<int64_t> left{static_cast<int64_t>(draw() % one_of<uint64_t>(draw, {5, 100, 2000}))};
      const StopPoll poll = [&] { return --left < 0; };
      {
        const StopScope scope(&poll);
        const Answer broken = ask(what, run, chosen.call, texts);
        if (broken.stopped)
          ++stopped;
        else
          same(broken, "that might have been stopped");
      }
      same(ask(what, run, chosen.call, texts), "after one that was stopped");
      break;
    }
    default:
      check_alone(what, run, chosen, texts, first);
      same(ask(what, run, chosen.call, texts), "again");
  }
}

/// The splits of a run's data, with strange overrides; the run's files are those of a copy that is changed meanwhile.
void attack_files(const fs::path& folder, const Run& run, const fs::path& place, Draw& draw) {
  const fs::path copy = place / fmt::format("copy-{}", draw());
  fs::copy(folder, copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(copy))
    if (entry.is_regular_file() && !entry.is_symlink()) files.push_back(entry.path());
  const std::vector<InputText> texts{InputText("the tape turns")};
  const Call open = [&](const Run&, const auto&) {
    const std::vector<std::string> overrides = one_of<std::vector<std::string>>(draw, {{},
                                                                                       {},
                                                                                       {},
                                                                                       {"data.test=[missing]"},
                                                                                       {"data=1"},
                                                                                       {"model.width=3"},
                                                                                       {"nothing"},
                                                                                       {"data.test=[/dev/zero]"},
                                                                                       {"train.lr=.inf"}});
    const Run other = Run::open(copy, overrides);
    return ask(
               "opened", other, [](const Run& r, const auto& t) { return words(r.predict(t).front(), true); }, texts)
               .text +
           fmt::format("{}", other.classes().size());
  };
  std::thread beside([&] {
    Draw own(draw());
    for (int i = 0; i < 3; ++i) attack(folder.filename().string(), run, own);
  });
  const fs::path victim = one_of(draw, files);
  const auto size = static_cast<int64_t>(fs::file_size(victim));
  std::string changed = victim.filename().string();
  if (std::FILE* const file = std::fopen(victim.c_str(), "r+b"); file != nullptr) {
    if (draw() % 2 == 0) {
      std::fseek(file, static_cast<long>(draw() % static_cast<uint64_t>(std::max<int64_t>(size, 1))), SEEK_SET);
      std::fputc(static_cast<int>(draw() % 256), file);
      changed += " (a byte)";
    }
    std::fclose(file);
    if (changed == victim.filename()) fs::resize_file(victim, draw() % static_cast<uint64_t>(size + 1));
  }
  ask(fmt::format("open {} with changed {}", folder.string(), changed), run, open, texts);
  beside.join();
  const Call evaluate = [&](const Run& r, const auto&) {
    const auto split = one_of<std::optional<Split>>(draw, {std::nullopt, Split::valid, Split::train, Split::test});
    std::string all;
    for (const Figure& figure : r.evaluate(split, draw() % 3 == 0 ? random_completions(draw) : PairOptions()).figures())
      all += fmt::format("{} {:a}\n", figure.name, figure.value);
    return all;
  };
  ask("evaluate " + folder.string(), run, evaluate, texts);
  fs::remove_all(copy);
}

int attack_all(const fs::path& folder, double seconds, uint64_t seed) {
  set_log_sink([](LogLevel, std::string_view) {});
  std::map<std::string, Run> runs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    try {
      runs.emplace(entry.path().filename().string(), Run::open(entry.path()));
    } catch (const Error& error) {
      std::printf("%s\n", error.what());
    }
  }
  if (runs.empty()) return 2;
  set_threads(2);
  const fs::path place = fs::temp_directory_path() / fmt::format("capstan-attack-{}", seed);
  fs::create_directories(place);
  Draw draw(seed);
  int64_t rounds = 0;
  for (const Stopwatch watch; watch.seconds() < seconds; ++rounds) {
    const auto chosen = std::next(runs.begin(), static_cast<std::ptrdiff_t>(draw() % runs.size()));
    if (rounds % 10 == 9)
      attack_files(folder / chosen->first, chosen->second, place, draw);
    else
      attack(chosen->first, chosen->second, draw);
  }
  fs::remove_all(place);
  std::printf("%lld rounds on %zu runs: %lld calls, %lld refused, %lld stopped; %lld failures\n",
              static_cast<long long>(rounds), runs.size(), static_cast<long long>(calls),
              static_cast<long long>(refused), static_cast<long long>(stopped), static_cast<long long>(failures));
  return failures > 0 ? 1 : 0;
}

}  // namespace
}  // namespace capstan

int main(int argc, char** argv) {
  if (argc < 2) {
    std::puts("attack_library FOLDER [SECONDS] [SEED]");
    return 2;
  }
  return capstan::attack_all(argv[1], argc > 2 ? std::atof(argv[2]) : 60,
                             argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
}
