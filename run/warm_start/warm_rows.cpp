// Finds for each row of a parameter the row of a file that means the same. Tokens and classes get a text each
// (row_names()), and rows with the same text match. Positions match by index, distances by their difference from the
// middle row. tests/cli/training/test_warm_start.cpp.
#include "run/warm_start/warm_rows.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"

namespace capstan {
namespace {

/// Rows 0, 1, ...: each row takes the row of the file with its index.
std::vector<int64_t> same_rows(int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

/// Does a parameter have a row for each position, the first row for position 0?
bool is_position_table(const std::string& name) {
  for (const char* const end : {".position_u", ".position_v", ".position_bias"})
    if (ends_with(name, end)) return true;
  return name == "positions.weight";
}

/// Are the shapes equal in all axes but the first?
bool same_but_rows(const Param& param, const FileTensor& tensor) {
  const std::vector<int64_t> shape = param.var.shape().to_vector();
  return shape.size() == tensor.shape.size() && !shape.empty() &&
         std::equal(shape.begin() + 1, shape.end(), tensor.shape.begin() + 1);
}

/// The configuration of the n-grams in a table; none where the model has none.
std::optional<NgramConfig> ngrams_of(const TaskConfig& config, const std::string& table) {
  if (table == "ngrams.table") {
    const NgramConfig* const of_text = facts_of(config).text_ngrams;
    return of_text != nullptr ? std::optional(*of_text) : std::nullopt;
  }
  const ModelConfig* const model = find_model(config);
  return model != nullptr ? std::optional(NgramConfig{model->ngram_embedding}) : std::nullopt;
}

}  // namespace

RowNames row_names(const RunConfig& config, const Tokenizer& tokenizer, std::vector<std::string> classes) {
  RowNames names;
  names.classes = std::move(classes);
  names.tokenizer = tokenizer.fingerprint();
  std::unordered_map<std::string, int64_t> seen;
  for (int64_t id = 0; id < tokenizer.vocabulary_size(); ++id) {  // tokens of one name are numbered, to stay apart
    std::string name = "token " + tokenizer.token_name(static_cast<int32_t>(id));
    if (const int64_t count = seen[name]++; count > 0) name += fmt::format("{}{}", '\0', count);
    names.tokens.push_back(std::move(name));
  }
  const SourceFacts facts = facts_of(config.data);
  for (int64_t i = 0; i < facts.added_tokens; ++i)
    names.tokens.push_back(i > 0                 ? fmt::format("{} {}", facts.has_pairs ? "between texts" : "added", i)
                           : facts.has_documents ? std::string("end of a document")
                           : facts.has_labels    ? std::string("between columns")
                                                 : std::string("added 0"));
  if (const std::string own = facts_of(config.model).own_token; !own.empty()) names.tokens.push_back(own);
  return names;
}

WarmRows::WarmRows(const RunConfig& config, const RowNames& rows, const WeightsOrigin& origin)
    : config_(config), rows_(rows), origin_(origin) {
  if (origin.run) theirs_ = row_names(origin.run->config, *origin.run->tokenizer, origin.run->classes);
}

bool WarmRows::other_tokenizer() const { return origin_.exported && origin_.exported->tokenizer != rows_.tokenizer; }

RowMapping WarmRows::by_name(const Param& param, const FileTensor& tensor, const std::vector<std::string>& ours,
                             const std::vector<std::string>& theirs, const char* what) const {
  const int64_t rows = param.var.dim(0), count = tensor.shape[0];
  if (theirs.empty()) {
    if (rows == count) return {same_rows(rows), fmt::format("rows by index: the {} of the file are not known", what)};
    return {{}, fmt::format("{} rows in the file, whose {} are not known", count, what)};
  }
  if (static_cast<int64_t>(theirs.size()) != count)
    return {{}, fmt::format("{} rows in the file, for {} {} of its run", count, theirs.size(), what)};
  check(static_cast<int64_t>(ours.size()) == rows, "warm start: {} has {} rows for {} {}", param.name, rows,
        ours.size(), what);
  if (ours == theirs) return {same_rows(rows), ""};
  std::unordered_map<std::string, int64_t> places;
  for (size_t i = 0; i < theirs.size(); ++i) places.emplace(theirs[i], static_cast<int64_t>(i));
  RowMapping mapping{{}, fmt::format("found by their {} among {}", what, count)};
  for (const std::string& name : ours) {
    const auto place = places.find(name);
    mapping.rows.push_back(place != places.end() ? place->second : -1);
  }
  return mapping;
}

std::string WarmRows::ngram_difference(const std::string& table) const {
  const auto ours = ngrams_of(config_.model, table);
  const auto theirs = origin_.run        ? ngrams_of(origin_.run->config.model, table)
                      : origin_.exported ? ngrams_of(origin_.exported->model, table)
                                         : std::nullopt;
  if (!ours || !theirs) return "the n-grams of the file are not known";
  if (ours->buckets != theirs->buckets) return fmt::format("buckets were {}, are {}", theirs->buckets, ours->buckets);
  if (ours->orders != theirs->orders)
    return fmt::format("orders were [{}], are [{}]", join(theirs->orders), join(ours->orders));
  if (ours->scale != theirs->scale) return fmt::format("scale was {}, is {}", theirs->scale, ours->scale);
  const bool other = origin_.exported ? other_tokenizer() || origin_.tensors->at("embed.weight").shape[0] !=
                                                                 static_cast<int64_t>(rows_.tokens.size())
                                      : theirs_.tokens.empty() || theirs_.tokens != rows_.tokens;
  if (other) return "another tokenizer: n-grams are hashed by the ids of their tokens";
  return "";
}

RowMapping WarmRows::map(const Param& param, const FileTensor& tensor) const {
  const std::string& name = param.name;
  const std::vector<int64_t> shape = param.var.shape().to_vector();
  const auto other_shape = [&] {
    return RowMapping{{}, fmt::format("the file has {}", to_string(Shape(tensor.shape))), /*misfit=*/true};
  };
  if (ends_with(name, ".position_bias") && shape.size() == 2 && tensor.shape.size() == 2) {
    RowMapping mapping{same_rows(shape[0]), ""};
    if (shape == tensor.shape) return mapping;
    for (int64_t& row : mapping.rows)
      if (row >= tensor.shape[0]) row = -1;
    mapping.note = fmt::format("of {} positions", tensor.shape[0]);
    return mapping;
  }
  if (!same_but_rows(param, tensor)) return other_shape();
  if (other_tokenizer() && (name == "embed.weight" || starts_with(name, "output.")))
    return {{}, "the export has another tokenizer"};
  if (name == "embed.weight") return by_name(param, tensor, rows_.tokens, theirs_.tokens, "tokens");
  if (name == "output.weight" ||
      name == "output.bias") {  // without the tokens that a model adds for itself, which are the last ones
    const auto first_of = [](std::vector<std::string> names, int64_t count) {
      names.resize(std::min(names.size(), static_cast<size_t>(count)));
      return names;
    };
    return by_name(param, tensor, first_of(rows_.tokens, shape[0]), first_of(theirs_.tokens, tensor.shape[0]),
                   "tokens");
  }
  if (name == "head.weight" || name == "head.bias" || name == "ngrams.output.weight")
    return by_name(param, tensor, rows_.classes, theirs_.classes, "classes");
  if (name == "ngrams.table" || name == "ngram_embedding.table") {
    if (const std::string difference = ngram_difference(name); !difference.empty()) return {{}, difference};
  }
  if (shape == tensor.shape) return {same_rows(shape[0]), ""};
  // A table of distances has distance 0 in its middle row, one of positions has position 0 in its first.
  const bool distances = ends_with(name, ".relative_bias.table");
  if (!distances && !is_position_table(name)) return other_shape();
  RowMapping mapping{same_rows(shape[0]),
                     fmt::format("of {} {}", tensor.shape[0], distances ? "distances" : "positions")};
  for (int64_t& row : mapping.rows) {
    if (distances) row += (tensor.shape[0] - shape[0]) / 2;
    if (row >= tensor.shape[0]) row = -1;
  }
  return mapping;
}

}  // namespace capstan
