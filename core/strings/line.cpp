#include "core/strings/line.hpp"

#include <array>

#include "core/base/error.hpp"

namespace capstan {

bool read_line(std::istream& in, std::string& line, size_t most) {
  line.clear();
  std::array<char, 1 << 12> part;
  for (;;) {
    in.getline(part.data(), part.size());
    const auto count = static_cast<size_t>(in.gcount());
    const bool ended = in.eof(), whole = in.good();
    line.append(part.data(), whole ? count - 1 : count);  // the line's end is counted, and not in `part`
    if (line.size() > most) throw Error(fmt::format("a line has more than {} bytes", most));
    if (whole) return true;
    if (ended || in.bad() || count == 0) return !line.empty();
    in.clear();  // the line is longer than `part`
  }
}

std::string read_all(std::istream& in, const std::string& name, size_t most) {
  std::string text;
  constexpr size_t block = size_t{1} << 16;
  while (in) {
    const size_t before = text.size();
    text.resize(before + block);
    in.read(text.data() + before, static_cast<std::streamsize>(block));
    text.resize(before + static_cast<size_t>(in.gcount()));
    if (text.size() > most)
      throw Error(fmt::format("{}: more than {} million bytes; give less at a time", name, most / 1000000));
  }
  return text;
}

}  // namespace capstan
