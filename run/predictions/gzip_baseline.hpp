// gzip as a baseline for language models: `capstan eval --compare-gzip`. A file is compressed on its own, and its loss
// is that of a document of its own, so that both count the same bytes. tests/cli/runs/test_eval.cpp holds it.
#pragma once

#include <cstdint>
#include <ostream>
#include <string_view>
#include <vector>

#include "data/batches/data_source.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {

/// Several held-out files, each read on its own.
struct GzipTally {
  const char* kind = "";  // "code", "prose" or "all"
  int64_t files = 0, bytes = 0, gzip_bytes = 0;
  double nats = 0;            // the model's loss, summed over the files
  double model_bits() const;  // bits per byte
  double gzip_bits() const;   // bits per byte
};

/// Code, prose and all files, where there are any. Throws Error for a model that is no language model.
std::vector<GzipTally> compare_with_gzip(const SavedRun& run, const DataSource& data, Split split);

/// Prints bits per byte, of the model and of gzip -9, for each kind of file.
void print_gzip(const std::vector<GzipTally>& tallies, std::ostream& out);

}  // namespace capstan
