// The last resort of the program: what no other place has caught ends it with a message and exit code 1, also without
// memory, in a function that must not throw, and before main(). Only main.cpp calls it. Nothing here may take memory
// before it has printed. tests/allocations lets one allocation after the other fail.
#pragma once

namespace capstan {

/// Before any other code of the program and its libraries (.preinit_array): makes std::terminate() print the exception
/// and end the program with exit code 1; ends it if the address space is too small for OpenBLAS, which would wait for
/// ever.
void guard_program(int argc, char** argv, char** environment);

/// Loads what the end of a thread needs. The C library would load it then, and abort if it gets no memory.
void prepare_thread_ends();

/// "error: <message>" on standard error, without taking memory.
void print_error(const char* message) noexcept;

}  // namespace capstan
