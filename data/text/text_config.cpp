// Rules of the source `text` that span several of its keys: weights, held-out shares, overlap. Single keys are checked
// by describe(). tests/data/test_described.cpp.
#include "data/text/text_config.hpp"

#include <cmath>

#include "core/base/error.hpp"

namespace capstan {
namespace {

void check_weights(const TextSourceConfig& c, Problems& problems) {
  if (c.weights.empty()) return;
  if (c.weights.size() != c.train.size())
    problems.add("weights", fmt::format("there are {} weights for {} entries of train; give one for each, or none",
                                        c.weights.size(), c.train.size()));
  for (size_t i = 0; i < c.weights.size(); ++i)
    if (!(c.weights[i] > 0) || !std::isfinite(c.weights[i]))
      problems.add(
          fmt::format("weights.{}", i),
          fmt::format("must be a number greater than 0, not {}; to leave text out, remove its entry from train",
                      c.weights[i]));
}

void check_split(const TextSourceConfig& c, Problems& problems) {
  if (c.valid_share() + c.test_share() > 0 && c.split == TextSplit::tail &&
      std::holds_alternative<FileDocumentsConfig>(c.documents))
    problems.add("split",
                 "tail would cut every file in two, but documents: file makes each one document; use split: "
                 "by-file, or name files for valid and test");
}

}  // namespace

void validate(const TextSourceConfig& c, Problems& problems) {
  if (c.valid_share() + c.test_share() >= 1)
    problems.add("valid_fraction", "together with test_fraction it leaves no training text");
  if (c.overlap >= c.sequence_length)
    problems.add("overlap", fmt::format("must be less than sequence_length ({})", c.sequence_length));
  check_weights(c, problems);
  check_split(c, problems);
}

}  // namespace capstan
