// Runs a function for every text in parallel, and throws the error of the first text that failed, with its number, so
// that which error is reported does not depend on threads. tests/run/test_run.cpp and tests/serve/test_endpoints.cpp.
#include "run/inputs/input_text.hpp"

#include <exception>

#include "core/autograd/tape.hpp"
#include "core/machine/parallel.hpp"

namespace capstan {

void throw_not_finite(const std::string& place, double value) {
  throw NotFinite(
      fmt::format("{}: the model computes {} for this text: its weights are damaged or its training diverged", place,
                  std::isnan(value) ? std::abs(value) : value));
}

void for_each_text(size_t count, const std::function<void(size_t)>& body) {
  std::vector<std::exception_ptr> errors(count);
  parallel_units(static_cast<int64_t>(count), [&](int64_t unit) {
    const OneThread alone;
    const TapePause no_tape;
    const auto i = static_cast<size_t>(unit);
    try {
      body(i);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  });
  for (size_t i = 0; i < count; ++i) {
    if (errors[i] == nullptr) continue;
    try {
      std::rethrow_exception(errors[i]);
    } catch (const Error& error) {
      throw TextError(i, error);
    }
  }
}

}  // namespace capstan
