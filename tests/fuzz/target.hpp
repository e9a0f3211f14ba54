// A reader that is called with whatever a fuzzer makes up.
//
// With libFuzzer (preset `fuzz`, scripts/fuzz.sh), each target is a program of its own. Everywhere, the program
// test_fuzz calls every target with the files of tests/fuzz/corpus/<name>.
#pragma once

#include <cstddef>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"

namespace capstan::fuzz {

/// Reads `input`. May throw capstan::Error, which is what a reader does with bad input; any other exception, a signal,
/// a leak or a report of a sanitizer is a finding. So is a broken promise: see require().
using Read = void (*)(std::string_view input);

/// Makes another input of at most `most` bytes from one, for readers that would refuse almost all random changes of
/// bytes. `change` makes such a random change in place.
using Change = std::function<void(std::string& bytes, size_t most)>;
using Mutate = std::string (*)(const std::string& input, size_t most, std::mt19937& random, const Change& change);

struct Target {
  std::string name;
  Read read;
  Mutate mutate;  // may be null
};

/// All targets of this program.
std::vector<Target>& targets();

/// Adds a target: `const Registered added("json", read_json);`
struct Registered {
  Registered(std::string name, Read read, Mutate mutate = nullptr) {
    targets().push_back({std::move(name), read, mutate});
  }
};

/// Calls target.read and swallows capstan::Error.
void run(const Target& target, std::string_view input);

/// Ends the program unless `promise` holds.
void require(bool promise, const char* what);

/// What `f` returns; ends the program if it throws Error, which run() would take for bad input.
template <class F>
auto must(const char* what, const F& f) {
  try {
    return f();
  } catch (const Error&) {
    require(false, what);
    throw;
  }
}

/// Splits off the first `size` bytes, or what there is of them.
std::string_view take(std::string_view& input, size_t size);

/// One of `count`, from the first byte of the input, which is split off.
size_t choose(std::string_view& input, size_t count);

/// A file in memory with this content, for readers that want a path. The next one takes its place.
std::string file_in_memory(std::string_view content, const std::string& ending);

}  // namespace capstan::fuzz
