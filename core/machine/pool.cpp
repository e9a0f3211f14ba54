// The pool: a list of free blocks for each size class, under one lock. A header in the 64 bytes in front of a block's
// data has the number of owners and the class, so that a handle is one pointer and no search is needed.
// tests/core/machine/test_pool.cpp.
#include "core/machine/pool.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <new>

#include "core/base/out_of_memory.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace capstan {

struct Buffer::Header {
  std::atomic<int64_t> owners;
  size_t size_class;
  Header* next;  // while the block waits in its free list
};

namespace {

constexpr size_t alignment = 64;
constexpr size_t header_bytes = alignment;
static_assert(sizeof(Buffer::Header) <= header_bytes);
constexpr size_t huge_page = size_t{2} << 20;
constexpr size_t largest_block = size_t{1} << 60;  // rounded up to its class, it still fits into size_t
constexpr size_t classes_per_octave = 8;
constexpr size_t class_count = 64 * classes_per_octave;

/// Class k holds (8 + k % 8) << (k / 8) units of 64 bytes: steps of at most one eighth, so at most 12.5 % is wasted.
size_t class_units(size_t size_class) {
  return (classes_per_octave + size_class % classes_per_octave) << (size_class / classes_per_octave);
}

size_t class_of(size_t bytes) {
  const size_t units = std::max<size_t>((bytes + alignment - 1) / alignment, classes_per_octave);
  const size_t octave = 63 - static_cast<size_t>(__builtin_clzll(units)) - 3;  // units >> octave is in [8, 16)
  const size_t eighth = (units + (size_t{1} << octave) - 1) >> octave;         // rounded up, may reach 16
  return octave * classes_per_octave + (eighth - classes_per_octave);
}

size_t class_bytes(size_t size_class) { return class_units(size_class) * alignment; }

/// Opens the first `usable` bytes of a block to AddressSanitizer and closes the rest: reuse and rounding up would hide
/// from it every access past the bytes asked for, and every access after they were returned.
void mark([[maybe_unused]] Buffer::Header* block, [[maybe_unused]] size_t usable) {
#if defined(__SANITIZE_ADDRESS__)
  char* const data = reinterpret_cast<char*>(block) + header_bytes;
  ASAN_UNPOISON_MEMORY_REGION(data, usable);
  ASAN_POISON_MEMORY_REGION(data + usable, class_bytes(block->size_class) - header_bytes - usable);
#endif
}

/// The lists of free blocks, and counts of their use.
class Pool {
 public:
  Buffer::Header* take(size_t bytes) {
    if (bytes > largest_block) throw OutOfMemory(bytes);
    const size_t size_class = class_of(bytes + header_bytes);
    const std::lock_guard lock(mutex_);
    last_taken_[size_class] = ++takes_;
    Buffer::Header* block = free_[size_class];
    if (block == nullptr) {
      make_room(class_bytes(size_class));
      block = from_system(size_class, bytes);
    } else {
      free_[size_class] = block->next;
      block->owners.store(1, std::memory_order_relaxed);
    }
    stats_.bytes_in_use += class_bytes(size_class);
    stats_.peak_in_use = std::max(stats_.peak_in_use, stats_.bytes_in_use);
    highest_ = std::max(highest_, stats_.bytes_in_use);
    mark(block, bytes);
    return block;
  }

  void give(Buffer::Header* block) {
    const std::lock_guard lock(mutex_);
    stats_.bytes_in_use -= class_bytes(block->size_class);
    block->next = std::exchange(free_[block->size_class], block);
    mark(block, 0);
  }

  void trim() {
    const std::lock_guard lock(mutex_);
    drop_all();
  }

  PoolStats stats() {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    stats_.peak_in_use = stats_.bytes_in_use;
  }

 private:
  /// Bytes that the pool always may hold: returning so little at each change between training and evaluation of a small
  /// model would scatter the heap.
  static constexpr size_t small_reserve = size_t{16} << 20;

  /// Batches of varying lengths leave blocks of many classes. If the pool would hold more than small_reserve and twice
  /// the highest use so far, it frees the classes that have been unused for longest. Steps of a fixed shape never call
  /// this, because they find all their blocks in the pool.
  void make_room(size_t bytes) {
    while (stats_.bytes_reserved + bytes > 2 * std::max(highest_, stats_.bytes_in_use + bytes) + small_reserve) {
      size_t oldest = class_count;
      for (size_t size_class = 0; size_class < class_count; ++size_class)
        if (free_[size_class] != nullptr && (oldest == class_count || last_taken_[size_class] < last_taken_[oldest]))
          oldest = size_class;
      if (oldest == class_count) return;
      drop(oldest);
    }
  }

  /// Returns one waiting block to the system.
  void drop(size_t size_class) {
    Buffer::Header* const block = std::exchange(free_[size_class], free_[size_class]->next);
    stats_.bytes_reserved -= class_bytes(size_class);
    std::free(block);
  }

  void drop_all() {
    for (size_t size_class = 0; size_class < class_count; ++size_class)
      while (free_[size_class] != nullptr) drop(size_class);
  }

  Buffer::Header* from_system(size_t size_class, size_t wanted) {
    const size_t bytes = class_bytes(size_class);
    const bool large = bytes >= 2 * huge_page;
    const size_t unit = large ? huge_page : alignment, rounded = (bytes + unit - 1) & ~(unit - 1);
    void* memory = std::aligned_alloc(unit, rounded);
    if (memory == nullptr) {  // the blocks that wait for reuse may be enough: give them back and try again
      drop_all();
      memory = std::aligned_alloc(unit, rounded);
    }
    if (memory == nullptr) throw OutOfMemory(wanted);
    // Huge pages make the first touch of the memory eight times cheaper; later accesses are as fast as with small
    // pages.
    if (large) madvise(memory, bytes, MADV_HUGEPAGE);
    ++stats_.misses;
    stats_.bytes_reserved += bytes;
    return new (memory) Buffer::Header{{1}, size_class, nullptr};
  }

  std::mutex mutex_;
  std::array<Buffer::Header*, class_count> free_{};
  std::array<uint64_t, class_count> last_taken_{};  // takes_ when a block of the class was taken last
  uint64_t takes_ = 0;
  size_t highest_ = 0;  // bytes ever in use at once
  PoolStats stats_;
};

/// Never destroyed: arrays in static storage may outlive any other static object.
Pool& instance() {
  static Pool* const pool = new Pool;
  return *pool;
}

}  // namespace

namespace pool {

PoolStats stats() { return instance().stats(); }
void reset_peak() { instance().reset_peak(); }
void trim() { instance().trim(); }

}  // namespace pool

Buffer::Buffer(size_t bytes) : header_(instance().take(bytes)) {}

void* Buffer::data() const { return reinterpret_cast<char*>(header_) + header_bytes; }

bool Buffer::unique() const { return header_ != nullptr && header_->owners.load(std::memory_order_acquire) == 1; }

void Buffer::retain() noexcept {
  if (header_ != nullptr) header_->owners.fetch_add(1, std::memory_order_relaxed);
}

void Buffer::release() noexcept {
  if (header_ != nullptr && header_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) instance().give(header_);
}

}  // namespace capstan
