// Reused, 64-byte-aligned memory blocks. A fresh allocation of a few megabytes costs several times the arithmetic done
// on it (page faults), so blocks go back to the pool and come out again: after the first step at a fixed shape a
// training step takes no memory from the system. The pool holds at most twice what was in use at once so far, and 16
// MB. Every Array is in such a block. tests/core/machine/test_pool.cpp holds the limit and what is reused.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace capstan {

/// Counts of the pool: blocks from the system, and bytes held.
struct PoolStats {
  uint64_t misses = 0;        // blocks that had to come from the system
  size_t bytes_in_use = 0;    // of blocks that a Buffer owns
  size_t peak_in_use = 0;     // highest bytes_in_use since the last reset_peak()
  size_t bytes_reserved = 0;  // in use or waiting to be reused
};

/// The process-wide pool. Thread-safe. Size classes: eight per octave.
namespace pool {

PoolStats stats();
void reset_peak();
/// Returns every waiting block to the system: between phases of different shapes (training, evaluation).
void trim();

}  // namespace pool

/// Shared ownership of one pool block; the count lives in the block itself.
class Buffer {
 public:
  Buffer() = default;
  /// An uninitialised block of at least `bytes` bytes. Throws OutOfMemory.
  explicit Buffer(size_t bytes);
  Buffer(const Buffer& other) noexcept : header_(other.header_) { retain(); }
  Buffer(Buffer&& other) noexcept : header_(std::exchange(other.header_, nullptr)) {}
  Buffer& operator=(Buffer other) noexcept {
    std::swap(header_, other.header_);
    return *this;
  }
  ~Buffer() { release(); }

  /// The block's memory, 64-byte-aligned. Must not be called on an empty Buffer.
  void* data() const;
  /// Is this the only handle on the block?
  bool unique() const;
  explicit operator bool() const { return header_ != nullptr; }

  struct Header;

 private:
  void retain() noexcept;
  void release() noexcept;

  Header* header_ = nullptr;
};

}  // namespace capstan
