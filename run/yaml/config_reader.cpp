// Checks values against their types and constraints, and collects all problems. tests/run/yaml/test_config_errors.cpp
// holds the messages.
#include "run/yaml/config_reader.hpp"

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/strings/nearest.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

bool has_range(const Constraint& constraint) { return constraint.minimum || constraint.maximum; }

/// "a number (greater than 0)".
std::string with_limits(const std::string& what, const std::string& limits) {
  return limits.empty() ? what : fmt::format("{} ({})", what, limits);
}

bool is_bare_scalar(const ConfigNode& node) { return node.kind == NodeKind::scalar && !node.quoted; }

/// Why text that looks like a number is not one of this kind.
std::string number_hint(const ConfigNode& node, std::errc error) {
  double number = 0;
  if (node.kind == NodeKind::scalar && node.quoted && parse_number(node.text, number) == std::errc{})
    return " in quotes: remove them";
  return error == std::errc::result_out_of_range ? ": out of range for this type" : "";
}

/// Where a value that is of the wrong kind was given. A map that an override merged into a value keeps that value's
/// place, although the override made it a map: of its keys, the one that was given last says who did.
Place place_of_kind(const ConfigNode& node, const Place& place) {
  Place last = place;
  if (node.kind == NodeKind::map)
    for (const ConfigNode& child : node.children)
      if (child.place.given() && child.place.order > last.order) last = child.place;
  return last;
}

/// Whatever its own limits, a number that a user gives is finite and no larger than any use needs, so that what is
/// computed from it is finite, too.
constexpr double max_number = 1e12;

template <class T>
void read_number(const ConfigNode& node, const Location& location, const Constraint& constraint, const char* what,
                 T& value) {
  T number = 0;
  const auto error = is_bare_scalar(node) ? parse_number(node.text, number) : std::errc::invalid_argument;
  const auto real = static_cast<double>(number);
  Constraint limits = constraint;
  limits.not_empty = false;  // of the list that the number is in
  if (!std::is_integral_v<T> && !limits.minimum) limits.minimum = -max_number;
  if (!std::is_integral_v<T> && !limits.maximum) limits.maximum = max_number;
  const bool sensible = std::abs(real) <= max_number;  // then the limits of the key say what is wrong
  if (error == std::errc{} && in_range(limits, real))
    value = number;
  else
    fail_expected(node, location, with_limits(what, limits_text(sensible ? constraint : limits)),
                  number_hint(node, error));
}

}  // namespace

void fail_expected(const ConfigNode& node, const Location& location, const std::string& what, const std::string& hint) {
  if (node.place.given())
    location.problems.add(place_of_kind(node, location.place), location.path,
                          fmt::format("expected {}, got {}{}", what, shown(node), hint));
  else
    location.fail("must be given: expected " + what);
}

bool in_range(const Constraint& constraint, double value) {
  const auto &minimum = constraint.minimum, &maximum = constraint.maximum;
  const bool high_enough = !minimum || (constraint.above_minimum ? value > *minimum : value >= *minimum);
  const bool low_enough = !maximum || (constraint.below_maximum ? value < *maximum : value <= *maximum);
  return high_enough && low_enough;
}

std::string limits_text(const Constraint& constraint) {
  const auto &minimum = constraint.minimum, &maximum = constraint.maximum;
  std::vector<std::string> parts;
  if (minimum && minimum == maximum) {
    parts.push_back(fmt::format("exactly {}", *minimum));
  } else if (minimum && maximum && !constraint.above_minimum && !constraint.below_maximum) {
    parts.push_back(fmt::format("from {} to {}", *minimum, *maximum));
  } else {
    if (minimum)
      parts.push_back(fmt::format("{} {}", constraint.above_minimum ? "greater than" : "at least", *minimum));
    if (maximum) parts.push_back(fmt::format("{} {}", constraint.below_maximum ? "below" : "at most", *maximum));
  }
  if (constraint.not_empty) parts.emplace_back("not empty");
  if (!constraint.choices.empty()) parts.push_back(fmt::format("one of ({})", join(constraint.choices)));
  return join(parts, " and ");
}

std::string length_limits_text(const Constraint& constraint) {
  const std::string limits = limits_text(constraint);
  return has_range(constraint) ? "length " + limits : limits;
}

void read_scalar(const ConfigNode& node, const Location& location, const Constraint&, bool& value) {
  if (is_bare_scalar(node) && (node.text == "true" || node.text == "false")) {
    value = node.text == "true";
    return;
  }
  std::string hint;
  for (const char* word : {"yes", "Yes", "YES", "on", "On", "ON", "y", "Y", "1", "True", "TRUE", "true"})
    if (node.kind == NodeKind::scalar && node.text == word) hint = ": write true";
  for (const char* word : {"no", "No", "NO", "off", "Off", "OFF", "n", "N", "0", "False", "FALSE", "false"})
    if (node.kind == NodeKind::scalar && node.text == word) hint = ": write false";
  fail_expected(node, location, "true or false", hint);
}

