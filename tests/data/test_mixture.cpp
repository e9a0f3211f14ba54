// Several sources of text with weights: whose turn it is, which windows that gives, and what the files must be.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "data/text/text_source.hpp"
#include "data/text/text_windows.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

const std::vector<std::vector<double>> some_weights = {{1},
                                                       {1, 1},
                                                       {3, 1},
                                                       {1, 3},
                                                       {0.7, 0.2, 0.1},
                                                       {1, 1, 1, 1, 1},
                                                       {1e300, 1e300, 2e300},
                                                       {5, 1e-3, 2},
                                                       {1e-3, 1e-3, 1e-3, 9},
                                                       {1, 2, 3, 4, 5, 6, 7}};

/// Token i of the corpus is i.
TextCorpus corpus_of(const std::vector<int64_t>& sizes, const std::vector<double>& weights) {
  TextCorpus corpus;
  int64_t begin = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    corpus.sources.push_back({"source " + std::to_string(i), weights[i], begin, begin + sizes[i]});
    begin += sizes[i];
  }
  std::vector<int32_t> tokens(static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), int64_t{0})));
  std::iota(tokens.begin(), tokens.end(), 0);
  corpus.tokens.append(tokens);
  return corpus;
}

size_t source_at(const TextCorpus& corpus, int64_t token) {
  size_t source = 0;
  while (corpus.sources[source].end <= token) ++source;
  return source;
}

/// The window at a place of the order of a stretch of text, as the header defines it.
int64_t begin_in_stretch(int64_t tokens, const TrainingWindows::Options& options, int64_t epoch, int64_t place,
                         const std::string& name) {
  const int64_t length = options.sequence_length, windows = std::max<int64_t>(1, (tokens - 1) / length - 1);
  const auto number = static_cast<uint64_t>(epoch);
  if (options.rule == WindowRule::random) {
    RandomStream stream(random_key(options.seed, "windows of epoch " + std::to_string(epoch) + name),
                        static_cast<uint64_t>(place) << 16);
    return static_cast<int64_t>(stream.below(static_cast<uint64_t>(tokens - length)));
  }
  const auto offsets = static_cast<uint64_t>(std::min(length, tokens - windows * length));
  RandomStream stream(random_key(options.seed, "offset of windows" + name), number << 16);
  const uint64_t window = permuted(static_cast<uint64_t>(place), static_cast<uint64_t>(windows),
                                   random_key(options.seed, "order of windows" + name), number);
  return static_cast<int64_t>(stream.below(offsets) + window * static_cast<uint64_t>(length));
}

TextSourceConfig text_config(std::vector<std::string> train, std::vector<double> weights) {
  TextSourceConfig config;
  config.train = std::move(train);
  config.weights = std::move(weights);
  config.sequence_length = 8;
  return config;
}

}  // namespace

TEST_CASE("shares are exact over an epoch, and even within it") {
  for (const auto& weights : some_weights)
    for (const int64_t places : {1, 2, 7, 64, 1000, 9973}) {
      const Mixture mixture(weights, places);
      // Long double, scaled: an oracle that does not round as the code does.
      long double total = 0;
      for (const double weight : weights) total += static_cast<long double>(weight);
      std::vector<int64_t> dealt(weights.size(), 0);
      double farthest = 0;
      for (int64_t place = 0; place < places; ++place) {
        const Mixture::Turn turn = mixture.at(place);
        REQUIRE(turn.source < weights.size());
        CHECK(turn.number == dealt[turn.source]);
        ++dealt[turn.source];
        for (size_t i = 0; i < weights.size(); ++i)
          farthest =
              std::max(farthest, std::abs(static_cast<double>(dealt[i]) - static_cast<double>(place + 1) *
                                                                              static_cast<double>(mixture.count(i)) /
                                                                              static_cast<double>(places)));
      }
      CHECK(farthest < std::max<double>(1, static_cast<double>(weights.size()) - 1));
      for (size_t i = 0; i < weights.size(); ++i) {
        CHECK(dealt[i] == mixture.count(i));
        const auto quota = static_cast<double>(static_cast<long double>(weights[i]) / total * places);
        CHECK(std::abs(static_cast<double>(dealt[i]) - quota) < 1);
      }
      CHECK(std::accumulate(dealt.begin(), dealt.end(), int64_t{0}) == places);
    }
  // 3 : 1 takes turns, it does not come in blocks.
  const Mixture mixture({3, 1}, 12);
  std::string order;
  for (int64_t place = 0; place < 12; ++place) order += static_cast<char>('a' + mixture.at(place).source);
  CHECK(order == "baaabaaabaaa");
}

