// state.json. The first byte says whether the rest is the file or its content, which then gets a checksum that is
// right.
#include <nlohmann/json.hpp>

#include "core/io/hash.hpp"
#include "core/io/json.hpp"
#include "tests/fuzz/target.hpp"
#include "train/checkpoints/run_state.hpp"

namespace capstan::fuzz {
namespace {

void read_state(std::string_view input) {
  std::string text;
  if (choose(input, 4) == 0) {
    text = input;
  } else {
    const nlohmann::json content = parse_json(input);
    text = json_text({{"state", content}, {"xxh3_128", hash_hex(json_text(content))}});
  }
  const RunState state = run_state_from_json(text, "input");
  const std::string written = to_json(state);
  const RunState again =
      must("a state that was written is read", [&] { return run_state_from_json(written, "input"); });
  require(to_json(again) == written, "a state that was written is read as the same");
}

const Registered state_target("state", read_state);

}  // namespace
}  // namespace capstan::fuzz
