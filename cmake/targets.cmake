# The flags of our own targets, and the pattern "same sources, two precisions". All flags but the warnings travel with the
# installed targets: docs/library.md says why.

add_library(capstan_flags INTERFACE)
target_include_directories(capstan_flags INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}> $<INSTALL_INTERFACE:${CAPSTAN_INSTALL_HEADERS}>)
target_compile_features(capstan_flags INTERFACE cxx_std_17)
target_compile_options(capstan_flags INTERFACE $<BUILD_INTERFACE:-Wall;-Wextra;-Wshadow;-Wswitch-enum;-Werror>)
target_compile_options(capstan_flags INTERFACE  # GCC 12 raises both inside its AVX-512 intrinsics
  $<BUILD_INTERFACE:$<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized;-Wno-maybe-uninitialized>>)
target_compile_options(capstan_flags INTERFACE  # C++17 cannot say `inline` again in namespace capstan::CAPSTAN_PRECISION
  $<BUILD_INTERFACE:$<$<CXX_COMPILER_ID:Clang>:-Wno-inline-namespace-reopened-noninline>>)
# No product and sum are fused that the source does not fuse: where they are would depend on compiler and instruction set.
target_compile_options(capstan_flags INTERFACE -ffp-contract=off)
# GCC 12.2 turns a 32-byte constant whose upper half is zero, such as {1.0, 1.0, 0.0, 0.0}, into a broadcast of its first
# number when it copies it in one piece (test "masks compare"): copy in pieces of 16 bytes.
if(CAPSTAN_X86)
  target_compile_options(capstan_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-mmove-max=128;-mstore-max=128>)
endif()
# For the whole program: xtensor's allocator and alignment depend on it.
target_compile_definitions(capstan_flags INTERFACE XTENSOR_USE_XSIMD)
target_link_libraries(capstan_flags INTERFACE fmt::fmt OpenMP::OpenMP_CXX)
# The kernels of a portable build are compiled for every level, all else for the lowest; where the CPU lacks that, glibc
# says so instead of starting the program.
if(NOT CAPSTAN_X86)
  # Bytes of texts are compared as char, as on x86. The header comes first in every source, where a precompiled one cannot be.
  target_compile_options(capstan_flags INTERFACE -fsigned-char "SHELL:-include core/kernels/xsimd_arm64.hpp")
  set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
elseif(CAPSTAN_NATIVE)
  target_compile_options(capstan_flags INTERFACE -march=native)
else()
  set(own_level $<TARGET_PROPERTY:CAPSTAN_LEVEL>)  # of the target that is compiled
  target_compile_options(capstan_flags INTERFACE -march=$<IF:$<BOOL:${own_level}>,${own_level},x86-64-v2>)
  target_link_options(capstan_flags INTERFACE LINKER:-z,x86-64-v2)
endif()
if(CAPSTAN_SANITIZE STREQUAL thread)
  # Clang's OpenMP library tells ThreadSanitizer of its barriers (libarcher); GCC's does not, and every loop would be a race.
  target_compile_options(capstan_flags INTERFACE -fsanitize=thread -Wno-unknown-warning-option)
  target_link_options(capstan_flags INTERFACE -fsanitize=thread)
elseif(CAPSTAN_SANITIZE)
  target_compile_options(capstan_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(capstan_flags INTERFACE -fsanitize=address,undefined)
endif()

# What most sources include, parsed once. Headers of others only: ccache takes one of ours for unchanged when only a comment
# in it was, and `#pragma once` then lets it in twice.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/common_headers.cpp CONTENT "" @ONLY)
add_library(capstan_common_headers OBJECT ${CMAKE_BINARY_DIR}/common_headers.cpp)
target_link_libraries(capstan_common_headers PRIVATE capstan_flags)
target_precompile_headers(capstan_common_headers PRIVATE <algorithm> <array> <chrono> <cmath> <filesystem> <functional> <map>
                          <memory> <optional> <string> <unordered_map> <variant> <vector> <fmt/core.h>)

# capstan_optimise(target level): a release build compiles it with -Og, -O1 or -O2 in place of -O3, which takes less time.
function(capstan_optimise target level)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O${level}>)
endfunction()

# capstan_library(nn LINKS core): libraries capstan_nn (float) and capstan_nn_f64 (double) from the sources below the
# current folder. Sources that do not depend on `real` (they do not name CAPSTAN_PRECISION) are compiled once, into
# capstan_nn_shared, which both link.
function(capstan_library room)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp)
  foreach(source ${all})
    file(STRINGS ${source} precision REGEX CAPSTAN_PRECISION LIMIT_COUNT 1)
    if(precision)
      list(APPEND sources ${source})
    else()
      list(APPEND shared ${source})
    endif()
  endforeach()
  set(kernels ${all})
  list(FILTER kernels INCLUDE REGEX "(^|/)kernels/")
  set_source_files_properties(${kernels} PROPERTIES
    SKIP_UNITY_BUILD_INCLUSION ON  # their code must not depend on what is compiled with them
    SKIP_PRECOMPILE_HEADERS ON)    # they know no xtensor
  capstan_static_library(capstan_${room}_shared ${shared})
  target_link_libraries(capstan_${room}_shared PUBLIC capstan_flags)
  foreach(suffix "" "_f64")
    capstan_static_library(capstan_${room}${suffix} ${sources})
    target_link_libraries(capstan_${room}${suffix} PUBLIC capstan_flags capstan_${room}_shared)
    foreach(link ${ARG_LINKS})
      target_link_libraries(capstan_${room}${suffix} PUBLIC capstan_${link}${suffix})
    endforeach()
  endforeach()
  target_compile_definitions(capstan_${room}_f64 PUBLIC CAPSTAN_DOUBLE)
  # Double is for gradient checks, whose tensors are small: less time to compile counts for more than speed.
  capstan_optimise(capstan_${room}_f64 1)
  if(NOT room MATCHES "^(core|nn)$")  # what computes is in these
    capstan_optimise(capstan_${room} 2)
    capstan_optimise(capstan_${room}_shared 2)
  endif()
endfunction()