void read_scalar(const ConfigNode& node, const Location& location, const Constraint& constraint, std::int64_t& value) {
  read_number(node, location, constraint, "a whole number", value);
}

void read_scalar(const ConfigNode& node, const Location& location, const Constraint& constraint, double& value) {
  read_number(node, location, constraint, "a number", value);
}

void read_scalar(const ConfigNode& node, const Location& location, const Constraint& constraint, std::string& value) {
  if (!constraint.choices.empty()) {
    if (const auto chosen = read_choice(node, location, constraint.choices)) value = constraint.choices[*chosen];
    return;
  }
  const bool acceptable = node.kind == NodeKind::scalar &&
                          in_range(constraint, static_cast<double>(node.text.size())) &&
                          !(constraint.not_empty && node.text.empty());
  if (acceptable)
    value = node.text;
  else
    fail_expected(node, location, with_limits("text", length_limits_text(constraint)));
}

std::optional<std::size_t> read_choice(const ConfigNode& node, const Location& location,
                                       const std::vector<std::string>& choices) {
  if (node.kind == NodeKind::scalar)
    for (std::size_t i = 0; i < choices.size(); ++i)
      if (choices[i] == node.text) return i;
  const std::string meant = node.kind == NodeKind::scalar ? nearest(node.text, choices) : "";
  fail_expected(node, location, fmt::format("one of ({})", join(choices)),
                meant.empty() ? "" : fmt::format(", did you mean {}?", meant));
  return std::nullopt;
}

std::optional<std::string> read_type(const ConfigNode& node, const Location& location,
                                     const std::vector<std::string>& names, const char* current) {
  const ConfigNode* const type = node.kind == NodeKind::map ? node.find("type") : &node;
  if (type == nullptr) return current;
  if (type->kind == NodeKind::scalar || type != &node) {
    const auto chosen = read_choice(*type, type == &node ? location : location.child("type", *type), names);
    return chosen ? std::optional(names[*chosen]) : std::nullopt;
  }
  fail_expected(node, location, fmt::format("one of ({}), or a map with one of them as its type", join(names)));
  return std::nullopt;
}

std::optional<std::vector<ConfigNode>> read_elements(const ConfigNode& node, const Location& location,
                                                     const Constraint& constraint, bool scalar_allowed) {
  std::optional<std::vector<ConfigNode>> elements;
  if (node.kind == NodeKind::list) elements = node.children;
  if (node.kind == NodeKind::scalar && scalar_allowed) elements = {node};
  if (elements && in_range(constraint, static_cast<double>(elements->size())) &&
      !(constraint.not_empty && elements->empty()))
    return elements;
  Constraint of_length = constraint;
  of_length.choices.clear();  // choices concern the elements
  const bool short_or_long = elements && !elements->empty();
  fail_expected(node, location, with_limits("a list", length_limits_text(of_length)),
                short_or_long ? fmt::format(" of {}", elements->size()) : "");
  return std::nullopt;
}

Constraint element_constraint(const Constraint& list) {
  Constraint constraint;
  constraint.not_empty = list.not_empty;
  constraint.choices = list.choices;
  return constraint;
}

void ProblemsBelow::add(const std::string& path, const std::string& message) {
  const ConfigNode* node = &node_;
  Place place = location_.place;
  for (std::size_t start = 0; node && !path.empty() && start <= path.size();) {
    const std::size_t end = std::min(path.find('.', start), path.size());
    const std::string key = path.substr(start, end - start);
    std::int64_t index = -1;
    if (node->kind == NodeKind::list && parse_number(key, index) == std::errc{} && index >= 0 &&
        index < static_cast<std::int64_t>(node->children.size()))
      node = &node->children[static_cast<std::size_t>(index)];
    else
      node = node->find(key);
    if (node && node->place.given()) place = node->place;
    start = end + 1;
  }
  location_.problems.add(place, path.empty() ? location_.path : join_path(location_.path, path), message);
}

void FieldReader::report_unknown_keys() const {
  for (const auto& child : map_.children) {
    if (is_void(child) || std::find(known_.begin(), known_.end(), child.key) != known_.end()) continue;
    const std::string meant = nearest(child.key, known_);
    const std::string what = type_ ? fmt::format("unknown key for type {}", type_) : "unknown key";
    std::string hint = meant.empty() ? "known here: " + join(known_) : fmt::format("did you mean {}?", meant);
    if (meant.empty() && types_.size() > 1) hint += "; the types are " + join(types_);
    const Place& place = child.key_place.given() ? child.key_place : location_.place;
    const std::string name = in_quotes(child.key, 60);
    const bool plain = name.size() == child.key.size() + 2;  // nothing was escaped or shortened
    location_.problems.add(place, join_path(location_.path, plain ? child.key : name),
                           fmt::format("{}, {}", what, hint));
  }
}

}  // namespace capstan
