# capstan_instruction_set(variable): what -march=native stands for on this machine, as the names of the compiler's macros.
function(capstan_instruction_set variable)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null OUTPUT_VARIABLE macros ERROR_QUIET)
  string(REGEX MATCHALL "__(AVX|SSE|SSSE|FMA|BMI)[A-Z0-9_]*__ " names "${macros}")
  list(SORT names)
  list(JOIN names "" names)
  string(STRIP "${names}" names)
  set(${variable} "${names}" PARENT_SCOPE)
endfunction()
