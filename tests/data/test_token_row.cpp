#include "data/files/token_row.hpp"

#include "core/base/error.hpp"
#include "support.hpp"

using namespace capstan;

namespace {

/// A file of `width` bytes a token.
std::string write_tokens(const TemporaryFolder& folder, const std::vector<int32_t>& tokens, int width) {
  std::string bytes;
  for (const int32_t token : tokens)
    for (int i = 0; i < width; ++i) bytes.push_back(static_cast<char>(token >> (8 * i)));
  return folder.write("tokens", bytes);
}

}  // namespace

TEST_CASE("a row of tokens gives the same from memory and from files of every width") {
  const TemporaryFolder folder;
  struct Row {
    int width;
    std::vector<int32_t> tokens;
  };
  for (const Row& row : {Row{1, {0, 1, 127, 128, 255}}, Row{2, {0, 255, 256, 32768, 65535}},
                         Row{4, {0, 65536, 1 << 24, 2147483647, 5}}, Row{1, {}}}) {
    const auto size = static_cast<int64_t>(row.tokens.size());
    TokenRow widened, unnamed(1, folder.path(), 2);
    for (const int32_t token : row.tokens) widened.append({token});
    unnamed.append(row.tokens);
    const TokenRow file = TokenRow::of_file(write_tokens(folder, row.tokens, row.width), row.width);
    for (const TokenRow* const each : std::initializer_list<const TokenRow*>{&widened, &unnamed, &file}) {
      const TokenRow& tokens = *each;
      CHECK(tokens.width() == row.width);
      CHECK(tokens.size() == size);
      CHECK(tokens.to_vector() == row.tokens);
      for (int64_t i = 0; i < size; ++i) CHECK(tokens[i] == row.tokens[static_cast<size_t>(i)]);
      if (size > 0) CHECK(tokens.slice(1, 4) == std::vector<int32_t>(row.tokens.begin() + 1, row.tokens.begin() + 4));
      CHECK(tokens.slice(size, size).empty());
      CHECK_THROWS_AS(tokens.slice(0, size + 1), std::invalid_argument);
      CHECK_THROWS_AS(tokens.slice(-1, 0), std::invalid_argument);
      CHECK_THROWS_AS(tokens.slice(1, 0), std::invalid_argument);
      CHECK(Fingerprint().add(tokens).hex() == Fingerprint().add(row.tokens).hex());
    }
  }
  CHECK(TokenRow().size() == 0);
  CHECK(TokenRow().to_vector().empty());
}

TEST_CASE("the width of a token is the least that holds the vocabulary") {
  struct Row {
    int64_t vocabulary;
    int width;
  };
  for (const Row& row : {Row{2, 1}, Row{256, 1}, Row{257, 2}, Row{65536, 2}, Row{65537, 4}, Row{16777216, 4}})
    CHECK(TokenRow::width_for(row.vocabulary) == row.width);
}

TEST_CASE("a file of tokens of another size is refused by name") {
  const TemporaryFolder folder;
  const std::string path = write_tokens(folder, {1, 2, 3}, 2);
  CHECK(contains(message_of<Error>([&] { TokenRow::of_file(path, 4); }), path + ": has 6 bytes, but a token has 4"));
  CHECK_THROWS_AS(TokenRow::of_file(folder.path("none"), 1), Error);
  CHECK_THROWS_AS(TokenRow::of_file(path, 3), std::invalid_argument);
}

TEST_CASE("a file of tokens that becomes shorter is an error with its name") {
  const TemporaryFolder folder;
  const std::string path = write_tokens(folder, std::vector<int32_t>(9000, 7), 1);
  const TokenRow row = TokenRow::of_file(path, 1);
  CHECK(row[8999] == 7);
  std::filesystem::resize_file(path, 10);
  CHECK(row[9] == 7);
  CHECK(contains(message_of<Error>([&] { row.slice(0, 11); }), path + ": a part of this file can no longer be read"));
}
