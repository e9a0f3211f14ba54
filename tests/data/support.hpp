// What the tests of this room share.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/batches/batcher.hpp"
#include "data/text/text_source.hpp"
#include "data/tokenizers/tokenizer_kinds.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/texts.hpp"

namespace capstan {

inline std::string write_gzip(const TemporaryFolder& folder, const std::string& name, const std::string& content) {
  gzFile file = gzopen(folder.path(name).c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  return folder.path(name);
}

inline std::string write_zstd(const TemporaryFolder& folder, const std::string& name, const std::string& content) {
  std::string packed(ZSTD_compressBound(content.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), 3));
  return folder.write(name, packed);
}

/// load_text() of a training.
inline TextData loaded(const TextSourceConfig& config, std::shared_ptr<const Tokenizer> tokenizer = nullptr,
                       const LogLine& log = nullptr, size_t max_in_memory = ByteStore::max_in_memory) {
  SourceInputs inputs;
  inputs.tokenizer = std::move(tokenizer);
  inputs.log = log;
  inputs.cache = CacheUse::write;
  inputs.max_in_memory = max_in_memory;
  return load_text(config, inputs);
}

inline bool equal(const Batch& a, const Batch& b) {
  const auto same = [](const Ids& x, const Ids& y) { return x.shape() == y.shape() && x.to_vector() == y.to_vector(); };
  return same(a.tokens, b.tokens) && same(a.segment_ids, b.segment_ids) && same(a.labels, b.labels) &&
         same(a.examples, b.examples);
}

/// A batch in three parts is the whole batch.
inline void check_rows(const BatchSource& source, int64_t epoch, int64_t index) {
  const Batch whole = source.batch(epoch, index);
  const BatchExtent extent = source.extent(epoch, index);
  CHECK(whole.tokens.shape() == Shape{extent.rows, extent.columns});
  for (int64_t part = 0; part < 3; ++part) {
    const int64_t begin = extent.rows * part / 3, end = extent.rows * (part + 1) / 3;
    if (begin < end) CHECK(equal(source.rows(epoch, index, begin, end), rows_of(whole, begin, end)));
  }
  CHECK_THROWS_AS(source.rows(epoch, index, 0, extent.rows + 1), std::invalid_argument);
}

/// The path of a real data file, or nothing, with a message, where it is absent.
inline std::string real_file(const std::string& name) {
  const std::string path = source_path("../shared/data/" + name);
  if (std::filesystem::exists(path)) return path;
  MESSAGE("skipped: ", path, " is absent");
  return "";
}

/// Wherever a text is cut at a boundary, its tokens are those of the whole.
inline void check_boundaries(const Tokenizer& tokenizer, const TokenizerConfig& config, const std::string& text) {
  for (size_t at = 0; at <= text.size(); ++at) {
    const size_t boundary = tokenizer.boundary(text, at);
    REQUIRE(boundary <= at);
    auto front = tokenizer.encode(text.substr(0, boundary));
    const auto back = tokenizer.encode(text.substr(boundary));
    front.insert(front.end(), back.begin(), back.end());
    CHECK(front == tokenizer.encode(text));
    CHECK(boundary_of(config)(text, at) == boundary);
  }
}

}  // namespace capstan
