// Defaults of DataSource, and identities: the text that a resumed run compares with the saved one. Its lines must not
// change: tests/data/test_data_source.cpp has those of earlier versions.
#include "data/batches/data_source.hpp"

#include <algorithm>
#include <sstream>

#include "core/base/error.hpp"

namespace capstan {

LabelledTexts DataSource::texts(Split) const { throw Error("data: only labelled examples are texts with classes"); }

std::vector<EvaluationPair> DataSource::evaluation_pairs(Split) const {
  throw Error("data: only data of type pairs have targets");
}

std::vector<std::string> DataSource::description() const {
  std::vector<std::string> lines = left_out();
  lines.push_back(fmt::format("tokenizer: {}, {} tokens", tokenizer().kind(), tokenizer().vocabulary_size()));
  for (const Split split : all_splits) {
    if (!has(split)) continue;
    for (const std::string& line : describe_split(split))
      lines.push_back(fmt::format("{}: {}", to_string(split), line));
  }
  return lines;
}

void DataSource::check_has(Split split, const std::string& remedy) const {
  if (!has(split))
    throw Error(fmt::format("data: there is no {} split: give data.{}{}", to_string(split), to_string(split), remedy));
}

std::string source_identity(const Settings& settings, std::vector<std::string> without, const std::string& fingerprint,
                            const std::string& more) {
  for (const char* const name : {"train", "valid", "test", "on_error", "tokenizer.model"}) without.emplace_back(name);
  std::string text;
  for (const auto& [key, value] : settings) {
    const bool counts = std::none_of(without.begin(), without.end(), [&key = key](const std::string& name) {
      return key == name || key.rfind(name + ".", 0) == 0;
    });
    if (counts) text += key + ": " + value + "\n";
  }
  return text + more + "fingerprint of the content: " + fingerprint + "\n";
}

std::string renewed_identity(const std::string& saved, const std::string& now, const Settings& defaults) {
  const auto key_of = [](const std::string& line) { return line.substr(0, line.find(": ")); };
  const auto lines_of = [](const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  };
  std::vector<std::string> lines = lines_of(saved);
  auto after = lines.begin();  // where a line that `saved` lacks belongs: after its predecessor in `now`
  for (const std::string& line : lines_of(now)) {
    const std::string key = key_of(line);
    const auto saved_line =
        std::find_if(lines.begin(), lines.end(), [&](const std::string& l) { return key_of(l) == key; });
    const auto default_setting =
        std::find_if(defaults.begin(), defaults.end(), [&](const auto& setting) { return setting.first == key; });
    if (saved_line != lines.end())
      after = saved_line + 1;
    else if (default_setting != defaults.end())
      after = lines.insert(after, key + ": " + default_setting->second) + 1;
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace capstan
