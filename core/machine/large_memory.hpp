// Memory for tables of many megabytes, whose pages the threads that fill them are the first to touch.
// tests/train/linear/test_online_classifier.cpp and test_linear.cpp use it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace capstan {

/// For vectors that grow without being set to zero.
template <class T>
struct DefaultInitAllocator : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = DefaultInitAllocator<U>;
  };
  template <class U, class... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    if constexpr (sizeof...(arguments) > 0) ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
  }
};

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

/// Elements that begin as zeros. Pages that nothing was written to take no memory.
template <class T>
using ZeroPages = std::unique_ptr<T[], FreeMemory>;

/// Throws std::bad_alloc.
template <class T>
ZeroPages<T> zero_pages(int64_t count) {
  void* const memory = std::calloc(static_cast<size_t>(count), sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return ZeroPages<T>(static_cast<T*>(memory));
}

}  // namespace capstan
