// Reads word vectors in one pass and writes those of the vocabulary into the embedding.
// tests/cli/training/test_word_vectors.cpp.
#include "run/warm_start/word_vectors.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "data/files/file_list.hpp"
#include "data/files/text_file.hpp"
#include "train/checkpoints/checkpoint.hpp"

namespace capstan {
namespace {

constexpr std::string_view blanks = " \t\r";

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (line = trimmed(line, blanks); !line.empty(); line = trimmed(line, blanks)) {
    fields.push_back(line.substr(0, line.find_first_of(blanks)));
    line.remove_prefix(fields.back().size());
  }
  return fields;
}

/// One pass over a file of word vectors, which writes those of the vocabulary into a table of `width` columns.
class VectorFile {
 public:
  VectorFile(const std::string& path, int64_t width, std::unordered_map<std::string, int64_t> rows, float* table)
      : path_(path), width_(width), rows_(std::move(rows)), table_(table) {}

  /// Returns the lines for the log.
  std::vector<std::string> read(const LogLine& log) {
    TextReader reader(path_, any_file_mb, "a file of word vectors is needed here");
    std::error_code unknown;
    const auto bytes = std::filesystem::file_size(path_, unknown);
    Progress progress(log, "reading " + path_, is_packed_name(path_) || unknown ? 0 : static_cast<double>(bytes));
    progress.begin("reading " + path_);
    constexpr size_t step = size_t{16} << 20;  // bytes from one report of progress to the next
    size_t passed = 0;
    for (std::string line; next(reader, line);) {
      ++line_;
      if (line_ == 1 && starts_with(line, "\xef\xbb\xbf")) line.erase(0, 3);  // a byte order mark
      passed += line.size() + 1;
      if (passed >= step) progress.add(static_cast<double>(std::exchange(passed, 0)));
      if (line_ == 1 && is_header(line)) continue;
      take(line);
    }
    progress.add(static_cast<double>(passed));
    if (stated_ && vectors_ < *stated_)
      throw Error(fmt::format("{}: line 1 says {} vectors, but there are {}: the file is cut; get it again", path_,
                              *stated_, vectors_));
    if (found_ == 0)
      throw Error(
          fmt::format("{}: none of the {} words of the vocabulary is among its {} words; with words in lower "
                      "case, set data.tokenizer.lower_case: true",
                      path_, rows_.size(), vectors_));
    return {fmt::format("word vectors: {} of {} words of the vocabulary are in {}, among {} vectors", found_,
                        rows_.size(), path_, vectors_)};
  }

 private:
  /// Reads a line; false at the end. An error names the line in front of it, since that of a packed file has no place.
  bool next(TextReader& reader, std::string& line) const {
    try {
      return reader.read_line(line);
    } catch (const Error& error) {
      throw Error(fmt::format("{} (after line {})", error.what(), line_));
    }
  }
  std::string place() const { return fmt::format("{}:{}", path_, line_); }

  /// Is the first line "COUNT WIDTH", as word2vec and fastText write it? It is then noted, and its width checked.
  bool is_header(const std::string& line) {
    const std::vector<std::string_view> fields = fields_of(line);
    const auto count = fields.size() == 2 ? parse_integer(fields[0]) : std::nullopt,
               width = fields.size() == 2 ? parse_integer(fields[1]) : std::nullopt;
    if (!width || !count) {
      if (line.find('\0') != std::string::npos || (!line.empty() && static_cast<unsigned char>(line.front()) == 0xba))
        throw Error(fmt::format("{}: is no text: of fastText, give the .vec file beside the .bin", path_));
      return false;
    }
    check_width(*width);
    stated_ = *count;
    return true;
  }

  void check_width(int64_t found) const {
    if (found != width_)
      throw Error(fmt::format("{}: the vectors have {} numbers, but model.width is {}: set model.width={}", place(),
                              found, width_, found));
  }

  /// Reads a line. Numbers are only parsed for words of the vocabulary, which are few of the file's.
  void take(const std::string& line) {
    const std::vector<std::string_view> fields = fields_of(line);
    if (fields.empty()) return;
    const auto numbers = static_cast<int64_t>(fields.size()) - 1;  // a word may have blanks in it
    if (vectors_ == 0 && !stated_) check_width(numbers);
    if (numbers < width_)
      throw Error(fmt::format("{}: expected a word and {} numbers, found {} fields: the file is damaged or cut",
                              place(), width_, numbers + 1));
    ++vectors_;
    if (numbers > width_) return;  // no word of a vocabulary has blanks
    const auto row = rows_.find(std::string(fields[0]));
    if (row == rows_.end() || row->second < 0) return;
    for (int64_t i = 0; i < width_; ++i)
      table_[row->second * width_ + i] = value_of(fields[static_cast<size_t>(i + 1)], i);
    row->second = -1;  // the first one counts
    ++found_;
  }

  /// The number of a field; a number too small for a float is 0. `index`: of the number in its line, for errors.
  float value_of(std::string_view field, int64_t index) const {
    float value = 0;
    const auto [end, problem] = std::from_chars(field.data(), field.data() + field.size(), value);
    if (problem == std::errc::result_out_of_range && field.find_first_of("eE") + 1 == field.find('-', 1)) return 0;
    if (problem != std::errc() || end != field.data() + field.size() || !std::isfinite(value))
      throw Error(
          fmt::format("{}: number {} is '{}': expected a finite number", place(), index + 1, field.substr(0, 40)));
    return value;
  }

  const std::string& path_;
  int64_t width_, line_ = 0, vectors_ = 0, found_ = 0;
  std::optional<int64_t> stated_;                  // how many vectors there are, as the first line says
  std::unordered_map<std::string, int64_t> rows_;  // by word, its row in the table; -1: filled
  float* table_;
};

}  // namespace

std::vector<std::string> fill_word_vectors(const RunConfig& config, const Tokenizer& tokenizer, const RunParts& parts,
                                           const LogLine& log) {
  const auto& params = parts.params.params();
  const auto embed =
      std::find_if(params.begin(), params.end(), [](const Param& param) { return param.name == "embed.weight"; });
  if (embed == params.end())
    throw ConfigError("train.init_vectors: the model has no embedding of words; use a model with blocks");
  std::unordered_map<std::string, int64_t> rows;
  for (int64_t id = 0; id < tokenizer.vocabulary_size(); ++id)
    rows.emplace(tokenizer.token_name(static_cast<int32_t>(id)), id);
  VectorFile file(config.train.init_vectors, embed->var.dim(1), std::move(rows), parts.params.values() + embed->offset);
  return file.read(log);
}

void check_init_vectors(const RunConfig& config, Problems& problems) {
  const std::string& path = config.train.init_vectors;
  const std::filesystem::path folder = std::filesystem::path(config.folder) / config.name;
  if (path.empty() || Checkpoints(folder / "checkpoints").last()) return;
  if (!config.train.init_from.empty())
    problems.add("train.init_vectors", "the embedding cannot start from train.init_from, too: give one of them");
  if (const std::string missing = missing_file(path); !missing.empty()) problems.add("train.init_vectors", missing);
}

}  // namespace capstan
