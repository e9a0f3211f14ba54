// What libFuzzer calls: the one target that is linked to this.
#include <cstdint>
#include <cstring>

#include "tests/fuzz/target.hpp"

using namespace capstan::fuzz;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  run(targets().front(), {reinterpret_cast<const char*>(data), size});
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const Mutate mutate = targets().front().mutate;
  std::mt19937 random(seed);
  // One time in eight, bytes are changed without regard to what they mean.
  if (mutate == nullptr || random() % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const Change change = [](std::string& bytes, size_t most) {
    const size_t before = bytes.size();
    bytes.resize(std::max(before, most));
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), before, bytes.size()));
  };
  const std::string result = mutate({reinterpret_cast<const char*>(data), size}, max_size, random, change);
  const size_t length = std::min(result.size(), max_size);
  std::memcpy(data, result.data(), length);
  return length;
}
