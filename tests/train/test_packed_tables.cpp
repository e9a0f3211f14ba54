// Tables of n-grams that are read to be used: without the rows of zeros that a file leaves out.
#include <doctest/doctest.h>

#include <cstring>

#include "core/base/random.hpp"
#include "core/machine/pool.hpp"
#include "nn/layers/ngram_features.hpp"
#include "tests/train/support.hpp"
#include "train/checkpoints/checkpoint_files.hpp"

using namespace capstan;
using namespace capstan::testing;

namespace {

constexpr int64_t buckets = 20000, row_width = 24, outputs = 3;

struct Features {
  ParamStore store;
  std::unique_ptr<NgramFeatures> ngrams;

  explicit Features(ParamMemory memory) : store(memory) {
    NgramConfig config;
    config.orders = {1, 2};
    config.buckets = buckets;
    config.width = row_width;
    ngrams = std::make_unique<NgramFeatures>(Scope(store, 1), config, outputs);
    store.finalize();
  }
  std::vector<real> operator()(const Ids& tokens) const {
    const Ids segments(tokens.shape(), 1);
    return (*ngrams)(tokens, Context{Segments(segments)}).value().to_vector();
  }
};

/// Writes the parameters; without the rows of zeros of the table, if `sparse`.
void write(const Features& features, const std::string& path, bool sparse) {
  std::vector<TensorToWrite> tensors;
  for (const Param& param : features.store.params()) {
    const real* const values = features.store.values() + param.offset;
    tensors.push_back({param.name, dtype_of(values), param.var.shape().to_vector(), values});
    if (!sparse || param.var.dim(0) != buckets) continue;
    std::vector<unsigned char> bits(static_cast<size_t>(StoredRows::bytes_of(buckets)), 0);
    for (int64_t row = 0; row < buckets; ++row)
      if (values[row * row_width] != 0)
        bits[static_cast<size_t>(row / 8)] |= static_cast<unsigned char>(1U << (row % 8));
    tensors.back().stored = std::make_shared<const StoredRows>(buckets, std::move(bits));
  }
  write_safetensors(path, std::move(tensors));
}

}  // namespace

TEST_CASE("a table that is read to be used has the rows of its file alone, and gives the bits of the whole one") {
  const TemporaryFolder folder;
  Features written(ParamMemory::allocated);
  RandomStream random(random_key(2, "table of a test"));
  for (int64_t i = 0; i < written.store.flat_size(); ++i)
    written.store.values()[i] = static_cast<real>(random.normal());
  real* const table = written.store.values() + written.store.find("table").offset;
  for (int64_t row = 0; row < buckets; ++row)
    if (random.uniform() < 0.75) std::fill_n(table + row * row_width, row_width, real{0});
  std::vector<int32_t> ids;
  for (int i = 0; i < 4 * 50; ++i) ids.push_back(static_cast<int32_t>(random.below(3000)));
  const Ids tokens(Shape{4, 50}, ids);
  const std::vector<real> wanted = written(tokens);
  CHECK(std::count(wanted.begin(), wanted.end(), real{0}) == 0);
  for (const bool sparse : {true, false}) {
    write(written, (folder / "weights").string(), sparse);
    const SafetensorsFile file((folder / "weights").string());
    const size_t before = pool::stats().bytes_in_use;
    Features read(ParamMemory::values);
    load_model(file, read.store);
    const size_t bytes = buckets * row_width * sizeof(real);
    CHECK((pool::stats().bytes_in_use - before < bytes / 2) == sparse);
    const std::vector<real> found = read(tokens);
    CHECK(std::memcmp(found.data(), wanted.data(), found.size() * sizeof(real)) == 0);
  }
}
