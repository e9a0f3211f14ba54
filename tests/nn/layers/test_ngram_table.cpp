// The table of a linear classifier as it is read from a file.
#include "nn/layers/ngram_table.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "core/base/random.hpp"
#include "core/io/tensor_rows.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {
namespace {

constexpr int64_t buckets = 4096, classes = 5;

const NgramOrders orders{{1, 2}, {2, 3, 4}, true, true};

struct Tables {
  Array scale = Array::zeros(Shape{buckets}), weight = Array::zeros(Shape{buckets, classes});

  /// A share of the buckets has a scale; a few of these have no weights, and a few others have weights alone.
  explicit Tables(double share) {
    RandomStream random(random_key(5, "tables of a test"));
    real *const scales = scale.mutable_data(), *const weights = weight.mutable_data();
    for (int64_t bucket = 0; bucket < buckets; ++bucket) {
      if (random.uniform() < share) scales[bucket] = static_cast<real>(1 + random.uniform());
      if ((random.uniform() < 0.05) == (scales[bucket] != 0)) continue;
      for (int64_t c = 0; c < classes; ++c) weights[bucket * classes + c] = static_cast<real>(random.normal());
    }
  }
};

/// A tensor as a file has it: without rows of zeros, if it is sparse.
struct StoredTensor {
  std::vector<real> values;
  FileTensor tensor;

  StoredTensor(const Array& array, bool sparse) {
    const int64_t rows = array.dim(0), width = array.size() / rows;
    const auto is_stored = [&](int64_t row) {
      const real* const begin = array.data() + row * width;
      return !sparse || std::any_of(begin, begin + width, [](real value) { return value != 0; });
    };
    for (int64_t row = 0; row < rows; ++row)
      if (is_stored(row)) values.insert(values.end(), array.data() + row * width, array.data() + (row + 1) * width);
    tensor.dtype = dtype_of(values.data());
    tensor.shape = array.shape().to_vector();
    tensor.size = array.size();
    tensor.bytes = reinterpret_cast<const unsigned char*>(values.data());
    if (sparse) tensor.stored = rows_to_store(rows, is_stored);
  }
};

std::vector<double> sums_of(const NgramTable& table, const std::string& text) {
  std::vector<double> sums(classes, 0.25);
  table.add_text(text, sums.data());
  return sums;
}

/// Words of which many occur again, some of them not of ASCII.
std::string text_of(RandomStream& random, size_t words) {
  std::string text;
  for (size_t word = 0; word < words; ++word) {
    for (uint64_t letters = random.below(word % 2 == 0 ? 12 : 3); letters > 0; --letters)
      text += random.below(40) == 0 ? "\u00e9" : std::string(1, static_cast<char>('a' + random.below(20)));
    text += random.below(9) == 0 ? ", " : " ";
  }
  return text;
}

TEST_CASE("n-gram tables: the rows of a file give the bits of the whole tables") {
  for (const double share : {0.0, 0.02, 0.5, 1.0}) {
    const Tables tables(share);
    const NgramTable whole(orders, tables.scale, tables.weight);
    for (const bool sparse : {false, true}) {
      const NgramTable read(orders, StoredTensor(tables.scale, sparse).tensor,
                            StoredTensor(tables.weight, sparse).tensor);
      CHECK(read.buckets() == buckets);
      CHECK(read.classes() == classes);
      for (int64_t bucket = 0; bucket < buckets; ++bucket) {
        REQUIRE(read.scale(bucket) == whole.scale(bucket));
        REQUIRE((read.weights(bucket) != nullptr) == (whole.scale(bucket) != 0));
        if (read.weights(bucket) != nullptr)
          REQUIRE(std::memcmp(read.weights(bucket), whole.weights(bucket), classes * sizeof(real)) == 0);
      }
      RandomStream random(random_key(6, "texts of a test"));
      for (const size_t words : {0, 1, 5, 20, 50, 200, 2000, 70000, 5}) {  // more than are remembered
        const std::string text = text_of(random, words);
        const std::vector<double> a = sums_of(whole, text), b = sums_of(read, text), again = sums_of(read, text);
        CHECK(std::memcmp(a.data(), b.data(), classes * sizeof(double)) == 0);
        CHECK(again == b);
      }
    }
  }
}

}  // namespace
}  // namespace capstan::CAPSTAN_PRECISION::testing
