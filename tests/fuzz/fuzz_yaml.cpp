// Configuration files. The mutator puts lines together that mean something: keys, values, lists, anchors, levels.
#include <array>

#include "tests/fuzz/yaml_config.hpp"

namespace capstan::fuzz {
namespace {

void read_yaml(std::string_view input) {
  ProblemList problems;
  read_run(load_tree_from_text(to_node(AnyRun{}), std::string(input), "input.yaml", problems), problems);
}

constexpr std::array<const char*, 24> keys = {
    "name",  "flag",  "data",    "layers",   "weights",         "rate",     "width",     "tokenizer",
    "train", "valid", "windows", "overlap",  "valid_fraction",  "on_error", "documents", "type",
    "text",  "split", "cache",   "max_size", "sequence_length", "<<",       "normalise", "model_type"};
constexpr std::array<const char*, 36> values = {"word",    "char",
                                                "byte",    "sentencepiece",
                                                "1",       "0",
                                                "-1",      "0.5",
                                                "1e400",   "9223372036854775808",
                                                "true",    "no",
                                                "null",    "~",
                                                "\"a\"",   "'b'",
                                                "[]",      "{}",
                                                "[1, 2]",  "{a: 1}",
                                                ".nan",    "-.inf",
                                                "*a",      "&a 1",
                                                "!tag x",  "|",
                                                ">",       "\"\\u00e9\"",
                                                "[a.txt]", "marker",
                                                "tail",    "by-file",
                                                "[[",      "}",
                                                "\"",      "0x10"};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  return lines;
}

std::string new_line(std::mt19937& random) {
  const auto any_of = [&](const auto& list) { return std::string(list[random() % list.size()]); };
  const std::string indent(random() % 4 * 2, ' ');
  switch (random() % 5) {
    case 0:
      return indent + "- " + any_of(values);
    case 1:
      return indent + any_of(keys) + ":";
    case 2:
      return indent + "- " + any_of(keys) + ": " + any_of(values);
    default:
      return indent + any_of(keys) + ": " + any_of(values);
  }
}

std::string change_yaml(const std::string& input, size_t most, std::mt19937& random, const Change& change) {
  std::vector<std::string> lines = lines_of(input);
  const size_t at = random() % lines.size();
  switch (random() % 7) {
    case 0:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), new_line(random));
      break;
    case 1:
      lines[at] = new_line(random);
      break;
    case 2:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 3:
      std::swap(lines[at], lines[random() % lines.size()]);
      break;
    case 4:
      lines[at].insert(0, random() % 2 == 0 ? "  " : "- ");
      break;
    case 5:
      lines.insert(lines.end(), lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    default:
      change(lines[at], 200);
  }
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text.substr(0, most);
}

const Registered yaml_target("yaml", read_yaml, change_yaml);

}  // namespace
}  // namespace capstan::fuzz
