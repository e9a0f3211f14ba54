// The bytes of a session that `capstan serve` saves: a format line, identity and text with their lengths, position,
// recent tokens, the elements of each layer in the order of MixerState::visit(), and the hash of all this. Files that
// servers have saved are read by later ones: another layout is another format line. tests/serve/test_company.cpp.
#include "models/generation/state_bytes.hpp"

#include <cstring>

#include "core/base/error.hpp"
#include "core/io/hash.hpp"

namespace capstan::CAPSTAN_PRECISION {
namespace {

constexpr std::string_view format = "capstan state 1\n";
constexpr size_t hash_digits = 32;

void add_number(std::string& bytes, int64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

/// Takes bytes from the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  std::string_view take(size_t count) {
    if (count > left_.size()) throw Error("state: the bytes end too early: they are not of this model");
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    return taken;
  }
  int64_t number() {
    int64_t number = 0;
    std::memcpy(&number, take(sizeof(number)).data(), sizeof(number));
    return number;
  }
  std::string_view part() {
    const int64_t size = number();
    return take(size < 0 ? left_.size() + 1 : static_cast<size_t>(size));
  }
  size_t left() const { return left_.size(); }

 private:
  std::string_view left_;
};

}  // namespace

std::string state_bytes(DecodeState& state, int64_t row, std::string_view identity, std::string_view more) {
  const auto at = static_cast<size_t>(row);
  std::string bytes(format);
  for (const std::string_view part : {identity, more}) {
    add_number(bytes, static_cast<int64_t>(part.size()));
    bytes += part;
  }
  add_number(bytes, state.positions.at(at));
  const std::vector<int32_t> recent = state.recent.empty() ? std::vector<int32_t>() : state.recent[at];
  add_number(bytes, static_cast<int64_t>(recent.size()));
  bytes.append(reinterpret_cast<const char*>(recent.data()), recent.size() * sizeof(int32_t));
  for (const auto& layer : state.layers)
    layer->visit(row, state.positions[at], [&](real* first, int64_t count) {
      bytes.append(reinterpret_cast<const char*>(first), static_cast<size_t>(count) * sizeof(real));
    });
  return bytes + hash_hex(bytes);
}

std::string set_state(DecodeState& state, int64_t row, std::string_view bytes, std::string_view identity) {
  const auto at = static_cast<size_t>(row);
  if (bytes.size() < format.size() + hash_digits || bytes.substr(0, format.size()) != format)
    throw Error("state: these bytes are no saved state of this version");
  const std::string_view content = bytes.substr(0, bytes.size() - hash_digits);
  if (hash_hex(content) != bytes.substr(content.size())) throw Error("state: the bytes are damaged");
  Reader reader(content.substr(format.size()));
  if (reader.part() != identity) throw Error("state: these bytes are of a model with other weights");
  const std::string_view more = reader.part();
  const int64_t position = reader.number(), recent = reader.number();
  // Every position of a growing state has elements, so that a number of bytes bounds what is allocated.
  if (position < 0 || position >= int64_t{1} << 40 || recent < 0 || recent > 64 ||
      (recent > 0 && state.recent.empty()) || bytes_per_sequence(state, position) > static_cast<int64_t>(bytes.size()))
    throw Error("state: the bytes are not of this model");
  const std::string_view tokens = reader.take(static_cast<size_t>(recent) * sizeof(int32_t));
  if (!state.recent.empty()) {
    state.recent[at].resize(static_cast<size_t>(recent));
    std::memcpy(state.recent[at].data(), tokens.data(), tokens.size());
  }
  state.positions.at(at) = position;
  for (const auto& layer : state.layers)
    layer->visit(row, position, [&](real* first, int64_t count) {
      const std::string_view elements = reader.take(static_cast<size_t>(count) * sizeof(real));
      std::memcpy(first, elements.data(), elements.size());
    });
  if (reader.left() > 0) throw Error("state: there are more bytes than this model has elements");
  return std::string(more);
}

int64_t bytes_per_sequence(const DecodeState& state, int64_t position) {
  int64_t elements = 0;
  for (const auto& layer : state.layers) elements += layer->elements(position);
  return elements * static_cast<int64_t>(sizeof(real));
}

}  // namespace capstan::CAPSTAN_PRECISION
