#include <doctest/doctest.h>

#include <cstring>
#include <thread>

#include "core/base/out_of_memory.hpp"
#include "core/machine/pool.hpp"
#include "core/ops/ops.hpp"
#include "support/arrays.hpp"

using namespace capstan;

TEST_CASE("blocks are aligned, large enough and waste an eighth at most") {
  for (size_t bytes = 1; bytes < (size_t{40} << 20); bytes = bytes * 5 / 4 + 13) {
    const PoolStats before = pool::stats();
    const Buffer buffer(bytes);
    const size_t taken = pool::stats().bytes_in_use - before.bytes_in_use;
    CHECK(reinterpret_cast<uintptr_t>(buffer.data()) % 64 == 0);
    CHECK(taken >= bytes + 64);
    CHECK(static_cast<double>(taken) <= 1.125 * static_cast<double>(bytes + 128) + 512);
    std::memset(buffer.data(), 0xff, bytes);  // for the address sanitizer
  }
}

TEST_CASE("a block that no system has is refused, and changes nothing") {
  const PoolStats before = pool::stats();
  for (const int shift : {50, 59, 61, 63}) CHECK_THROWS_AS(Buffer(size_t{1} << shift), OutOfMemory);
  CHECK_THROWS_AS(Buffer(~size_t{0}), OutOfMemory);
  CHECK(pool::stats().bytes_in_use == before.bytes_in_use);
  CHECK(pool::stats().peak_in_use == before.peak_in_use);
}

TEST_CASE("a block that was given back is used again") {
  const void* first;
  {
    const Buffer buffer(100000);
    first = buffer.data();
  }
  const PoolStats before = pool::stats();
  const Buffer again(99990);  // the same size class
  CHECK(again.data() == first);
  CHECK(pool::stats().misses == before.misses);
  const Buffer other(100000);
  CHECK(other.data() != first);
}

TEST_CASE("handles share a block; the last one gives it back") {
  const size_t before = pool::stats().bytes_in_use;
  {
    Buffer a(1000);
    CHECK(a.unique());
    {
      const Buffer b = a;  // NOLINT(performance-unnecessary-copy-initialization): the copy is what is tested
      CHECK_FALSE(a.unique());
      CHECK(b.data() == a.data());
    }
    CHECK(a.unique());
    const Buffer moved = std::move(a);
    CHECK(moved.unique());
    CHECK_FALSE(static_cast<bool>(a));  // NOLINT(bugprone-use-after-move): a buffer that was moved from is empty
    CHECK(pool::stats().bytes_in_use > before);
  }
  CHECK(pool::stats().bytes_in_use == before);
}

TEST_CASE("the peak is tracked, and trimming returns what waits") {
  pool::trim();
  pool::reset_peak();
  const PoolStats before = pool::stats();
  CHECK(before.bytes_reserved == before.bytes_in_use);
  { const Buffer buffer(5 << 20); }
  const PoolStats after = pool::stats();
  CHECK(after.peak_in_use >= before.bytes_in_use + (5 << 20));
  CHECK(after.bytes_reserved > after.bytes_in_use);
  pool::trim();
  CHECK(pool::stats().bytes_reserved == before.bytes_reserved);
}

TEST_CASE("shapes that never come back do not pile up") {
  pool::trim();
  const PoolStats before = pool::stats();
  size_t largest = 0;
  for (size_t megabytes = 64; megabytes < 128; ++megabytes) {
    const Buffer buffer(megabytes << 20);
    largest = std::max(largest, pool::stats().bytes_in_use);
    CHECK(pool::stats().bytes_reserved <= 2 * std::max(largest, before.peak_in_use));
  }
  CHECK(pool::stats().bytes_reserved < before.bytes_in_use + (size_t{300} << 20));  // sizes of 8 classes were seen
  pool::trim();
}

TEST_CASE("blocks may be taken and given back by several threads") {
  const size_t before = pool::stats().bytes_in_use;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      std::vector<Buffer> held(8);
      for (size_t i = 0; i < 2000; ++i) {
        const size_t bytes = 64 * (1 + (i * 7 + static_cast<size_t>(thread)) % 50);
        Buffer buffer(bytes);
        std::memset(buffer.data(), thread, bytes);
        held[i % 8] = std::move(buffer);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(pool::stats().bytes_in_use == before);
}

TEST_CASE("steps at a fixed shape take no memory from the system after the first") {
  const Var weight = Var::leaf(random_array({64, 64})), kernel = Var::leaf(random_array({64, 3}));
  const Array x = random_array({4, 32, 64});
  const Segments segments = Segments::full(4, 32);
  const auto step = [&] {
    weight.clear_grad();
    kernel.clear_grad();
    TapeScope scope;
    const Var h = gelu(depthwise_causal_conv(matmul(Var(x), weight), kernel, segments));
    const auto parts = split(softmax(h), 2, {16, 48});
    scope.backward(mean(square(concatenate({parts[1], exp(parts[0])}, -1) + transpose(transpose(h)))));
  };
  step();
  step();  // the first one held no gradients yet
  const uint64_t misses = pool::stats().misses;
  for (int i = 0; i < 5; ++i) step();
  CHECK(pool::stats().misses == misses);
}
