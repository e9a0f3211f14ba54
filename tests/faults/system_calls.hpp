// The system calls of a run that can fail because of the machine: files, memory maps, threads.
#pragma once

#include <string>
#include <vector>

namespace capstan::testing {

/// One kind of system call and what may come of it.
struct SystemCall {
  enum class Names { none, descriptor, path, at, two_paths, two_at, link_at };

  std::string name;
  long number;
  Names names;              // where its arguments name files
  std::vector<int> errors;  // what a disk, a kernel or a limit may answer
  int count = -1;           // the argument that holds a number of bytes: the call may transfer fewer; -1: none
};

const std::vector<SystemCall>& system_calls();
/// Null when the call cannot fail because of the machine, or is not one a run makes.
const SystemCall* find_system_call(long number);

/// "ENOSPC" and the like.
std::string error_name(int error_number);

}  // namespace capstan::testing
