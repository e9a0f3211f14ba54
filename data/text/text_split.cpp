// A file is copied while there is room in memory, or mapped and read part by part; packed ones are copied in any case,
// and so is what is left without lines that are not UTF-8. Copies have no name, so that nothing is left behind. Splits
// are cut by share of bytes at places that do not change the tokens, or chosen by the hash of the files' names.
#include "data/text/text_split.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.hpp"
#include "core/base/random.hpp"
#include "core/strings/utf8.hpp"
#include "data/files/file_kind.hpp"
#include "data/files/text_file.hpp"

namespace capstan {
namespace {

/// Throws Error unless bytes [begin, end) are UTF-8. Goes part by part, so that a line may be larger than the memory.
void check_line(const Text& text, size_t begin, size_t end, const std::string& path, int64_t number) {
  TextPlace place{number, 1};
  while (begin < end) {
    const std::string_view rest = text.view().substr(begin, end - begin);
    const size_t boundary = character_boundary(rest, text_block), size = boundary > 0 ? boundary : rest.size();
    check_utf8(rest.substr(0, size), path, place);
    if (begin + size < end) text.release(begin, begin + size);
    begin += size;
  }
}

/// Calls keep(begin, end) for each stretch between lines that are not UTF-8, which go to `bad`; never if all lines are
/// UTF-8.
template <class Keep>
void leave_out_bad_lines(const Text& text, const std::string& path, BadRows& bad, const Keep& keep) {
  const size_t size = text.view().size();
  size_t kept = 0, passed = 0;
  int64_t number = 1;
  for (size_t at = 0, end = 0; at < size; at = end, ++number) {
    end = std::min(find(text, "\n", at), size - 1) + 1;
    if (!bad.guard([&] { check_line(text, at, end, path, number); })) {
      keep(kept, at);
      kept = end;
    }
    if (end - passed >= text_block || end == size) {
      text.pass(passed, end);
      passed = end;
    }
  }
  if (kept > 0) keep(kept, size);
}

/// `in_memory`: how many bytes of copies are held there; the others are in the folder `scratch`.
SourceText read_source(const FoundFile& file, bool utf8, const std::string& scratch, size_t in_memory,
                       Progress* progress, BadRows& bad) {
  SourceText source;
  source.file = file;
  source.size = static_cast<size_t>(RegularFile(file.path).size());
  if (is_packed_name(file.path) || source.size <= in_memory) {
    source.copy = std::make_shared<ByteStore>(scratch, in_memory);
    for (TextReader reader(file.path, max_file_mb); !reader.at_end();) source.copy->append(reader.piece());
    source.size = static_cast<size_t>(source.copy->size());
  }
  if (source.size == 0) throw empty_file(file.path);
  const Text text = source.open(0, source.size, progress);
  check_not_packed(text.view(), file.path);
  if (!utf8) return source;
  check_is_text(text.view(), file.path);
  std::shared_ptr<ByteStore> good;
  leave_out_bad_lines(text, file.path, bad, [&](size_t begin, size_t end) {
    if (!good) good = std::make_shared<ByteStore>(scratch, in_memory);
    for (size_t at = begin; at < end; at += text_block) {
      const size_t size = std::min(text_block, end - at);
      good->append(text.view().substr(at, size));
      text.release(at, at + size);
    }
  });
  if (!good) return source;
  source.copy = std::move(good);
  source.size = static_cast<size_t>(source.copy->size());
  return source;
}

/// Where a text is cut after about this share of it: the boundary says how far back.
size_t cut_position(std::string_view text, double share, const Boundary& boundary) {
  // 1 - 0.05 - 0.05 is a little less than 0.9: a product just below a whole number is that number.
  constexpr double rounding = 1e-12;
  return boundary(text, static_cast<size_t>(std::floor(static_cast<double>(text.size()) * share * (1 + rounding))));
}

void add_piece(std::vector<Piece>& pieces, const SourceText& file, size_t begin, size_t end) {
  if (end > begin) pieces.push_back({&file, begin, end});
}

void add_whole(const std::vector<SourceText>& files, std::vector<Piece>& pieces) {
  for (const SourceText& file : files) add_piece(pieces, file, 0, file.size);
}

void split_tails(const std::vector<SourceText>& files, double valid, double test, const Boundary& boundary,
                 Pieces& pieces) {
  for (const SourceText& file : files) {
    const Text text = file.open(0, file.size);
    const size_t end = file.size;
    const size_t test_begin = test > 0 ? cut_position(text.view(), 1 - test, boundary) : end;
    const size_t valid_begin = valid > 0 ? cut_position(text.view(), 1 - valid - test, boundary) : test_begin;
    add_piece(pieces.train, file, 0, valid_begin);
    add_piece(pieces.valid, file, valid_begin, test_begin);
    add_piece(pieces.test, file, test_begin, end);
  }
}

void split_files(const std::vector<SourceText>& files, double valid, double test, Pieces& pieces) {
  std::vector<size_t> order(files.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::make_pair(hash_path(files[a].file.name), a) < std::make_pair(hash_path(files[b].file.name), b);
  });
  const auto share = [&](double fraction) {
    return fraction > 0
               ? std::max<size_t>(1, static_cast<size_t>(std::llround(static_cast<double>(files.size()) * fraction)))
               : 0;
  };
  const size_t valid_files = share(valid), test_files = share(test);
  if (valid_files + test_files >= files.size())
    throw Error(
        fmt::format("data: split by-file holds {} of {} files out and leaves none to train on; name more files, lower "
                    "the fractions, or use split: tail",
                    valid_files + test_files, files.size()));
  std::vector<Split> splits(files.size(), Split::train);
  for (size_t i = 0; i < valid_files + test_files; ++i) splits[order[i]] = i < valid_files ? Split::valid : Split::test;
  for (size_t i = 0; i < files.size(); ++i) add_piece(pieces[splits[i]], files[i], 0, files[i].size);
}

}  // namespace

