// ListOps (Nangia and Bowman 2018; the form of Long Range Arena, Tay et al. 2021): nested expressions such as
//   [MAX 2 9 [MIN 4 7 ] 0 ]   ->   9
// whose value, a digit, is the label. Generated, so that it needs no file: the source `listops`. Runs save a
// fingerprint of the examples, so the draws must not change: tests/data/test_listops.cpp and test_data_source.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/config/schema.hpp"
#include "data/batches/data_source.hpp"
#include "data/batches/example_set.hpp"

namespace capstan {

/// The defaults are Long Range Arena's.
struct ListOpsConfig {
  static constexpr const char* type_name = "listops";
  int64_t train = 96000, valid = 2000, test = 2000;
  int64_t min_length = 500, max_length = 2000;
  int64_t max_depth = 10;
  int64_t max_arguments = 10;
  double operator_probability = 0.25;
  int64_t seed = 0;
};
template <class Fields>
void describe(Fields& f, ListOpsConfig& c) {
  f("train", c.train, count_from(1), "number of training examples");
  f("valid", c.valid, count_from(1), "number of validation examples");
  f("test", c.test, count_from(0), "number of test examples");
  f("min_length", c.min_length, length_from(0), "expressions have more tokens than this");
  f("max_length", c.max_length, length_from(2), "expressions have fewer tokens than this");
  f("max_depth", c.max_depth, between(1, 64),
    "largest depth of an expression; the root has depth 1, and at the largest depth there are only digits");
  f("max_arguments", c.max_arguments, between(2, 100), "an operator has from 2 to this many arguments");
  f("operator_probability", c.operator_probability, between(0, 1),
    "probability of an operator instead of a digit, except at the largest depth");
  f("seed", c.seed, at_least(0), "the examples depend on this seed, not on the seed of the run");
}

inline void validate(const ListOpsConfig& c, Problems& problems) {
  if (c.max_length <= c.min_length + 1)
    problems.add("max_length", "there is no length between min_length and max_length");
}

/// The value of an expression. MED is the median, for an even count the mean of the two middle values, truncated; SM is
/// the sum modulo 10. Throws Error naming the place for what is not exactly one expression.
int32_t listops_value(const std::vector<int32_t>& tokens);

/// Draw number `attempt` of a split: an operator with the configured probability at every depth below the last, else a
/// digit; 2 to max_arguments arguments; operators, counts and digits uniform. None when its length is outside
/// (min_length, max_length). A pure function of its arguments.
std::optional<std::vector<int32_t>> listops_draw(const ListOpsConfig& config, std::string_view split, uint64_t attempt);

/// Test, valid and train examples, in this order of drawing; no expression occurs twice, within or across splits, and
/// those of a split do not depend on the sizes of later ones. Throws Error when the settings do not allow
/// that many different expressions.
ClassificationData make_listops(const ListOpsConfig& config);

SourceFacts facts(const ListOpsConfig& config);
std::unique_ptr<DataSource> make_source(const ListOpsConfig& config, const SourceInputs& inputs);

}  // namespace capstan
