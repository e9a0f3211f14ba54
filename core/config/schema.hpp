// How a configuration struct describes its fields. Each struct has one describe() next to it, the only place where a
// field's name, limits and help text are written:
//
//   struct SgdConfig { double lr = 0.1; double momentum = 0.9; };
//   template <class Fields> void describe(Fields& f, SgdConfig& c) {
//     f("lr", c.lr, greater(0), "peak learning rate");
//     f("momentum", c.momentum, between(0, 1), "weight of the previous step");
//   }
//
// Visitors over describe() read YAML, apply overrides, print, and document (run/yaml); tests/run/yaml/ does each with
// every kind of field. A field may be bool, int64_t, double, std::string, an enum with enum_names(), std::optional or
// std::vector of those, another described struct, a vector of described structs, or a std::variant of described
// structs, each with a static constexpr const char* `type_name` (YAML: {type: NAME, ...}, or just NAME for the
// defaults). An alternative that stands for several types has a static type_names() that lists them, a constructor from
// one of the names, and the name as its member `type_name`. A field whose default breaks its own constraint (an empty
// path that is not_empty()) is required. Rules that span several fields are written in an optional
//   void validate(const SgdConfig& c, Problems& problems);
// next to describe(), which is called after all fields of the struct were read without error.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/error.hpp"

namespace capstan {

/// What a value must satisfy; for strings and lists the limits are those of their length.
struct Constraint {
  std::optional<double> minimum = std::nullopt, maximum = std::nullopt;
  bool above_minimum = false;  // the minimum itself is excluded
  bool below_maximum = false;
  bool not_empty = false;
  std::vector<std::string> choices = {};
};

inline Constraint any() { return {}; }
inline Constraint at_least(double minimum) { return {minimum}; }
/// A whole number of steps, examples or the like. Its limit is beyond every use, and sums of such numbers cannot
/// overflow.
inline Constraint count_from(double minimum) { return {minimum, 1e12}; }
/// A whole number that decides sizes and has no smaller natural limit: the product of two cannot overflow.
inline Constraint size_from(double minimum) { return {minimum, 1e9}; }
/// Tokens of a text, a window or a table of positions.
inline Constraint length_from(double minimum) { return {minimum, 16777216}; }
/// Features, heads and the like: as the model's width.
inline Constraint width_from(double minimum) { return {minimum, 65536}; }
/// minimum < x <= maximum.
inline Constraint greater_up_to(double minimum, double maximum) { return {minimum, maximum, true}; }
inline Constraint greater(double minimum) { return {minimum, std::nullopt, true}; }
inline Constraint between(double minimum, double maximum) { return {minimum, maximum}; }
/// minimum <= x < maximum, for instance a probability that must be below 1.
inline Constraint between_below(double minimum, double maximum) { return {minimum, maximum, false, true}; }
inline Constraint not_empty() { return {std::nullopt, std::nullopt, false, false, true}; }
inline Constraint one_of(std::vector<std::string> choices) {
  return {std::nullopt, std::nullopt, false, false, false, std::move(choices)};
}

/// Receives what validate() finds. `path` is relative to the validated struct: "warmup_steps", "layers.0.width", or ""
/// for the struct itself.
class Problems {
 public:
  virtual ~Problems() = default;
  virtual void add(const std::string& path, const std::string& message) = 0;
};

/// Problems as one text with a line "section.path: message" for each: for configurations that were not read from YAML.
class ProblemText final : public Problems {
 public:
  explicit ProblemText(std::string section) : section_(std::move(section)) {}
  void add(const std::string& path, const std::string& message) override {
    text_ += (text_.empty() ? "" : "\n") + section_ + (path.empty() ? "" : "." + path) + ": " + message;
  }
  /// The problems so far, one per line; empty if there are none.
  const std::string& text() const { return text_; }

 private:
  std::string section_, text_;
};

/// Whether there is a `void validate(const T&, Problems&)` for a struct.
template <class T, class = void>
struct HasValidate : std::false_type {};
template <class T>
struct HasValidate<T, std::void_t<decltype(validate(std::declval<const T&>(), std::declval<Problems&>()))>>
    : std::true_type {};

/// Throws ConfigError with all that validate() finds; for configurations that were not read from YAML.
template <class Config>
void check_valid(const char* section, const Config& config) {
  ProblemText problems(section);
  validate(config, problems);
  if (!problems.text().empty()) throw ConfigError(problems.text());
}

/// One spelling of one enumerator; enum_names(E) returns all of them:
///   enum class Pooling { mean, cls };
///   inline std::vector<EnumName<Pooling>> enum_names(Pooling) { return {{Pooling::mean, "mean"}, {Pooling::cls,
///   "cls"}}; }
template <class E>
struct EnumName {
  E value;
  const char* name;
};

/// The spelling of an enumerator.
template <class E>
std::string enum_name(E value) {
  for (const auto& entry : enum_names(value))
    if (entry.value == value) return entry.name;
  return "?";
}

/// The enumerator that is spelt so; nothing if there is none.
template <class E>
std::optional<E> enum_value(const std::string& name) {
  for (const auto& entry : enum_names(E{}))
    if (name == entry.name) return entry.value;
  return std::nullopt;
}

}  // namespace capstan
