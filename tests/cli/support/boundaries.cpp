#include "tests/cli/support/boundaries.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "tests/cli/support/samples.hpp"

namespace capstan::testing {
namespace {

#ifdef __SANITIZE_ADDRESS__  // it needs terabytes of addresses itself
constexpr const char* address_limit = "";
#else
constexpr const char* address_limit = "ulimit -v 4000000; ";
#endif

struct Row {
  std::string path, values;  // as the table has them: "integer 0…1024"
};

/// The cells of a line of the Markdown table, without the marks of code and escapes.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::string cell;
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size())
      cell += line[++i];
    else if (line[i] == '|')
      cells.push_back(std::exchange(cell, ""));
    else if (line[i] != '`')
      cell += line[i];
  }
  for (std::string& text : cells) {
    text.erase(0, text.find_first_not_of(' '));
    text.erase(text.find_last_not_of(' ') + 1);
  }
  return cells;
}

bool is_numeric(const std::string& values) {
  const std::string of_one = values.substr(values.rfind("list: ", 0) == 0 ? 6 : 0);
  return of_one.rfind("integer", 0) == 0 || of_one.rfind("number", 0) == 0;
}

/// "mixer(gau, flash).key_dim" -> "mixer(gau).key_dim" and "mixer(flash).key_dim".
std::vector<std::string> paths_of(const std::string& path) {
  const size_t comma = path.find(", ");
  if (comma == std::string::npos) return {path};
  const size_t open = path.rfind('(', comma), close = path.find(')', comma);
  std::vector<std::string> paths;
  std::string types = path.substr(open + 1, close - open - 1) + ", ";
  for (size_t end; (end = types.find(", ")) != std::string::npos; types.erase(0, end + 2))
    paths.push_back(path.substr(0, open + 1) + types.substr(0, end) + path.substr(close));
  return paths;
}

std::vector<Row> numeric_rows(const Workplace& place) {
  const Outcome table = run(place, "config table");
  REQUIRE(table.code == 0);
  std::vector<Row> rows;
  for (const std::string& line : lines_of(table.out)) {
    const std::vector<std::string> cells = cells_of(line);
    if (cells.size() >= 4 && is_numeric(cells[1]))
      for (const std::string& path : paths_of(cells[0])) rows.push_back({path, cells[1]});
  }
  return rows;
}

/// The types that a path names, as settings, and the path without them: model(x).layers.N.mixer(gau).key_dim gives
/// model.layers.0.mixer.type=gau and model.layers.0.mixer.key_dim.
struct Place {
  Words settings;
  std::string data, model;  // types, if named
  std::string path;
};

Place place_of(const std::string& path) {
  Place place;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '.');) {
    const size_t bracket = part.find('(');
    place.path += (place.path.empty() ? "" : ".") + (part == "N" ? "0" : part.substr(0, bracket));
    if (bracket == std::string::npos) continue;
    const std::string type = part.substr(bracket + 1, part.size() - bracket - 2);
    if (place.path == "data")
      place.data = type;
    else if (place.path == "model")
      place.model = type;
    else
      place.settings.push_back(place.path + ".type=" + type);
  }
  return place;
}

/// The file whose types are those of the path.
std::string config_of(const Place& place) {
  return place.data == "labelled" || place.model == "text-classifier" ? "classifier.yaml" : "lm.yaml";
}

/// The numbers in the limits, "1…65536", and their neighbours; the other values are those at which arithmetic
/// of 31, 53, 63 or 64 bits breaks.
std::vector<std::string> values_of(const Row& row) {
  std::vector<std::string> values = {"0",          "1",          "-1",
                                     "2147483647", "2147483648", "4611686018427387904",
                                     "nan",        "inf",        "9223372036854775807",
                                     "1e308",      "0.5",        "-9223372036854775808"};
  const bool whole = contains(row.values, "integer");
  std::string limits = row.values;
  for (char& c : limits)
    if (std::string("0123456789.-").find(c) == std::string::npos) c = ' ';
  std::istringstream words(limits);
  for (std::string word; words >> word;) {
    char* end = nullptr;
    const double limit = std::strtod(word.c_str(), &end);
    if (end == word.c_str()) continue;
    for (const double value : {limit - 1, limit, limit + 1}) {
      std::ostringstream text;
      text.precision(17);
      if (whole)
        text << static_cast<int64_t>(value);
      else
        text << value;
      values.push_back(text.str());
    }
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::string quoted(const Words& settings) {
  std::string text;
  for (const std::string& setting : settings) text += " '" + setting + "'";
  return text;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::vector<Boundary> boundaries(const Workplace& place) {
  write_samples(place);
  std::vector<Boundary> all;
  for (const Row& row : numeric_rows(place)) {
    const Place at = place_of(row.path);
    for (const std::string& value : values_of(row)) {
      Boundary boundary{config_of(at), at.settings};
      boundary.settings.insert(boundary.settings.begin(), {"name=boundary", "train.steps=1", "train.valid_every=0"});
      const bool list = contains(row.values, "list: ");
      boundary.settings.push_back(at.path + "=" + (list ? "[1, " + value + "]" : value));
      all.push_back(std::move(boundary));
    }
  }
  return all;
}

void check_boundary(const Workplace& place, const Boundary& boundary, BoundaryCounts& counts) {
  CAPTURE(boundary.name());
  const std::string settings = " -c " + boundary.config + " -s" + quoted(boundary.settings);
  ++counts.cases;
  for (const char* const command : {"config check", "train"}) {
    const auto start = std::chrono::steady_clock::now();
    const Outcome outcome =
        run_shell(place, std::string("rm -rf runs/boundary; ") + address_limit +
                             "exec timeout --preserve-status -s TERM -k 25 5 \"$capstan\" " + (command + settings));
    if (const double seconds = seconds_since(start); seconds > counts.slowest) {
      counts.slowest = seconds;
      counts.slowest_name = boundary.name();
    }
    CHECK_MESSAGE(indecency(outcome) == "", outcome.err);
    const bool ended_by_term = outcome.code == 128 + 15;  // before training began, when SIGTERM has its usual effect
    const bool known = outcome.code == 0 || outcome.code == 1 || outcome.code == 2 || outcome.code == 75;
    CHECK_MESSAGE((known || ended_by_term), command, " ended with ", outcome.code, ": ", outcome.err);
    if (outcome.code == 0 && command[0] == 'c') continue;
    ++(outcome.code == 0   ? counts.trained
       : outcome.code == 1 ? counts.failed
       : outcome.code == 2 ? counts.refused
                           : counts.interrupted);
    return;
  }
}

}  // namespace capstan::testing
