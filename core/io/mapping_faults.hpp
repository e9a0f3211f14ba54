// What happens when a mapped file becomes shorter while it is read, or its disk fails: the kernel sends SIGBUS.
#pragma once

#include <cstddef>

namespace capstan {

/// From here on, such a fault ends the process with exit code 1 and a message that names the file, on standard error
/// and in the fault log. For programs: the library leaves signals alone.
void catch_mapping_faults();
/// A descriptor that also gets the message; -1 for none.
void set_fault_log(int descriptor);

/// For MappedFile: whose bytes are in memory at `begin`. `path` must stay until forget_mapping().
void note_mapping(const unsigned char* begin, size_t size, const char* path);
void forget_mapping(const unsigned char* begin);

}  // namespace capstan
