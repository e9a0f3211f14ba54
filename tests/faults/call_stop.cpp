#include "tests/faults/call_stop.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

namespace capstan::testing {
namespace {

std::string link_target(const std::string& link) {
  char buffer[4096];
  const ssize_t length = readlink(link.c_str(), buffer, sizeof buffer);
  return length < 0 ? "" : std::string(buffer, static_cast<size_t>(length));
}

std::string memory_of(int64_t process, uint64_t address, size_t count) {
  std::string bytes(count, '\0');
  const iovec here{bytes.data(), count}, there{reinterpret_cast<void*>(address), count};
  const ssize_t got = process_vm_readv(static_cast<pid_t>(process), &here, 1, &there, 1, 0);
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return bytes;
}

/// A C string; pieces end at page boundaries, beyond which nothing may be mapped.
std::string text_of(int64_t process, uint64_t address) {
  std::string text;
  while (address != 0 && text.size() < 4096) {
    const std::string piece = memory_of(process, address, 4096 - address % 4096);
    const size_t end = piece.find('\0');
    text += piece.substr(0, end);
    if (piece.empty() || end != std::string::npos) break;
    address += piece.size();
  }
  return text;
}

std::string descriptor_path(int64_t process, uint64_t descriptor) {
  return link_target("/proc/" + std::to_string(process) + "/fd/" + std::to_string(static_cast<int>(descriptor)));
}

std::string absolute(int64_t process, uint64_t folder, const std::string& path) {
  if (!path.empty() && path.front() == '/') return path;
  const std::string base = static_cast<int>(folder) == AT_FDCWD
                               ? link_target("/proc/" + std::to_string(process) + "/cwd")
                               : descriptor_path(process, folder);
  return path.empty() ? base : base + "/" + path;
}

}  // namespace

void CallStop::find_paths() {
  const uint64_t* const a = arguments;
  const auto here = static_cast<uint64_t>(AT_FDCWD);
  const auto text = [&](int i) { return text_of(process, a[i]); };
  const auto full = [&](uint64_t folder, int i) { return absolute(process, folder, text(i)); };
  switch (call->names) {
    case SystemCall::Names::none:
      if (call->number == SYS_mmap && static_cast<int>(a[4]) >= 0) path = descriptor_path(process, a[4]);
      return;
    case SystemCall::Names::descriptor:
      path = descriptor_path(process, a[0]);
      return;
    case SystemCall::Names::path:
      path = full(here, 0);
      return;
    case SystemCall::Names::at:
      path = full(a[0], 1);
      return;
    case SystemCall::Names::two_paths:
      path = call->number == SYS_symlink ? text(0) : full(here, 0);
      second_path = full(here, 1);
      return;
    case SystemCall::Names::two_at:
      path = full(a[0], 1);
      second_path = full(a[2], 3);
      return;
    case SystemCall::Names::link_at:
      path = text(0);
      second_path = full(a[1], 2);
      return;
  }
}

std::string CallStop::caller() const {
  const std::string word = memory_of(process, stack, sizeof(uint64_t));
  uint64_t address = 0;
  if (word.size() == sizeof address) std::memcpy(&address, word.data(), sizeof address);
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream fields(line);
    uint64_t begin = 0, end = 0;
    char dash = 0;
    std::string rights, offset, device, node, file;
    fields >> std::hex >> begin >> dash >> end >> rights >> offset >> device >> node >> file;
    if (address >= begin && address < end) return file;
  }
  return "";
}

std::string CallStop::bytes(uint64_t address, size_t size) const { return memory_of(process, address, size); }

}  // namespace capstan::testing