TEST_CASE("a mixture far larger than any epoch neither overflows nor loses a place") {
  constexpr int64_t places = std::numeric_limits<int32_t>::max();
  const Mixture mixture({2, 1, 1e-6}, places);
  CHECK(mixture.count(0) + mixture.count(1) + mixture.count(2) == places);
  for (const int64_t place : {int64_t{0}, places / 2, places - 1}) {
    const Mixture::Turn turn = mixture.at(place);
    CHECK(turn.number <= mixture.count(turn.source));
    CHECK(std::abs(static_cast<double>(turn.number) / static_cast<double>(mixture.count(turn.source)) -
                   static_cast<double>(place) / places) < 1e-6 + 1 / static_cast<double>(mixture.count(turn.source)));
  }
}

TEST_CASE("wrong weights and places are refused") {
  for (const auto& weights :
       std::vector<std::vector<double>>{{}, {1, 0}, {-1}, {std::nan("")}, {std::numeric_limits<double>::infinity()}})
    CHECK_THROWS_AS(Mixture(weights, 4), std::invalid_argument);
  CHECK_THROWS_AS(Mixture({1}, -1), std::invalid_argument);
  CHECK_THROWS_AS(Mixture({1, 2}, 4).at(4), std::invalid_argument);
  CHECK_THROWS_AS(Mixture({1, 2}, 4).at(-1), std::invalid_argument);
}

TEST_CASE("without weights, and with a single one, the windows are those of always") {
  const TextCorpus whole = corpus_of({1003}, {}), weighted = corpus_of({1003}, {0.3});
  for (const WindowRule rule : {WindowRule::contiguous, WindowRule::random}) {
    const TrainingWindows::Options options{16, rule, 3};
    const TrainingWindows plain(whole, options, {4, 0}), single(weighted, options, {4, 0});
    CHECK(plain.examples_per_epoch() == 61);
    CHECK(single.examples_per_epoch() == 61);
    for (const int64_t epoch : {0, 1, 7})
      for (int64_t place = 0; place < 61; ++place) {
        CHECK(plain.window_begin(epoch, place) == begin_in_stretch(1003, options, epoch, place, ""));
        CHECK(single.window_begin(epoch, place) == plain.window_begin(epoch, place));
      }
  }
}

TEST_CASE("each source walks through its own epochs, and no window reaches into another source") {
  const std::vector<int64_t> sizes = {400, 2003, 130};
  const TextCorpus corpus = corpus_of(sizes, {2, 1, 1});
  for (const WindowRule rule : {WindowRule::contiguous, WindowRule::random}) {
    const TrainingWindows::Options options{16, rule, 3};
    const TrainingWindows windows(corpus, options, {4, 0});
    const int64_t per_epoch = windows.examples_per_epoch();
    CHECK(per_epoch == 23 + 124 + 7);
    CHECK(windows.share(0).windows == 77);
    CHECK(windows.share(0).passes == doctest::Approx(77.0 / 23));
    CHECK(windows.share(1).windows + windows.share(2).windows == 77);
    std::vector<int64_t> drawn(3, 0);
    for (int64_t epoch = 0; epoch < 5; ++epoch)
      for (int64_t place = 0; place < per_epoch; ++place) {
        const int64_t begin = windows.window_begin(epoch, place);
        const size_t source = source_at(corpus, begin);
        CHECK(begin + 16 < corpus.sources[source].end);
        const int64_t own_windows = std::max<int64_t>(1, (sizes[source] - 1) / 16 - 1);
        CHECK(begin - corpus.sources[source].begin ==
              begin_in_stretch(sizes[source], options, drawn[source] / own_windows, drawn[source] % own_windows,
                               source == 0 ? "" : " of source " + std::to_string(source)));
        ++drawn[source];
      }
    for (size_t i = 0; i < 3; ++i) CHECK(drawn[i] == 5 * windows.share(i).windows);
  }
}

TEST_CASE("a source that is passed through twice an epoch shows every window twice") {
  const TextCorpus corpus = corpus_of({16 * 11 + 1, 16 * 31 + 1}, {1, 1});  // 10 and 30 windows
  const TrainingWindows windows(corpus, {16, WindowRule::contiguous, 1}, {4, 0});
  std::map<int64_t, int> seen;  // number of the window in its source
  for (int64_t place = 0; place < windows.examples_per_epoch(); ++place) {
    const int64_t begin = windows.window_begin(0, place);
    if (begin < corpus.sources[0].end) ++seen[begin / 16];
  }
  CHECK(windows.share(0).passes == 2);
  CHECK(windows.share(1).passes == doctest::Approx(2.0 / 3));
  CHECK(seen.size() == 10);
  for (const auto& entry : seen) CHECK(entry.second == 2);
}

