// Strings of random bits; the class is the parity of their sum.
#pragma once

#include <memory>

#include "core/config/schema.hpp"
#include "data/batches/data_source.hpp"

namespace capstan {

struct ParityConfig {
  static constexpr const char* type_name = "parity";
  int64_t train = 1000, valid = 100, test = 100;
  int64_t length = 16;
  int64_t seed = 0;
};
template <class Fields>
void describe(Fields& f, ParityConfig& c) {
  f("train", c.train, at_least(1), "number of training examples");
  f("valid", c.valid, at_least(1), "number of validation examples");
  f("test", c.test, at_least(0), "number of test examples");
  f("length", c.length, at_least(1), "number of bits per example");
  f("seed", c.seed, at_least(0), "the examples are a function of this seed");
}

SourceFacts facts(const ParityConfig& config);
std::unique_ptr<DataSource> make_source(const ParityConfig& config, const SourceInputs& inputs);

}  // namespace capstan
