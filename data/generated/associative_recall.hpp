// Multi-query associative recall (MQAR; Arora et al. 2023, arXiv 2312.04927), for language models: pairs of keys and
// values, then every key again, whose value is to be recalled.
//   k1 v1 k2 v2 0 0 k2 0 k1 0 0 0   ->   at k2: v2, at k1: v1
// Generated, so that it needs no file: the source `associative-recall`. Runs save a hash of some sequences, so the
// draws must not change: tests/data/test_associative_recall.cpp and test_data_source.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/config/schema.hpp"
#include "data/batches/batcher.hpp"
#include "data/batches/data_source.hpp"

namespace capstan {

struct AssociativeRecallConfig {
  static constexpr const char* type_name = "associative-recall";
  int64_t vocabulary = 8192;
  int64_t length = 64;
  int64_t pairs = 4;
  int64_t passes = 1;
  bool random_filler = false;
  int64_t train = 100000, valid = 3000, test = 3000;
  double power = 0.01;
  int64_t seed = 0;
};
template <class Fields>
void describe(Fields& f, AssociativeRecallConfig& c) {
  f("vocabulary", c.vocabulary, between(4, 16777216),
    "number of different tokens: 0 is the filler, the rest of the lower half are keys, and the upper half are values; "
    "must be greater than length");
  f("length", c.length, between(4, 16777216),
    "number of tokens per sequence; must be even and at least 2 * pairs * (passes + 1)");
  f("pairs", c.pairs, length_from(1), "number of key-value pairs per sequence");
  f("passes", c.passes, length_from(1),
    "how often the pairs are listed, one list after the other, before the questions");
  f("random_filler", c.random_filler, any(),
    "put random tokens of the whole vocabulary in place of the filler; some of them look like keys and values");
  f("train", c.train, size_from(1), "number of training sequences");
  f("valid", c.valid, size_from(1), "number of validation sequences");
  f("test", c.test, size_from(0), "number of test sequences");
  f("power", c.power, greater(0),
    "where keys are asked: in the g-th slot after the pairs with probability proportional to g^(power - 1); below 1, "
    "most questions come early");
  f("seed", c.seed, at_least(0), "the sequences depend on this seed, not on the seed of the run");
}

void validate(const AssociativeRecallConfig& c, Problems& problems);

/// One sequence. labels: the value where a key is asked for, else ignored_target.
struct RecallExample {
  std::vector<int32_t> tokens, labels;
};

/// Makes the sequences. With D pairs, P passes, N tokens and V the vocabulary: keys are distinct ids of [1, V/2),
/// values of [V/2, V), uniform; the first 2DP tokens are P times k_1 v_1 ... k_D v_D (several passes: Arora et al.
/// 2024, "Just read twice", arXiv 2407.05483). The slots are the places 2DP, 2DP + 2, ..., N - 2; D of them are drawn
/// without replacement, slot g = 0, 1, ... with probability proportional to (g + 1)^(power - 1), and the i-th one drawn
/// gets k_i and asks for v_i. Everything else is 0, or with random_filler uniform in [0, V).
class AssociativeRecall {
 public:
  /// Throws ConfigError for a configuration that contradicts itself.
  explicit AssociativeRecall(const AssociativeRecallConfig& config);

  /// A pure function of (seed, split, index); splits share no random numbers.
  RecallExample example(std::string_view split, int64_t index) const;
  /// Hash of the sizes of training and validation and of some sequences: whether a run still has the data it began
  /// with.
  std::string fingerprint() const;

 private:
  AssociativeRecallConfig config_;
  std::vector<double> slot_weights_;  // by slot: what its probability is proportional to
};

SourceFacts facts(const AssociativeRecallConfig& config);
std::unique_ptr<DataSource> make_source(const AssociativeRecallConfig& config, const SourceInputs& inputs);

}  // namespace capstan
