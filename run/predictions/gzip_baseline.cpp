// Compares the loss of each file with the size that gzip makes of it. tests/cli/runs/test_eval.cpp.
#include "run/predictions/gzip_baseline.hpp"
#include "run/setup/splits.hpp"

#include <fmt/core.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <string_view>

#include "core/base/error.hpp"
#include "core/strings/strings.hpp"
#include "run/inputs/input_text.hpp"
#include "run/setup/saved_run.hpp"

namespace capstan {
namespace {

/// Loss of every file in nats; each file is a separate document.
std::vector<double> loss_per_file(const SavedRun& run, const FileEvaluation& evaluation) {
  std::vector<double> nats(evaluation.files.size());
  for (int64_t index = 0; index < evaluation.batches->batches_per_epoch(0); ++index) {
    const Batch batch = evaluation.batches->batch(0, index);
    // One row at a time: the loss of a batch is one sum, and a batch may hold windows of several files.
    for (int64_t row = 0; row < batch.tokens.dim(0); ++row) {
      const Batch single = rows_of(batch, row, row + 1);
      const TaskLoss loss = run.model->model().loss(single, Context{Segments(single.segment_ids)});
      nats[evaluation.file_of(batch.examples[row])] += static_cast<double>(loss.sum.value().item());
    }
  }
  return nats;
}

/// Text for people, as opposed to source code and configuration.
bool is_prose(const std::string& name) {
  if (std::filesystem::path(name).filename() == "CMakeLists.txt") return false;
  for (const char* const ending : {".md", ".txt", ".rst", ".adoc", ".tex"})
    if (name != ending && ends_with(name, ending)) return true;
  return false;
}

/// Bytes of `text` compressed by gzip -9, header and trailer included.
int64_t gzip_size(std::string_view text) {
  z_stream stream{};
  constexpr int level = 9, gzip_window = 15 + 16, memory = 8;  // as gzip -9; + 16 asks zlib for gzip's header
  if (deflateInit2(&stream, level, Z_DEFLATED, gzip_window, memory, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error("gzip: zlib could not be initialised");
  constexpr size_t piece = size_t{1} << 30;
  std::vector<unsigned char> out(size_t{1} << 16);
  stream.next_in = reinterpret_cast<unsigned char*>(const_cast<char*>(text.data()));
  int64_t size = 0;
  int status = Z_OK;
  for (size_t given = 0; status == Z_OK;) {
    const size_t part = std::min(text.size() - given, piece);  // zlib counts in 32 bits
    given += part;
    stream.avail_in = static_cast<uInt>(part);
    do {
      stream.next_out = out.data();
      stream.avail_out = static_cast<uInt>(out.size());
      status = deflate(&stream, given == text.size() ? Z_FINISH : Z_NO_FLUSH);
      size += static_cast<int64_t>(out.size() - stream.avail_out);
    } while (stream.avail_out == 0 && status == Z_OK);
  }
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw Error("gzip: zlib could not compress the text");
  return size;
}

}  // namespace

double GzipTally::model_bits() const { return nats / static_cast<double>(bytes) / std::log(2.0); }
double GzipTally::gzip_bits() const { return 8 * static_cast<double>(gzip_bytes) / static_cast<double>(bytes); }

std::vector<GzipTally> compare_with_gzip(const SavedRun& run, const DataSource& data, Split split) {
  run.model->that_predicts(Predicts::next_token);
  require_split(split, run.config, data);
  const FileEvaluation evaluation = data.evaluation_per_file(split);
  const std::vector<double> nats = loss_per_file(run, evaluation);
  GzipTally code{"code"}, prose{"prose"}, all{"all"};
  for (size_t i = 0; i < nats.size(); ++i) {
    const HeldOutFile& file = evaluation.files[i];
    require_finite(nats[i], file.name);
    const int64_t gzip_bytes = gzip_size(file.text());
    for (GzipTally* const tally : {is_prose(file.name) ? &prose : &code, &all}) {
      ++tally->files;
      tally->bytes += file.bytes;
      tally->gzip_bytes += gzip_bytes;
      tally->nats += nats[i];
    }
  }
  std::vector<GzipTally> tallies;
  for (const GzipTally& tally : {code, prose, all})
    if (tally.files > 0) tallies.push_back(tally);
  return tallies;
}

void print_gzip(const std::vector<GzipTally>& tallies, std::ostream& out) {
  out << fmt::format("Held-out files, each on its own, in bits per byte:\n{:<8}{:>7}{:>12}{:>14}{:>12}\n", "", "files",
                     "bytes", "this model", "gzip -9");
  for (const GzipTally& tally : tallies)
    out << fmt::format("{:<8}{:>7}{:>12}{:>14.3f}{:>12.3f}\n", tally.kind, tally.files, tally.bytes, tally.model_bits(),
                       tally.gzip_bits());
}

}  // namespace capstan
