// tests/cli/runs/test_commands.cpp.
#include "run/inputs/text_batches.hpp"

#include <utility>

#include "core/base/error.hpp"
#include "run/inputs/input_text.hpp"

namespace capstan {

void for_each_batch(TextInput& texts, size_t size, const std::function<void(const std::vector<InputText>&)>& take) {
  std::vector<InputText> batch;
  const auto hand_on = [&] {
    const std::vector<InputText> full = std::exchange(batch, {});
    if (full.empty()) return;
    try {
      take(full);
    } catch (const TextError& error) {
      const auto index = static_cast<std::ptrdiff_t>(error.index());
      if (index > 0) take({full.begin(), full.begin() + index});
      throw;
    }
  };
  try {
    for (InputText text; texts.next(text);) {
      batch.push_back(std::move(text));
      if (batch.size() >= size || texts.idle()) hand_on();
    }
  } catch (const Error&) {
    hand_on();  // the texts that precede the one that cannot be read
    throw;
  }
  hand_on();
}

}  // namespace capstan
