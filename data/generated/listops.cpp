// Grows ListOps expressions and computes their values. The draws must not change, since runs save a fingerprint of
// them: tests/data/test_listops.cpp and test_data_source.cpp.
#include "data/generated/listops.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "data/batches/example_source.hpp"
#include "data/files/token_row.hpp"
#include "data/tokenizers/blank_separated.hpp"

namespace capstan {
namespace {

using Tokens = ListOpsTokenizer;

int32_t apply(int32_t op, std::vector<int32_t> values) {
  if (op == Tokens::minimum) return *std::min_element(values.begin(), values.end());
  if (op == Tokens::maximum) return *std::max_element(values.begin(), values.end());
  if (op == Tokens::sum_modulo_ten) return std::accumulate(values.begin(), values.end(), 0) % 10;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

bool is_operator(int32_t token) { return token >= Tokens::minimum && token < Tokens::end; }

/// Grows one expression; gives up as soon as it is too long, so that no draw is expensive.
class Draw {
 public:
  Draw(const ListOpsConfig& config, RandomStream stream) : config_(config), stream_(stream) {}

  std::optional<std::vector<int32_t>> expression() {
    grow(1);
    const auto length = static_cast<int64_t>(tokens_.size());
    if (length <= config_.min_length || length >= config_.max_length) return std::nullopt;
    return std::move(tokens_);
  }

 private:
  void grow(int64_t depth) {
    if (static_cast<int64_t>(tokens_.size()) >= config_.max_length) return;
    if (depth >= config_.max_depth || stream_.uniform() >= config_.operator_probability) {
      tokens_.push_back(static_cast<int32_t>(stream_.below(10)));
      return;
    }
    tokens_.push_back(Tokens::minimum + static_cast<int32_t>(stream_.below(4)));
    const auto arguments = 2 + static_cast<int64_t>(stream_.below(static_cast<uint64_t>(config_.max_arguments) - 1));
    for (int64_t i = 0; i < arguments; ++i) grow(depth + 1);
    tokens_.push_back(Tokens::end);
  }

  const ListOpsConfig& config_;
  RandomStream stream_;
  std::vector<int32_t> tokens_;
};

RandomKey draw_key(const ListOpsConfig& config, std::string_view split) {
  return random_key(static_cast<uint64_t>(config.seed), fmt::format("listops/{}", split));
}

/// Draws until there are `count` expressions that are not among those seen, and adds them to these.
ExampleSet make_split(const ListOpsConfig& config, std::string_view split, int64_t count,
                      std::unordered_set<std::string>& seen) {
  constexpr uint64_t patience =
      200000;  // draws without a new expression; Long Range Arena's setting keeps one in twelve
  ExampleSet examples;
  for (uint64_t attempt = 0, last_new = 0; examples.size() < count; ++attempt) {
    if (attempt - last_new > patience)
      throw Error(
          fmt::format("listops: found only {} of {} {} expressions with more than {} and fewer than {} tokens; widen "
                      "min_length and max_length, raise max_depth or max_arguments, or ask for fewer",
                      examples.size(), count, split, config.min_length, config.max_length));
    const auto tokens = listops_draw(config, split, attempt);
    if (!tokens || !seen.insert(Fingerprint().add(*tokens).hex()).second) continue;
    examples.add(*tokens, listops_value(*tokens));
    last_new = attempt;
  }
  return examples;
}

}  // namespace

int32_t listops_value(const std::vector<int32_t>& tokens) {
  struct Open {
    int32_t op;
    std::vector<int32_t> values;
  };
  std::vector<Open> stack;  // explicit, because a text from outside may be nested deeply
  std::optional<int32_t> result;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int32_t token = tokens[i];
    if (result) throw Error(fmt::format("listops: token {} is after the end of the expression", i + 1));
    if (is_operator(token)) {
      stack.push_back({token, {}});
      continue;
    }
    int32_t value = token;
    if (token == Tokens::end) {
      if (stack.empty()) throw Error(fmt::format("listops: token {} is ']' without an operator", i + 1));
      if (stack.back().values.empty())
        throw Error(fmt::format("listops: the operator closed at token {} has no arguments", i + 1));
      value = apply(stack.back().op, std::move(stack.back().values));
      stack.pop_back();
    }
    if (stack.empty())
      result = value;
    else
      stack.back().values.push_back(value);
  }
  if (!result) throw Error(fmt::format("listops: the expression of {} tokens is not complete", tokens.size()));
  return *result;
}

std::optional<std::vector<int32_t>> listops_draw(const ListOpsConfig& config, std::string_view split,
                                                 uint64_t attempt) {
  // Far more room than one expression can use, so that the draws do not share random numbers.
  return Draw(config, RandomStream(draw_key(config, split), attempt << 24)).expression();
}

ClassificationData make_listops(const ListOpsConfig& config) {
  check_valid("listops", config);
  ClassificationData data;
  for (int digit = 0; digit < 10; ++digit) data.classes.push_back(std::to_string(digit));
  data.tokenizer = std::make_shared<ListOpsTokenizer>();
  std::unordered_set<std::string> seen;
  data.test = make_split(config, "test", config.test, seen);
  data.valid = make_split(config, "valid", config.valid, seen);
  data.train = make_split(config, "train", config.train, seen);
  return data;
}

SourceFacts facts(const ListOpsConfig& config) {
  SourceFacts facts;
  facts.has_labels = true;
  facts.longest = config.max_length - 1;
  facts.longest_key = "max_length";
  constexpr double per_example = 100;  // bytes: a hash in a set, a label, an offset
  facts.min_bytes = static_cast<double>(config.train + config.valid + config.test) *
                    (sizeof(int32_t) * static_cast<double>(config.min_length + 1) + per_example);
  return facts;
}

std::unique_ptr<DataSource> make_source(const ListOpsConfig& config, const SourceInputs& inputs) {
  return std::make_unique<ExampleSource>(make_listops(config), inputs, settings_of(config));
}

}  // namespace capstan