TEST_CASE("mixed batches are a pure function of seed, epoch and index, with the next token as label") {
  const TextCorpus corpus = corpus_of({500, 900}, {3, 1});
  const TrainingWindows::Options options{16, WindowRule::contiguous, 5};
  const TrainingWindows first(corpus, options, {4, 0}), second(corpus, options, {4, 0});
  const Batch wanted = first.batch(7, 11);
  for (int64_t i = 0; i < 5; ++i) second.batch(i, 3 * i);
  const Batch again = second.batch(7, 11);
  CHECK(again.tokens.to_vector() == wanted.tokens.to_vector());
  CHECK(again.labels.to_vector() == wanted.labels.to_vector());
  CHECK(wanted.examples.to_vector() == std::vector<int32_t>{44, 45, 46, 47});
  size_t from_first = 0;
  for (int64_t i = 0; i < wanted.tokens.size(); ++i) CHECK(wanted.labels[i] == wanted.tokens[i] + 1);
  for (int64_t row = 0; row < 4; ++row) from_first += wanted.tokens[16 * row] < 500;
  CHECK(from_first == 3);
}

TEST_CASE("the files of a source lie together, in the order of data.train") {
  const TemporaryFolder folder;
  folder.write("b/1", "bbbbbbbbbbbbbbbbbbbb");
  folder.write("b/2", "BBBBBBBBBB");
  folder.write("a/1", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
  const std::vector<std::string> train = {folder.path("b"), folder.path("a/*")};
  const TextData data = loaded(text_config(train, {3, 1}));
  const auto text = [&](const TextCorpus& corpus) { return data.tokenizer->decode(corpus.tokens.to_vector()); };
  CHECK(text(data.train) == std::string(18, 'b') + std::string(9, 'B') + std::string(36, 'a'));
  CHECK(text(data.valid) == "bbBaaaa");  // the tail of every file of every source, as without weights
  REQUIRE(data.train.sources.size() == 2);
  CHECK(data.train.sources[0].name == train[0]);
  CHECK(data.train.sources[0].weight == 3);
  CHECK(data.train.sources[0].begin == 0);
  CHECK(data.train.sources[0].end == 27);
  CHECK(data.train.sources[1].begin == 27);
  CHECK(data.train.sources[1].end == 63);
  CHECK(data.valid.sources.empty());
  const TextData plain = loaded(text_config(train, {}));
  CHECK(text(plain.train) == std::string(36, 'a') + std::string(18, 'b') + std::string(9, 'B'));
  CHECK(plain.train.sources.empty());
}

TEST_CASE("weights that do not fit are named with their key and the remedy") {
  const TemporaryFolder folder;
  const std::string a = folder.write("a/text", std::string(400, 'a')),
                    b = folder.write("b/text", std::string(400, 'b')), few = folder.write("few", "little"),
                    link = folder.path("a/../a/text");
  struct Row {
    const char* what;
    std::vector<std::string> train;
    std::vector<double> weights;
    std::string message;
  };
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<Row> rows = {
      {"too few", {a, b}, {1}, "data.weights: there are 1 weights for 2 entries of train; give one for each, or none"},
      {"too many", {a}, {1, 2}, "data.weights: there are 2 weights for 1 entries"},
      {"zero", {a, b}, {1, 0}, "data.weights.1: must be a number greater than 0, not 0; to leave text out"},
      {"negative", {a, b}, {-2, 1}, "data.weights.0: must be a number greater than 0, not -2"},
      {"not a number", {a, b}, {1, std::nan("")}, "data.weights.1: must be a number greater than 0, not nan"},
      {"infinite", {a, b}, {1, infinity}, "data.weights.1: must be a number greater than 0, not inf"},
      {"the same file", {a, folder.path("a")}, {1, 1}, "belongs to two sources, " + a + " and " + folder.path("a")},
      {"the same file by another path", {a, link}, {1, 1}, "remove it from one of them"},
      {"short",
       {a, few},
       {1, 1},
       "data: the training text of data.train.1 (" + few + ") has 5 tokens, but one example needs 9"},
      {"nothing but a trace", {a, b}, {1, 1e-9}, "data.weights.1: 1e-09 gives " + b + " none of the 86 windows"}};
  for (const Row& row : rows) {
    const TextSourceConfig config = text_config(row.train, row.weights);
    const std::string message = message_of<Error>([&] {
      const TextData data = loaded(config);
      TrainingWindows(data.train, {config.sequence_length, config.windows, 1}, {});
    });
    CHECK_MESSAGE(contains(message, row.message), row.what, ": ", message);
  }
}
