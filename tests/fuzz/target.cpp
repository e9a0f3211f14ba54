#include "tests/fuzz/target.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "core/base/error.hpp"

namespace capstan::fuzz {

std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

void run(const Target& target, std::string_view input) {
  // A copy of exactly this size, so that AddressSanitizer sees the first byte read behind it.
  const std::vector<char> exact(input.begin(), input.end());
  try {
    target.read({exact.data(), exact.size()});
  } catch (const Error&) {
  }
}

void require(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

std::string_view take(std::string_view& input, size_t size) {
  const std::string_view front = input.substr(0, size);
  input.remove_prefix(front.size());
  return front;
}

size_t choose(std::string_view& input, size_t count) {
  const std::string_view byte = take(input, 1);
  return byte.empty() ? 0 : static_cast<unsigned char>(byte[0]) % count;
}

std::string file_in_memory(std::string_view content, const std::string& ending) {
  static const std::string stem = [] {
    return (access("/dev/shm", W_OK) == 0 ? "/dev/shm/capstan-fuzz-" : "/tmp/capstan-fuzz-") + std::to_string(getpid());
  }();
  static std::string last;
  const std::string path = stem + ending;
  if (last.empty())
    std::atexit([] { unlink(last.c_str()); });
  else if (last != path)
    unlink(last.c_str());
  last = path;
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(descriptor >= 0, "a file in memory can be opened");
  require(write(descriptor, content.data(), content.size()) == static_cast<ssize_t>(content.size()),
          "a file in memory can be written");
  close(descriptor);
  return path;
}

}  // namespace capstan::fuzz
