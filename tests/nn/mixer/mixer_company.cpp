// Sequences of one state that join and leave it: each is as if it were alone.
#include "core/array/selected_rows.hpp"
#include "tests/nn/mixer/mixer_suite.hpp"

#include <doctest/doctest.h>

#include "core/array/layout.hpp"

namespace capstan::CAPSTAN_PRECISION::testing {

namespace {

constexpr int64_t longest_text = 150;

/// A text of its own: x (1, T, D), what it is read with first, and its outputs when it is alone.
struct Text {
  Array x, y;
  int64_t prompt;
};

std::vector<Text> texts_alone(const Mixer& mixer, RandomStream& random, int64_t longest) {
  std::vector<Text> texts;
  for (uint64_t i = 0; i < 7; ++i) {
    const int64_t end = 2 + static_cast<int64_t>(random.below(static_cast<uint64_t>(longest - 1)));
    Text text{normal_array({1, end, width}, 30 + i), Array(),
              static_cast<int64_t>(random.below(static_cast<uint64_t>(end)))};
    text.y = decoded(mixer, text.x, text.prompt, *mixer.make_state(1));
    texts.push_back(std::move(text));
  }
  return texts;
}

/// Texts join and leave a state of three sequences at random; each output is compared with that of the text alone.
bool same_in_company(const Mixer& mixer, const std::vector<Text>& texts, RandomStream& random) {
  const auto slots = mixer.make_state(3), reader = mixer.make_state(1);
  std::vector<const Text*> active;
  size_t next = 0;
  bool same = true;
  while (next < texts.size() || !active.empty()) {
    while (active.size() < 3 && next < texts.size() && (active.empty() || random.below(4) == 0)) {
      const Text& text = texts[next++];
      reader->reset();
      const Array y = mixer.prefill(Var(tokens(text.x, 0, text.prompt)), *reader).value();
      same = same && identical(y, tokens(text.y, 0, text.prompt));
      slots->copy(static_cast<int64_t>(active.size()), *reader, 0);
      active.push_back(&text);
    }
    const auto rows = static_cast<int64_t>(active.size());
    Array x(Shape{rows, width});
    for (int64_t row = 0; row < rows; ++row)
      copy_row(x, row, active[static_cast<size_t>(row)]->x.reshape({active[static_cast<size_t>(row)]->x.dim(1), width}),
               slots->position(row));
    const Array y = mixer.step(Var(x), *slots).value();
    for (int64_t row = rows; row-- > 0;) {
      const Text& text = *active[static_cast<size_t>(row)];
      const int64_t t = slots->position(row);
      same = same && identical(y.rows(row, row + 1), tokens(text.y, t - 1, t).reshape({1, width}));
      if (t < text.x.dim(1)) continue;
      active[static_cast<size_t>(row)] = active.back();
      slots->copy(row, *slots, static_cast<int64_t>(active.size()) - 1);
      active.pop_back();
    }
  }
  return same;
}

}  // namespace

void check_company(const MixerCase& c) {
  INFO(c.name);
  const int64_t longest = c.boundary > 0 ? std::min(longest_text, 3 * c.boundary + 5) : 61;
  const auto built = built_mixer(c, /*causal=*/true, c.any_length ? 11 : longest);
  RandomStream random(random_key(5, "company"));
  std::vector<Text> texts;
  {
    const Threads one_thread(1);
    texts = texts_alone(*built.module, random, longest);
  }
  for (const int count : {1, 2}) {
    const Threads threads_used(count);
    CHECK_MESSAGE(same_in_company(*built.module, texts, random), c.name, ", threads ", count);
  }
}

}  // namespace capstan::CAPSTAN_PRECISION::testing
