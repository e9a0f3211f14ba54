// How much the examples of a class count while training: for text classifiers and for train/linear.
// tests/models/test_classifier.cpp has the weights by hand.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/config/schema.hpp"

namespace capstan {

/// Factors of the loss of an example of class c while training. Equal: 1. Balanced: N / (C n_c), where n_c of the N
/// training examples are in class c of C. Listed: a weight given for each class.
struct EqualClasses {
  static constexpr const char* type_name = "equal";
};
template <class Fields>
void describe(Fields&, EqualClasses&) {}
struct BalancedClasses {
  static constexpr const char* type_name = "balanced";
};
template <class Fields>
void describe(Fields&, BalancedClasses&) {}
struct ListedWeights {
  static constexpr const char* type_name = "listed";
  std::vector<double> weights;
};
template <class Fields>
void describe(Fields& f, ListedWeights& c) {
  f("weights", c.weights, not_empty(), "one non-negative weight per class, in the order of the classes");
}
inline void validate(const ListedWeights& c, Problems& problems) {
  for (size_t i = 0; i < c.weights.size(); ++i)
    if (!(c.weights[i] >= 0)) problems.add("weights." + std::to_string(i), "a weight must not be negative");
}
using ClassWeights = std::variant<EqualClasses, BalancedClasses, ListedWeights>;

/// The weight of each class; an empty vector where all are equal. Balanced: a class without examples is left out of the
/// balance; multi-label, the number of texts without a label for each text with it. Throws ConfigError when weights are
/// listed for another number of classes.
std::vector<double> weights_of(const ClassWeights& config, const std::vector<int64_t>& class_counts, int64_t examples,
                               bool multi_label);

/// What to add to the logits of calibrated probabilities to get the logits of weighted examples: the logarithms of the
/// weights, 0 for a weight of 0.
std::vector<double> log_weights_of(const std::vector<double>& class_weights);

}  // namespace capstan