Text SourceText::open(size_t begin, size_t end, Progress* progress) const {
  if (copy && copy->in_memory()) return Text(copy->view().substr(begin, end - begin), progress);
  const auto mapped = copy ? copy->map() : std::make_shared<const MappedFile>(file.path);
  if (mapped->size() < size)
    throw Error(fmt::format("{}: the file became shorter while it was read: run again", file.path));
  return Text(mapped, begin, end, progress);
}

std::vector<SourceText> read_sources(const std::vector<FoundFile>& files, bool utf8, const SourceInputs& inputs,
                                     Progress* progress, BadRows& bad) {
  std::vector<SourceText> sources;
  size_t left = inputs.max_in_memory;
  for (const FoundFile& file : files) {
    const SourceText& source = sources.emplace_back(read_source(file, utf8, inputs.scratch, left, progress, bad));
    if (source.copy && source.copy->in_memory()) left -= std::min(left, source.size);
  }
  return sources;
}

Pieces split_sources(const PerSplit<std::vector<SourceText>>& files, const TextSourceConfig& config,
                     const Boundary& boundary) {
  const double valid = config.valid_share(), test = config.test_share();
  Pieces pieces;
  if (valid + test > 0 && config.split == TextSplit::by_file)
    split_files(files.train, valid, test, pieces);
  else
    split_tails(files.train, valid, test, boundary, pieces);
  add_whole(files.valid, pieces.valid);
  add_whole(files.test, pieces.test);
  return pieces;
}

Texts texts_of(const std::vector<Piece>& pieces, Progress* progress) {
  return Texts(pieces.size(), static_cast<int64_t>(bytes_of(pieces)),
               [&pieces, progress](size_t i) { return pieces[i].open(progress); });
}

std::vector<Piece> without(std::string_view marker, const std::vector<Piece>& pieces) {
  std::vector<Piece> parts;
  for (const Piece& piece : pieces) {
    const Text text = piece.open();
    size_t begin = piece.begin;
    const auto add = [&](size_t end) {
      if (end > begin) parts.push_back({piece.source, begin, end});
    };
    for (size_t at = find(text, marker, 0); at != std::string_view::npos; at = find(text, marker, at + marker.size())) {
      add(piece.begin + at);
      begin = piece.begin + at + marker.size();
    }
    add(piece.end);
  }
  return parts;
}

size_t bytes_of(const std::vector<Piece>& pieces) {
  return std::accumulate(pieces.begin(), pieces.end(), size_t{0},
                         [](size_t sum, const Piece& piece) { return sum + (piece.end - piece.begin); });
}

}  // namespace capstan
