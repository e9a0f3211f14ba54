// A portable build has a KernelTable per library, made before main() in any order; the first one makes State. To choose
// a level is to copy the addresses of its kernels into the slots through which they are called.
#include "core/machine/kernel_levels.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>
#include <xsimd/xsimd.hpp>

#include "core/base/error.hpp"

namespace capstan {
namespace {

constexpr size_t level_count = std::tuple_size<KernelTable::Levels>::value;
constexpr std::array<const char*, level_count> names = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};

#if !defined(__x86_64__)
bool cpu_has_v3() { return false; }
bool cpu_has_v4() { return false; }
#elif defined(__clang__)  // Clang 14 knows the names of features, not of levels
bool cpu_has_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2");
}
bool cpu_has_v4() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
bool cpu_has_v3() { return __builtin_cpu_supports("x86-64-v3"); }
bool cpu_has_v4() { return __builtin_cpu_supports("x86-64-v4"); }
#endif

/// How many of the levels this CPU has. Code outside of kernels is compiled for the first level.
size_t usable_levels() {
  if (!cpu_has_v3()) return 1;
  return cpu_has_v4() ? 3 : 2;
}

/// The index of `name`; level_count when no level has this name.
size_t number_of(const std::string& name) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

const char* environment_choice() {
  const char* const name = std::getenv("CAPSTAN_CPU");
  return name != nullptr && *name != '\0' ? name : nullptr;
}

/// The KernelTables, one per library with kernels and none in a native build, and the level in use. Made before main().
struct State {
  std::vector<KernelTable> tables;
  size_t level;

  State() : level(usable_levels() - 1) {
    const char* const name = environment_choice();
    if (name != nullptr && cpu_has_level(name)) level = number_of(name);
  }
};

State& state() {
  static State the_state;
  return the_state;
}

/// Why the kernels of `level` cannot be used; empty when they can.
std::string refusal(const std::string& level) {
  if (state().tables.empty())
    return fmt::format(
        "this build has only {} kernels, for the machine it was built on; levels exist only in portable "
        "builds (cmake --preset portable)",
        kernel_level());
  if (cpu_has_level(level)) return "";
  std::string usable;
  for (size_t i = 0; i < usable_levels(); ++i) usable += fmt::format("{}{}", i == 0 ? "" : ", ", names[i]);
  const bool known = number_of(level) < level_count;
  return fmt::format("{}; it can be {}", known ? "this CPU cannot run it" : "there is no such level", usable);
}

}  // namespace

KernelTable::KernelTable(KernelAddress* slots, size_t count, const Levels& levels)
    : slots_(slots), count_(count), levels_(levels) {
  use(state().level);
  state().tables.push_back(*this);
}

void KernelTable::use(size_t level) const { std::copy_n(levels_[level], count_, slots_); }

std::string kernel_level() { return state().tables.empty() ? xsimd::default_arch::name() : names[state().level]; }

bool cpu_has_level(const std::string& level) { return number_of(level) < usable_levels(); }

void set_kernel_level(const std::string& level) {
  if (const std::string reason = refusal(level); !reason.empty())
    throw ConfigError(fmt::format("kernels for {}: {}", level, reason));
  state().level = number_of(level);
  for (const KernelTable& table : state().tables) table.use(state().level);
}

void check_kernel_choice() {
  const char* const name = environment_choice();
  if (name == nullptr) return;
  if (const std::string reason = refusal(name); !reason.empty())
    throw ConfigError(fmt::format("CAPSTAN_CPU={}: {}; unset it to use the best level", name, reason));
}

}  // namespace capstan
